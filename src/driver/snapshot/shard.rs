use tokio::time::Instant;

use super::DialSnapshot;
use crate::wheel::{SlotCounts, Standing};

/// What a shard showed of itself.
pub(in crate::driver) struct Look {
    pub(in crate::driver) number: usize,
    pub(in crate::driver) pending: usize,
    pub(in crate::driver) next_expiration: Option<Instant>,
    pub(in crate::driver) standing: Standing,
    pub(in crate::driver) counts: SlotCounts,
}

/// One shard in a [`Snapshot`](crate::Snapshot): a wheel with its own lock.
#[derive(Debug, Clone)]
pub struct ShardSnapshot {
    number: usize,
    pending: u64,
    due: u64,
    beyond: u64,
    next_expiration: Option<Instant>,
    dials: Box<[DialSnapshot]>,
}

impl ShardSnapshot {
    pub(super) fn of(look: &Look) -> ShardSnapshot {
        ShardSnapshot {
            number: look.number,
            pending: look.pending as u64,
            due: look.counts.due(),
            beyond: look.counts.beyond(),
            next_expiration: look.next_expiration,
            dials: DialSnapshot::all(&look.counts, &look.standing),
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
        self.pending
    }

    /// How many timers were due and had not been served. See [`Snapshot::due`](crate::Snapshot::due).
    #[must_use]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// How many timers lie beyond the last dial. See [`Snapshot::beyond`](crate::Snapshot::beyond).
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// When the shard must be turned next. See [`Snapshot::next_expiration`](crate::Snapshot::next_expiration).
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        self.next_expiration
    }

    /// The five dials, the lowest first: ticks, seconds, minutes, hours, days.
    ///
    /// The hands stand where the shard's wheel stands. They lag behind the clock while nothing comes up: an idle shard is not turned.
    #[must_use]
    pub fn dials(&self) -> &[DialSnapshot] {
        &self.dials
    }
}
