//! What a shard shows of itself, without holding up the threads that use it.

use super::Shard;
use crate::driver::snapshot::Look;
use crate::wheel::{SlotCounts, Tick};

/// How many places of the slab are read with the lock held. That takes some 4 µs, and 6 at most if the thread is not interrupted.
const PORTION: usize = 1024;

impl Shard {
    /// The shard's number, where its wheel stands, and how many timers there are for each slot, as seen from `now`. `None` if it is stopped.
    pub(super) fn look(&self, now: Tick) -> Option<(usize, Look)> {
        let locked = self.lock();
        let wheel = locked.wheel.as_ref()?;
        let standing = wheel.standing();
        let (pending, next) = (wheel.len(), wheel.next_expiration());
        drop(locked);
        let look = Look {
            pending,
            next_expiration: next.and_then(|tick| self.clock.instant_of(tick)),
            standing,
            counts: self.count_from(now),
        };
        Some((self.position, look))
    }

    fn count_from(&self, now: Tick) -> SlotCounts {
        let mut counts = SlotCounts::at(self.clock.resolution(), now);
        let mut deadlines = Vec::with_capacity(PORTION);
        let mut place = Some(0);
        while let Some(first) = place {
            let locked = self.lock();
            // It may have been stopped meanwhile.
            let Some(wheel) = &locked.wheel else {
                break;
            };
            place = wheel.read_deadlines(first, PORTION, |index, filed| {
                deadlines.push(self.postponed.deadline(index, filed));
            });
            drop(locked);
            // Counted without the lock, so that a thread that waits for it gets it now.
            for deadline in deadlines.drain(..) {
                counts.add(deadline);
            }
        }
        counts
    }
}
