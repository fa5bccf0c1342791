use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::{Sleep, Timer, Waking};

use super::{Postpones, Sleeps, TimesOut};

/// A waterwheel [`Timer`] of one's own, with the wakeup thread (the default) or without.
#[derive(Clone)]
pub(crate) struct Own<const WAKEUP_THREAD: bool>(pub(crate) Timer);

impl<const WAKEUP_THREAD: bool> Own<WAKEUP_THREAD> {
    pub(crate) fn start() -> Self {
        let builder = Timer::builder();
        let builder = if WAKEUP_THREAD {
            builder
        } else {
            builder.waking(Waking::Frugal)
        };
        Self(builder.start().expect("a timer starts on a runtime"))
    }
}

impl Own<true> {
    /// With another tick than a millisecond.
    pub(crate) fn with_resolution(tick: Duration) -> Self {
        let timer = Timer::builder().resolution(tick).start();
        Self(timer.expect("a timer of this resolution"))
    }
}

impl<const WAKEUP_THREAD: bool> Sleeps for Own<WAKEUP_THREAD> {
    const NAME: &'static str = if WAKEUP_THREAD {
        "own"
    } else {
        "own, no wakeup thread"
    };
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.sleep(duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.0.sleep_until(deadline)
    }
}

impl<const WAKEUP_THREAD: bool> Postpones for Own<WAKEUP_THREAD> {
    fn postpone(sleep: Pin<&mut Sleep>, duration: Duration) {
        sleep.reset(Instant::now() + duration);
    }
}

impl<const WAKEUP_THREAD: bool> TimesOut for Own<WAKEUP_THREAD> {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        self.0.timeout(duration, future).await.is_ok()
    }
}
