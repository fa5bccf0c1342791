//! That one thread at a time turns a shard, and which shards the driver does not turn itself.
//!
//! A turn wakes the wakers after it has given the lock back. Two turns at once would mix their order.

use crate::sync::atomic::{AtomicU8, Ordering};

/// Whether a thread turns the shard: the driver's, one that advances tokio's clock, or one that runs a catch-up task. And whether
/// the driver has given the shard to a catch-up task.
pub(in crate::driver) struct Turning(AtomicU8);

/// No thread turns it, and the driver has not given it away.
const FREE: u8 = 0;
/// A thread turns it.
const TURNS: u8 = 1;
/// A catch-up task turns it batch by batch, until it has no backlog.
const GIVEN: u8 = 2;
/// The driver has left the shard to that thread or task. The last of the two to end wakes the driver.
const LEFT: u8 = 4;

impl Turning {
    pub(super) fn new() -> Turning {
        Turning(AtomicU8::new(FREE))
    }

    /// Begins a turn of the driver. `false` if another thread turns the shard or it is given away; the driver is then woken
    /// afterwards.
    pub(in crate::driver) fn begin(&self) -> bool {
        let begin = |turning| match turning {
            FREE => TURNS,
            _ => turning | LEFT,
        };
        self.change(|turning| Some(begin(turning))) == Ok(FREE)
    }

    /// Begins a turn of a catch-up task, unless another thread turns the shard.
    pub(in crate::driver) fn begin_if_free(&self) -> bool {
        let begin = |turning| (turning & TURNS == 0).then_some(turning | TURNS);
        self.change(begin).is_ok()
    }

    /// Ends a turn. `true` if the driver has left the shard to it, and must be woken.
    #[must_use]
    pub(in crate::driver) fn end(&self) -> bool {
        self.end_one_of(TURNS, GIVEN)
    }

    /// The driver leaves the shard to a catch-up task that it is about to spawn. It has just turned the shard, so no other such task
    /// has it.
    pub(in crate::driver) fn give(&self) {
        // Of another thread that turns the shard meanwhile, `TURNS` stays.
        let _ = self.change(|turning| Some(turning | GIVEN | LEFT));
    }

    /// That task ends. `true` if the driver must be woken.
    #[must_use]
    pub(in crate::driver) fn give_back(&self) -> bool {
        self.end_one_of(GIVEN, TURNS)
    }

    /// Whether the driver must be woken: it has left the shard, and the other of the two has ended as well.
    fn end_one_of(&self, this: u8, other: u8) -> bool {
        let end = |turning| match turning & other {
            0 => FREE,
            _ => turning & !this,
        };
        self.change(|turning| Some(end(turning))) == Ok(this | LEFT)
    }

    /// Acquire pairs with the release of each change before: a turn follows what the last one did without the lock, and an end
    /// sees the `LEFT` of the driver. The latter also needs the release: the driver does not read `next` of a shard that it leaves,
    /// and reads it when it is woken.
    fn change(&self, change: impl FnMut(u8) -> Option<u8>) -> Result<u8, u8> {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change)
    }
}
