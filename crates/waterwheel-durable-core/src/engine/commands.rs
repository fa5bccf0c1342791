//! What becomes of a command from another process? It is a request like a caller's, and its answer is written to the store.

use std::sync::Arc;

use crate::store::{Command, Op};

use super::planted::{self, Planted};
use super::{Answer, Engine, Token};

/// The tokens of commands have it, and those of callers do not.
const IS_COMMAND: Token = 1 << 63;

impl Engine {
    /// Carries out a command from another process, once. It may be asked for again until its [answer](Op::Reply) is written.
    pub fn command(&mut self, number: u64, command: Command) {
        let is_new = self.commands.insert(number) || planted::is(Planted::CommandAgain);
        if number & IS_COMMAND != 0 || !is_new {
            return;
        }
        let token = IS_COMMAND | number;
        match command {
            Command::Cancel(handle) => self.cancel(token, handle),
            Command::Redrive(id) => self.redrive(token, id),
            Command::Discard(id) => self.discard(token, id),
            Command::Pause(name) => self.pause(token, &name, true),
            Command::Resume(name) => self.pause(token, &name, false),
        }
        self.go_on();
    }

    /// Answers a request if it is a command's.
    pub(super) fn is_answered_as_command(&mut self, token: Token, answer: &Answer) -> bool {
        if token & IS_COMMAND == 0 {
            return false;
        }
        if !self.has_failed {
            let words: Arc<str> = in_words(answer).into();
            self.commits.push(Op::Reply(token & !IS_COMMAND, words));
        }
        true
    }

    /// The answer is written.
    pub(super) fn replied_to(&mut self, number: u64) {
        self.commands.remove(&number);
    }
}

/// [`Command::DONE`], or why not.
fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Done => Command::DONE.into(),
        Answer::AlreadyFired => Command::FIRED.into(),
        Answer::NotFound => Command::GONE.into(),
        Answer::UnknownNamespace(name) => format!("there is no namespace {name:?}"),
        Answer::Refused(why) => why.to_string(),
        Answer::ShuttingDown => "nothing was done, because the service is shutting down: repeat the command when it has ended".into(),
        Answer::Full => "the store is full, and nothing was written: free space on its disk".into(),
        Answer::Failed(why) => format!(
            "nothing was done, because the store failed earlier ({why}): restart the service, and repeat the command"
        ),
        Answer::Unknown(why) => format!(
            "it is not known what was done ({why}): restart the service, and look before you repeat the command"
        ),
        Answer::Created(_)
        | Answer::Existing(_)
        | Answer::Declared(_)
        | Answer::Quota { .. }
        | Answer::OutOfIds => {
            "the service gave an unexpected answer: please report this bug".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_answered_in_words() {
        let why = || Arc::from("no \"sync\"");
        let failed = Answer::Failed(why());
        let unknown = Answer::Unknown(why());
        for (answer, expected) in [
            (&Answer::Done, "done"),
            (&Answer::Full, "the store is full"),
            (&failed, "the store failed earlier (no \"sync\"): restart"),
            (&unknown, "what was done (no \"sync\"): restart"),
            (&Answer::Refused(why()), "no \"sync\""),
            (
                &Answer::UnknownNamespace("shop".into()),
                "no namespace \"shop\"",
            ),
        ] {
            let words = in_words(answer);
            assert!(words.contains(expected), "{words}");
            let begins = words.chars().next();
            assert!(begins.is_some_and(char::is_lowercase), "{words}");
        }
    }
}
