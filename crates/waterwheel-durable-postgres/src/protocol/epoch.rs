//! Draws epochs, from which ids are made.

use waterwheel_durable_core::engine::planted::{self, Planted};

/// An epoch, and the timeline of the server on which it was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drawn {
    /// The epoch.
    pub epoch: u64,
    /// The timeline.
    pub timeline: u32,
}

impl Drawn {
    /// How much an epoch rises for each timeline. A failover may lose the latest epochs that were drawn, but not as many: a
    /// lagging standby misses the WAL of seconds. Epochs last for 4 000 failovers.
    pub const STEP: u64 = 1_024;

    /// Draws the next epoch on this timeline of the server.
    #[must_use]
    pub fn next(self, timeline: u32) -> Drawn {
        let failovers = match planted::is(Planted::EpochsRepeat) {
            true => 0,
            false => u64::from(timeline.saturating_sub(self.timeline)),
        };
        Drawn {
            epoch: self.epoch + 1 + failovers * Drawn::STEP,
            timeline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_skips_the_epochs_that_it_may_have_lost() {
        let first = Drawn::default().next(3);
        let second = first.next(3);
        assert_eq!(second.epoch, first.epoch + 1);
        // Drawn after `first`, and lost.
        let lost = (1..Drawn::STEP).fold(first, |drawn, _| drawn.next(3));
        assert!(first.next(4).epoch > lost.epoch);
        assert!(first.next(5).epoch > lost.next(4).epoch);
    }
}
