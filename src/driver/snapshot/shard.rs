use tokio::time::Instant;

use super::DialSnapshot;
use super::figures::{Figures, Look};

/// One shard in a [`Snapshot`](crate::Snapshot): a wheel with its own lock.
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

    /// Which of the timer's shards it is, from zero up to [`Timer::shards`](crate::Timer::shards) less one.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many timers are pending.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.figures.pending
    }

    /// How many timers were due and had not been served. See [`Snapshot::due`](crate::Snapshot::due).
    #[must_use]
    pub fn due(&self) -> u64 {
        self.figures.due
    }

    /// How many timers lie beyond the last dial. See [`Snapshot::beyond`](crate::Snapshot::beyond).
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.figures.beyond
    }

    /// When the shard must be turned next. See [`Snapshot::next_expiration`](crate::Snapshot::next_expiration).
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        self.figures.next_expiration
    }

    /// The five dials, the lowest first: ticks, seconds, minutes, hours, days.
    ///
    /// The hands stand where the shard's wheel stands. They lag behind the clock while nothing comes up: an idle shard is not turned.
    #[must_use]
    pub fn dials(&self) -> &[DialSnapshot] {
        &self.figures.dials
    }
}
