//! A sleep without a task: polled once, with a waker that stores when it was woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::contestant::Sleeps;

/// Times are nanoseconds from here, so that a waker can store one in an atomic.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

const FAR: Duration = Duration::from_secs(3600);

/// A sleep, its deadline, and its waker's record.
pub(crate) struct Armed<S> {
    sleep: Pin<Box<S>>,
    deadline: u64,
    woken: Arc<FirstWake>,
}

impl<S: Future<Output = ()>> Armed<S> {
    /// Registers the sleep with its own waker.
    pub(crate) fn new(sleep: S, deadline: u64) -> Self {
        let woken = Arc::new(FirstWake(AtomicU64::new(0)));
        let mut sleep = Box::pin(sleep);
        let waker = Waker::from(woken.clone());
        // Ready only if the deadline has passed; then the whole sample was armed too late and is discarded.
        let _ = sleep.as_mut().poll(&mut Context::from_waker(&waker));
        Self {
            sleep,
            deadline,
            woken,
        }
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// When the waker was first woken.
    pub(crate) fn woken(&self) -> Option<u64> {
        Some(self.woken.0.load(Relaxed)).filter(|&woken| woken > 0)
    }

    /// Polls once more: a wake alone does not make a sleep ready.
    pub(crate) fn is_over(&mut self) -> bool {
        self.sleep
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }
}

/// A sleep of an hour, pending throughout a sample, so that no helper thread ends with the last measured timer.
pub(crate) async fn far<S: Sleeps>(sleeps: S) -> Armed<S::Sleep> {
    Armed::new(sleeps.sleep(FAR), u64::MAX)
}

/// The time of the first wake, 0 for none.
struct FirstWake(AtomicU64);

impl Wake for FirstWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.0.load(Relaxed) == 0 {
            self.0.store(now(), Relaxed);
        }
    }
}

/// The current time.
pub(crate) fn now() -> u64 {
    nanos(ORIGIN.elapsed())
}

/// Converts a time to an instant for a timer.
pub(crate) fn instant(time: u64) -> tokio::time::Instant {
    (*ORIGIN + Duration::from_nanos(time)).into()
}

/// Converts a duration to our unit.
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Waits without using a timer of a runtime.
pub(crate) fn wait_until(time: u64) {
    thread::sleep(Duration::from_nanos(time.saturating_sub(now())));
}
