use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use super::lifecycle::Lifecycle;
use super::shard::ShardList;
use super::wakeup::Wakeup;
use crate::sync::wake_all;

/// Waits until no shard of a draining `Timer` has a pending timer and no callback is left, then stops the `Timer`. A shard that becomes
/// empty wakes it (`Shard::unlock`), and so does the end of the last callback (`Lifecycle::end_callback`).
pub(super) struct Drain {
    lifecycle: Arc<Lifecycle>,
    shards: Arc<ShardList>,
    wakeup: Arc<Wakeup>,
    /// The number that its waker goes by.
    number: u64,
}

/// No two drains of the process have one number.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Drain {
    /// From this call on the `Timer` takes nothing new.
    pub(super) fn start(
        lifecycle: Arc<Lifecycle>,
        shards: Arc<ShardList>,
        wakeup: Arc<Wakeup>,
    ) -> Drain {
        lifecycle.drain();
        for shard in shards.in_use() {
            shard.start_draining();
        }
        Drain {
            lifecycle,
            shards,
            wakeup,
            // Relaxed: the number alone matters.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Whether nothing is pending. If something is, the waker is woken when the last timer may have ended: a shard
    /// that has become empty calls `wake_drains`.
    fn is_drained(&self, context: &Context<'_>) -> bool {
        // The waker first: a shard that becomes empty after the look finds it, and so does the end of the last callback.
        let waker = context.waker().clone();
        self.lifecycle.await_drain(self.number, waker);
        self.shards.in_use().iter().all(|shard| shard.is_empty()) && !self.lifecycle.has_callbacks()
    }
}

impl Future for Drain {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.lifecycle.has_ended() {
            return Poll::Ready(());
        }
        if !self.is_drained(context) {
            return Poll::Pending;
        }
        stop(&self.lifecycle, &self.shards, &self.wakeup);
        Poll::Ready(())
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.lifecycle.forget_drain(self.number);
    }
}

// How a `Timer` is stopped by its owner, by `shutdown` or a drain: every pending timer ends at once, and its task is woken.

/// Stops the `Timer`. Returns how many timers were pending; zero if it was stopped before.
pub(super) fn stop(lifecycle: &Lifecycle, shards: &ShardList, wakeup: &Wakeup) -> usize {
    if !lifecycle.stop() {
        return 0;
    }
    let count = stop_shards(shards);
    lifecycle.wake_drains();
    wakeup.wake_task();
    count
}

/// Takes the wheels from the shards, and wakes what was pending. Returns how much that was. The caller has set the state before, see
/// `ShardList::add`.
pub(super) fn stop_shards(shards: &ShardList) -> usize {
    let mut count = 0;
    for shard in shards.in_use() {
        let wakers = shard.stop();
        count += wakers.len();
        wake_all(wakers.into_iter());
    }
    count
}
