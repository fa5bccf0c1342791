use std::fmt;
use std::time::Duration;

use crate::wheel::{DialCounts, SlotCounts, Standing};

/// One dial in a [`Snapshot`](crate::Snapshot), of a single shard or of all shards together.
///
/// A slot covers one unit of the dial's time. With the hand at slot `h` of `n`, slot `h + 1` comes up next, and slot 0 follows
/// slot `n - 1`. The hand's own slot comes up last, one revolution ahead.
///
/// `Debug` shows totals instead of the slots, of which there are up to 10 000.
#[derive(Clone, PartialEq, Eq)]
pub struct DialSnapshot {
    slot_length: Duration,
    hand: usize,
    occupied: Box<[bool]>,
    counts: Box<[u64]>,
}

impl DialSnapshot {
    /// All dials of a wheel.
    pub(super) fn all(counts: &SlotCounts, standing: &Standing) -> Box<[DialSnapshot]> {
        counts.dials(standing).map(DialSnapshot::new).collect()
    }

    fn new(dial: DialCounts<'_>) -> DialSnapshot {
        DialSnapshot {
            slot_length: dial.length,
            hand: dial.hand,
            occupied: dial.occupied.into(),
            counts: dial.counts.into(),
        }
    }

    /// Returns how much time one slot covers: one tick on the lowest dial, then a second, a minute, an hour and a day.
    #[must_use]
    pub fn slot_length(&self) -> Duration {
        self.slot_length
    }

    /// Returns the number of slots: the number of ticks per second on the lowest dial, then 60, 60, 24 and 64.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.counts.len()
    }

    /// Returns the slot at which the hand stands, counted from zero.
    #[must_use]
    pub fn hand(&self) -> usize {
        self.hand
    }

    /// Returns whether a timer is filed in this slot.
    ///
    /// # Panics
    ///
    /// Panics if the dial has no such slot.
    #[must_use]
    #[track_caller]
    pub fn is_occupied(&self, slot: usize) -> bool {
        self.occupied[slot]
    }

    /// Returns how many timers are counted in each slot. The first entry is slot 0, wherever the hand stands.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns how many timers are counted on the dial.
    #[must_use]
    pub fn timers(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl fmt::Debug for DialSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let occupied = self.occupied.iter().filter(|is_occupied| **is_occupied);
        f.debug_struct("DialSnapshot")
            .field("slot_length", &self.slot_length)
            .field("hand", &self.hand)
            .field("slots", &self.slots())
            .field("occupied", &occupied.count())
            .field("timers", &self.timers())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl DialSnapshot {
    /// A dial of seconds. A slot with a timer is occupied.
    pub(super) fn of_counts(hand: usize, counts: &[u64]) -> DialSnapshot {
        DialSnapshot {
            slot_length: Duration::from_secs(1),
            hand,
            occupied: counts.iter().map(|count| *count > 0).collect(),
            counts: counts.into(),
        }
    }
}
