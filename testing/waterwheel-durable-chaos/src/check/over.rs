//! What is over for certain is forgotten, but for a bit: a soak has millions of timers.

use std::collections::HashMap;

use super::timer::At;

/// How the low part of an id counts the timers of an opening, and the rest of it the openings.
const COUNT_BITS: u32 = 40;

/// Timers that were settled or cancelled.
#[derive(Debug, Clone, Default)]
pub(super) struct Over {
    /// A bit for each id, by openings.
    bits: HashMap<u64, Vec<u64>>,
    pub(super) count: u64,
    /// What was asked before this line may have been asked while timers were there that are over now.
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
