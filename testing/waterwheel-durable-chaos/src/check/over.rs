//! Forgets timers that are certainly over, except for one bit each, since a soak has millions. Later lines about them are checked against that bit.

use std::collections::HashMap;

use super::Checker;
use super::timer::{At, State, Timer};

/// The number of low bits of an id that count the timers of an opening. The other bits count the openings.
const COUNT_BITS: u32 = 40;

/// Timers that were settled or cancelled.
#[derive(Debug, Clone, Default)]
pub(super) struct Over {
    /// One bit for each id, by opening.
    bits: HashMap<u64, Vec<u64>>,
    pub(super) count: u64,
    /// The line before which requests may have been made while the forgotten timers existed.
    pub(super) until: At,
}

impl Over {
    pub(super) fn has(&self, id: u64) -> bool {
        let (opening, word, bit) = place(id);
        let words = self.bits.get(&opening);
        words.is_some_and(|words| words.get(word).is_some_and(|word| word & bit != 0))
    }

    pub(super) fn add(&mut self, id: u64) {
        let (opening, word, bit) = place(id);
        let words = self.bits.entry(opening).or_default();
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= bit;
        self.count += 1;
    }
}

fn place(id: u64) -> (u64, usize, u64) {
    let count = id & ((1 << COUNT_BITS) - 1);
    let word = usize::try_from(count / 64).unwrap_or(usize::MAX);
    (id >> COUNT_BITS, word, 1 << (count % 64))
}

impl Checker {
    /// The number of lines that were read.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Forgets timers that are certainly over, and that no line has mentioned since `before`.
    pub(crate) fn forget(&mut self, before: u64) {
        let over = self.timers.iter();
        let over: Vec<u64> = over
            .filter(|(_, timer)| self.is_over(timer, before))
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
        let insert = timer.insert;
        let is_in_flight = insert.is_none_or(|it| self.in_flight.contains_key(&it))
            || timer.cancels > 0
            || timer.wanted.iter().any(|it| it.done_by.is_none());
        let is_settled = timer.last.is_some_and(|last| {
            last.state == State::Well && last.line < before && self.is_settled(&last)
        });
        let was_cancelled = timer.cancelled.is_some_and(|line| line < before);
        let is_silent = timer.redriven < before && !timer.may_be_redriven;
        !is_in_flight && is_silent && (is_settled || was_cancelled)
    }

    /// The number of timers that were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.over.count
    }
}
