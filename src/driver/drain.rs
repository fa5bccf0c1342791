use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use super::lifecycle::Lifecycle;
use super::shard::ShardList;
use super::stop::stop;
use super::wakeup::Wakeup;

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
