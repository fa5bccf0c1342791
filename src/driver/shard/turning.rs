//! That one thread at a time turns a shard.
//!
//! A turn wakes the wakers after it has given the lock back. Two turns at once would mix their order.

use crate::sync::atomic::{AtomicU8, Ordering};

/// Whether a thread turns the shard: the driver's, one that advances tokio's clock, or one that runs a catch-up task.
pub(in crate::driver) struct Turning(AtomicU8);

/// No thread does.
const NO: u8 = 0;
const YES: u8 = 1;
/// One does. The driver has met it meanwhile, and left the shard to it.
const MISSED: u8 = 2;

impl Turning {
    pub(super) fn new() -> Turning {
        Turning(AtomicU8::new(NO))
    }

    /// Begins a turn of the driver. `false` if another thread turns the shard; that thread then wakes the driver.
    pub(in crate::driver) fn begin(&self) -> bool {
        let begin = |turning| Some(if turning == NO { YES } else { MISSED });
        // Acquire pairs with the release in `end`: this turn follows what the last one did without the lock.
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, begin);
        before == Ok(NO)
    }

    /// Begins a turn of a catch-up task, unless another thread turns the shard.
    pub(in crate::driver) fn begin_if_free(&self) -> bool {
        // Paired as in `begin`.
        self.0
            .compare_exchange(NO, YES, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Ends a turn. `true` if the driver has left the shard to it, and must be woken.
    #[must_use]
    pub(in crate::driver) fn end(&self) -> bool {
        // Acquire pairs with the `MISSED` of `begin`; release with the next turn.
        self.0.swap(NO, Ordering::AcqRel) == MISSED
    }
}
