//! The commands of other processes that wait for their answers. The store returns a command each time that it is asked, until its answer is written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use waterwheel_durable_core::engine::{Answer, Engine, Token};
use waterwheel_durable_core::store::{Command, Op};

/// The unanswered commands.
#[derive(Debug, Default)]
pub(super) struct Commands {
    all: BTreeMap<u64, Pending>,
    count: u64,
    /// The commands that requested commits answer, by request to the store.
    answered: HashMap<u64, Vec<u64>>,
}

#[derive(Debug)]
struct Pending {
    command: Command,
    /// Its token in the model.
    token: Token,
    answer: Option<Arc<str>>,
}

impl Commands {
    pub(super) fn is_any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Sends a command from another process, which the model knows by this token.
    pub(super) fn add(&mut self, command: Command, token: Token) {
        self.count += 1;
        let pending = Pending {
            command,
            token,
            answer: None,
        };
        self.all.insert(self.count, pending);
    }

    /// Hands the commands that the store has to the engine.
    pub(super) fn read(&self, engine: &mut Engine) {
        for (number, pending) in &self.all {
            engine.handle_command(*number, pending.command.clone());
        }
    }

    /// Checks the answers that a commit should write. A command whose commit was refused comes again in another one; a late commit is repeated.
    ///
    /// # Errors
    ///
    /// A command is answered again, or differently.
    pub(super) fn commits(
        &mut self,
        request: u64,
        steps: &[Op],
        is_again: bool,
    ) -> Result<(), String> {
        let mut numbers = Vec::new();
        for op in steps {
            let Op::Reply(number, answer) = op else {
                continue;
            };
            let pending = self.all.get_mut(number);
            let is_first = !numbers.contains(number);
            numbers.push(*number);
            let before = pending.map(|it| it.answer.get_or_insert_with(|| Arc::clone(answer)));
            if !is_again && (!is_first || before.as_deref() != Some(answer)) {
                return Err(format!(
                    "the command {number} is answered again: {answer:?} after {before:?}"
                ));
            }
        }
        self.answered.insert(request, numbers);
        Ok(())
    }

    /// Notes that a commit is done. Removes the commands whose answers it wrote.
    pub(super) fn written(&mut self, request: u64) -> Vec<(Token, Answer)> {
        let numbers = self.answered.remove(&request).unwrap_or_default();
        let pending = numbers
            .into_iter()
            .filter_map(|number| self.all.remove(&number));
        let answers = pending.filter_map(|it| {
            let answer = match it.answer.as_deref()? {
                Command::DONE => Answer::Done,
                // Since then, the timer may have failed and wait for a retry, or it was redriven.
                Command::FIRED | Command::GONE => Answer::ShuttingDown,
                other => Answer::Refused(other.into()),
            };
            Some((it.token, answer))
        });
        answers.collect()
    }

    /// Withdraws the commands as the process ends.
    pub(super) fn ends(&mut self) {
        self.all.clear();
        self.answered.clear();
    }
}
