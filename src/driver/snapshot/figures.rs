use tokio::time::Instant;

use super::DialSnapshot;
use crate::wheel::{Resolution, SlotCounts, Standing, Tick};

/// What the wheel of a shard shows of itself; or those of several, together.
pub(in crate::driver) struct Look {
    pub(in crate::driver) pending: usize,
    pub(in crate::driver) next_expiration: Option<Instant>,
    pub(in crate::driver) standing: Standing,
    pub(in crate::driver) counts: SlotCounts,
}

impl Look {
    /// No wheel yet, seen from this tick.
    pub(super) fn nothing(resolution: Resolution, tick: Tick) -> Look {
        Look {
            pending: 0,
            next_expiration: None,
            standing: Standing::at(resolution, tick),
            counts: SlotCounts::at(resolution, tick),
        }
    }

    /// Adds another wheel. The hand stays.
    pub(super) fn add(&mut self, other: &Look) {
        self.pending += other.pending;
        let next = [self.next_expiration, other.next_expiration];
        self.next_expiration = next.into_iter().flatten().min();
        self.standing.add_slots(&other.standing);
        self.counts.add_all(&other.counts);
    }
}

/// The figures of one shard, or of all.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) pending: u64,
    pub(super) due: u64,
    pub(super) beyond: u64,
    pub(super) next_expiration: Option<Instant>,
    pub(super) dials: Box<[DialSnapshot]>,
}

impl Figures {
    pub(super) fn of(look: &Look) -> Figures {
        Figures {
            pending: look.pending as u64,
            due: look.counts.due(),
            beyond: look.counts.beyond(),
            next_expiration: look.next_expiration,
            dials: DialSnapshot::all(&look.counts, &look.standing),
        }
    }
}
