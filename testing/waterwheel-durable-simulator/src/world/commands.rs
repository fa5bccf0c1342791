//! What do other processes command? The store puts a command out each time that it is asked, until its answer is written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use waterwheel_durable_core::engine::{Answer, Engine, Token};
use waterwheel_durable_core::store::{Command, Op};

use super::World;

/// The commands that are not answered.
#[derive(Debug, Default)]
pub(super) struct Commands {
    all: BTreeMap<u64, Ordered>,
    count: u64,
    /// Which commands the commits answer that were asked for, by the requests to the store.
    answered: HashMap<u64, Vec<u64>>,
}

#[derive(Debug)]
struct Ordered {
    command: Command,
    /// What names it in the model.
    token: Token,
    answer: Option<Arc<str>>,
}

impl Commands {
    pub(super) fn is_any(&self) -> bool {
        !self.all.is_empty()
    }

    /// The store is asked for commands.
    pub(super) fn read(&self, engine: &mut Engine) {
        for (number, ordered) in &self.all {
            engine.command(*number, ordered.command.clone());
        }
    }

    /// Checks the answers that a commit is to write. One that was refused comes again, in another commit, and a commit whose reply is late is asked for again.
    ///
    /// # Errors
    ///
    /// A command is answered again, or in another way.
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
            let ordered = self.all.get_mut(number);
            let is_first = !numbers.contains(number);
            numbers.push(*number);
            let before = ordered.map(|it| it.answer.get_or_insert_with(|| Arc::clone(answer)));
            if !is_again && (!is_first || before.as_deref() != Some(answer)) {
                return Err(format!(
                    "the command {number} is answered again: {answer:?} after {before:?}"
                ));
            }
        }
        self.answered.insert(request, numbers);
        Ok(())
    }

    /// The process ends, and its commands are withdrawn.
    pub(super) fn ends(&mut self) {
        self.all.clear();
        self.answered.clear();
    }
}

impl World {
    /// Another process commands a cancel. Timers with keys are left out: that a key is free again is known before the answer is written.
    pub(super) fn command(&mut self) {
        let handle = self.any().filter(|it| !self.model.has_key(it.id));
        let Some(handle) = handle else {
            return;
        };
        let token = self.model.cancels(handle.id);
        self.commands.count += 1;
        let ordered = Ordered {
            command: Command::Cancel(handle),
            token,
            answer: None,
        };
        self.commands.all.insert(self.commands.count, ordered);
        self.commands.read(&mut self.engine);
    }

    /// A commit is done, and the answers in it are written.
    pub(super) fn are_answered(&mut self, request: u64) -> Result<(), String> {
        for number in self.commands.answered.remove(&request).unwrap_or_default() {
            let Some(Ordered { token, answer, .. }) = self.commands.all.remove(&number) else {
                continue;
            };
            let answer = match answer.as_deref() {
                Some(Command::DONE) => Answer::Done,
                // Since then, it may have failed and wait for its next attempt, or was redriven.
                Some(Command::FIRED | Command::GONE) => Answer::ShuttingDown,
                Some(other) => Answer::Refused(other.into()),
                None => continue,
            };
            if let Some(id) = self.model.moves(token).filter(|_| answer == Answer::Done) {
                self.has_left(id);
            }
            self.model.answered(token, answer)?;
        }
        Ok(())
    }
}
