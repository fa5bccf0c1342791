use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::{Sleep, Timer, Waking};

use super::{Postpones, Sleeps, TimesOut};

/// A separate waterwheel [`Timer`], whose driver is woken in one of four ways.
#[derive(Clone)]
pub(crate) struct Own<W> {
    pub(crate) timer: Timer,
    way: PhantomData<W>,
}

/// A [`Waking`] as a type, so that each has its own row.
pub(crate) trait Way: Clone + Send + Sync + 'static {
    const NAME: &'static str;
    const WAKING: Waking;
}

/// The default, which also wakes the runtime's timer.
#[derive(Clone)]
pub(crate) enum Watched {}

#[derive(Clone)]
pub(crate) enum WatchedClosely {}

#[derive(Clone)]
pub(crate) enum Thread {}

#[derive(Clone)]
pub(crate) enum TokioOnly {}

impl Way for Watched {
    const NAME: &'static str = "own";
    const WAKING: Waking = Waking::Watched;
}

impl Way for WatchedClosely {
    const NAME: &'static str = "own, watched closely";
    const WAKING: Waking = Waking::WatchedClosely;
}

impl Way for Thread {
    const NAME: &'static str = "own, thread";
    const WAKING: Waking = Waking::Thread;
}

impl Way for TokioOnly {
    const NAME: &'static str = "own, tokio only";
    const WAKING: Waking = Waking::TokioOnly;
}

impl<W: Way> Own<W> {
    pub(crate) fn start() -> Self {
        let timer = Timer::builder().waking(W::WAKING).start();
        Self {
            timer: timer.expect("a timer starts on a runtime"),
            way: PhantomData,
        }
    }
}

impl<W: Way> Sleeps for Own<W> {
    const NAME: &'static str = W::NAME;
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self.timer.sleep(duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.timer.sleep_until(deadline)
    }
}

impl<W: Way> Postpones for Own<W> {
    fn postpone_to(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.reset(deadline);
    }
}

impl<W: Way> TimesOut for Own<W> {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        self.timer.timeout(duration, future).await.is_ok()
    }
}
