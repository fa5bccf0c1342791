//! Shared helpers of the crate's unit tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use tokio::runtime::{Builder, Runtime};

use crate::clock::Clock;
use crate::wheel::Resolution;

/// A waker that counts how often it is woken.
#[derive(Default)]
pub(crate) struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    pub(crate) fn new() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes::default());
        (Arc::clone(&wakes), Waker::from(wakes))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// One whose clock stands still.
pub(crate) fn paused() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

pub(crate) fn one_worker() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_time().build().unwrap()
}

/// The clock of a runtime, with ticks of a millisecond.
pub(crate) fn clock_of(runtime: &Runtime) -> Clock {
    let home = runtime.handle().clone();
    Clock::new(home, None, Some(Resolution::MILLISECOND))
}
