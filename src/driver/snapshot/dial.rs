use std::fmt;
use std::time::Duration;

use crate::wheel::{DialCounts, SlotCounts, Standing};

/// One dial in a [`Snapshot`](crate::Snapshot), of one shard or of all.
///
/// A slot holds one unit of the dial's time. With the hand at slot `h` of `n`, the slot `h + 1` comes up next, and after slot `n - 1`
/// slot 0. The hand's own slot comes up last, one revolution ahead.
///
/// `Debug` shows sums. The slots are too many: up to 10 000.
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

    /// How long one slot is: one tick on the lowest dial, then a second, a minute, an hour, a day.
    #[must_use]
    pub fn slot_length(&self) -> Duration {
        self.slot_length
    }

    /// How many slots the dial has: as many as ticks make a second on the lowest dial, then 60, 60, 24, 64.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.counts.len()
    }

    /// The slot that the hand stands at, from zero.
    #[must_use]
    pub fn hand(&self) -> usize {
        self.hand
    }

    /// Whether a timer is filed in this slot.
    ///
    /// # Panics
    ///
    /// If the dial has no such slot.
    #[must_use]
    #[track_caller]
    pub fn is_occupied(&self, slot: usize) -> bool {
        self.occupied[slot]
    }

    /// How many timers count in each slot. The first is slot 0, wherever the hand stands.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many timers count on the dial.
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
