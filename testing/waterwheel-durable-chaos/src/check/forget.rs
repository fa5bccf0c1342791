//! What is over for certain is forgotten, and what is said of it from then on is held against it.

use super::timer::{At, State, Timer, Wanted};
use super::{Checker, Rule};
use crate::protocol::Answer;

impl Checker {
    /// How many lines were read.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Forgets timers that are over for certain, and of which nothing was said since this line. What is said of them from now on is held against it.
    pub(crate) fn forget(&mut self, before: u64) {
        let is_over = |timer: &Timer| self.is_over(timer, before);
        let over: Vec<u64> = self
            .timers
            .iter()
            .filter(|(_, timer)| is_over(timer))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.over.add(id);
            let timer = self.timers.remove(&id);
            if let Some(name) = timer.and_then(|it| Some((it.handler, it.key?)))
                && self.keys.get(&name) == Some(&id)
            {
                self.keys.remove(&name);
            }
        }
        self.over.until = self.line;
    }

    fn is_over(&self, timer: &Timer, before: At) -> bool {
        let is_in_flight = timer
            .insert
            .is_none_or(|it| self.in_flight.contains_key(&it))
            || timer.cancels > 0
            || timer.wanted.iter().any(Wanted::is_open);
        let is_settled = timer.last.is_some_and(|last| {
            last.state == State::Well && last.line < before && self.is_settled(&last)
        });
        let was_cancelled = timer.cancelled.is_some_and(|line| line < before);
        let is_silent = timer.redriven < before && !timer.may_be_redriven;
        !is_in_flight && is_silent && (is_settled || was_cancelled)
    }

    /// A timer that is over was delivered.
    pub(super) fn is_delivered_again(&mut self, id: u64) {
        let text = format!("{id:x} was settled or cancelled, and is delivered");
        self.breaks(Rule::Twice, text);
    }

    /// A timer that is over was to be cancelled or moved.
    pub(super) fn is_answered_again(&mut self, id: u64, sent: At, answer: Answer) {
        if answer != Answer::NotFound && sent >= self.over.until {
            let text = format!("{id:x} was settled or cancelled, and the answer is {answer:?}");
            self.breaks(Rule::Answer, text);
        }
    }

    /// A timer that is over was named for its key.
    pub(super) fn is_named_again(&mut self, id: u64, sent: At) {
        if sent >= self.over.until {
            let text = format!("{id:x} is named for its key, and was settled or cancelled");
            self.breaks(Rule::Key, text);
        }
    }

    /// How many timers were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.over.count
    }
}
