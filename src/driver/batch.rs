//! The wakers that a turn has collected, to be woken once no lock is held, in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use super::shard::BITE;
use crate::wheel::{Met, Tick};

/// Collects wakers as a shard's wheel serves its timers slot by slot.
///
/// A slot is walked from both its ends at once. What comes from the back comes in reverse order, so it is
/// kept apart, and woken reversed once the slot is done.
#[derive(Default)]
pub(super) struct Batch {
    ready: Vec<Waker>,
    /// Of one slot, last filed first.
    back: Vec<Waker>,
    /// The hand at that slot.
    slot: Tick,
}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch {
            ready: Vec::with_capacity(BITE),
            back: Vec::with_capacity(BITE),
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
        if self.ready.capacity() > BITE {
            self.ready.shrink_to(BITE);
        }
        if self.back.capacity() > BITE {
            self.back.shrink_to(BITE);
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

/// Wakes each, with no lock held. One that panics must not strand the others or end the driver;
/// the panic hook has told of it.
pub(super) fn wake_all(wakers: impl Iterator<Item = Waker>) {
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // A payload whose destructor panics as well is let go.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::forget);
        }
    }
}
