//! The wakers that a turn has collected. They are woken in order after each batch, once no lock is held. Those from the back of a
//! slot wait until the slot is done, over several batches if need be.

use std::task::Waker;

use super::allowance::BATCH;
use crate::driver::wake_all::wake_all;
use crate::wheel::{Met, Tick};

/// Collects wakers as a shard's wheel serves its timers slot by slot.
///
/// A slot is walked from both its ends at once. What comes from the back comes in reverse order, so it is
/// kept apart, and woken reversed once the slot is done.
#[derive(Default)]
pub(super) struct Wakers {
    ready: Vec<Waker>,
    /// Of one slot, last filed first.
    back: Vec<Waker>,
    /// The hand at that slot.
    slot: Tick,
}

impl Wakers {
    pub(super) fn new() -> Wakers {
        Wakers {
            ready: Vec::with_capacity(BATCH),
            back: Vec::with_capacity(BATCH),
            slot: Tick::ZERO,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, met: Met, waker: Waker) {
        if met.hand != self.slot {
            self.slot = met.hand;
            self.end_slot();
        }
        if met.at_back {
            self.back.push(waker);
        } else {
            self.ready.push(waker);
        }
    }

    /// Wakes what is next in order, with no lock held.
    pub(super) fn wake(&mut self) {
        wake_all(self.ready.drain(..));
    }

    /// Wakes all that is left: the turn is over.
    pub(super) fn finish(&mut self) {
        if !self.back.is_empty() {
            self.end_slot();
        }
        if !self.ready.is_empty() {
            self.wake();
        }
        if self.ready.capacity() > BATCH {
            self.ready.shrink_to(BATCH);
        }
        if self.back.capacity() > BATCH {
            self.back.shrink_to(BATCH);
        }
    }

    #[inline]
    fn end_slot(&mut self) {
        if self.back.is_empty() {
            // As ever on a clock that is paused, whose slots are walked from the front.
            return;
        }
        self.ready.extend(self.back.drain(..).rev());
    }
}
