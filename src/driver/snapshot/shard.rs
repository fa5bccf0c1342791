use tokio::time::Instant;

use super::DialSnapshot;
use super::figures::{Figures, Look};

/// One shard in a [`Snapshot`](crate::Snapshot): a wheel with a lock of its own.
#[derive(Debug, Clone)]
pub struct ShardSnapshot {
    number: usize,
    figures: Figures,
}

impl ShardSnapshot {
    pub(super) fn of(number: usize, look: &Look) -> ShardSnapshot {
        ShardSnapshot {
            number,
            figures: Figures::of(look),
        }
    }

    /// Returns the number of this shard within its timer, counted from zero and less than
    /// [`Timer::shards`](crate::Timer::shards).
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of pending timers.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.figures.pending
    }

    /// Returns how many timers were due and had not been served yet. See [`Snapshot::due`](crate::Snapshot::due).
    #[must_use]
    pub fn due(&self) -> u64 {
        self.figures.due
    }

    /// Returns how many timers lie beyond the last dial. See [`Snapshot::beyond`](crate::Snapshot::beyond).
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.figures.beyond
    }

    /// Returns when the shard must be turned next. See [`Snapshot::next_expiration`](crate::Snapshot::next_expiration).
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        self.figures.next_expiration
    }

    /// Returns the five dials, the lowest first: ticks, seconds, minutes, hours, days.
    ///
    /// The hands stand where the shard's wheel stands. They lag behind the clock while nothing comes up, because an idle shard is
    /// not turned.
    #[must_use]
    pub fn dials(&self) -> &[DialSnapshot] {
        &self.figures.dials
    }
}
