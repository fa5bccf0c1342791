use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use super::shared::{Shared, Stage};

/// Waits until a timer that takes nothing new has nothing pending, then stops it.
pub(super) struct Drain {
    shared: Arc<Shared>,
    number: u64,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Drain {
    pub(super) fn new(shared: Arc<Shared>) -> Drain {
        Drain {
            shared,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Future for Drain {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let is_over = self.shared.stage() >= Stage::Stopped
            || self.shared.is_drained(self.number, context.waker());
        if is_over {
            self.shared.stop(Stage::Stopped);
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.shared.forget_drain(self.number);
    }
}
