//! The floors: the steps that no timer of this kind can avoid, measured together.
//!
//! A sleep needs one clock read for the deadline, two lock pairs of an uncontended std mutex (to register and to cancel), one
//! clone and drop of the task's real waker, one slab insert and remove. No wheel, no driver, nothing shared between tasks. A later
//! poll checks under the lock whether the waker is still the same. Postponing is a clock read and a store. A timeout does all of
//! that only when its future is pending. The floor of `current` has one additional `Handle::current()` per sleep, dropped at once.

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use slab::Slab;
use tokio::runtime::Handle;

use super::{Postpones, Sleeps, TimesOut};

/// A timer that never fires.
pub(crate) struct Floor<const CURRENT: bool> {
    /// Leaked, which saves each sleep a counted reference: the process ends with the sample.
    pending: &'static Pending,
}

type Pending = Mutex<Slab<Waker>>;

impl<const CURRENT: bool> Floor<CURRENT> {
    pub(crate) fn start() -> Self {
        Self {
            pending: Box::leak(Box::default()),
        }
    }
}

/// The clone of each task has its own slab.
impl<const CURRENT: bool> Clone for Floor<CURRENT> {
    fn clone(&self) -> Self {
        Self::start()
    }
}

impl<const CURRENT: bool> Sleeps for Floor<CURRENT> {
    const NAME: &'static str = if CURRENT { "floor, current" } else { "floor" };
    type Sleep = FloorSleep;

    fn sleep(&self, duration: Duration) -> FloorSleep {
        if CURRENT {
            black_box(Handle::current());
        }
        FloorSleep {
            pending: self.pending,
            deadline: black_box(Instant::now() + duration),
            key: None,
        }
    }
}

impl<const CURRENT: bool> Postpones for Floor<CURRENT> {
    fn postpone_to(mut sleep: Pin<&mut FloorSleep>, deadline: tokio::time::Instant) {
        sleep.deadline = black_box(deadline.into_std());
    }
}

impl<const CURRENT: bool> TimesOut for Floor<CURRENT> {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        let mut future = pin!(future);
        let mut sleep = None;
        poll_fn(|context| {
            if future.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            let sleep = sleep.get_or_insert_with(|| self.sleep(duration));
            Pin::new(sleep).poll(context).map(|()| false)
        })
        .await
    }
}

/// A sleep with a place in its task's slab, from its first poll on.
pub(crate) struct FloorSleep {
    pending: &'static Pending,
    deadline: Instant,
    key: Option<usize>,
}

impl FloorSleep {
    fn lock(&self) -> MutexGuard<'static, Slab<Waker>> {
        self.pending.lock().expect("nothing panics under this lock")
    }
}

impl Future for FloorSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        black_box(self.deadline);
        if let Some(key) = self.key {
            let pending = &mut self.lock()[key];
            if !pending.will_wake(context.waker()) {
                pending.clone_from(context.waker());
            }
        } else {
            let waker = context.waker().clone();
            self.key = Some(self.lock().insert(waker));
        }
        Poll::Pending
    }
}

impl Drop for FloorSleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waker = self.lock().remove(key);
            // After the lock, as in a timer: the waker's drop is foreign code.
            drop(waker);
        }
    }
}
