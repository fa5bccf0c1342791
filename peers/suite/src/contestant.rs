//! Who takes part: one trait, static dispatch, the same path for all.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::Timer;

/// A maker of sleeps. Each task has a clone of its own, as a service would.
pub(crate) trait Contestant: Clone + Send + Sync + 'static {
    const NAME: &'static str;
    type Sleep: Future<Output = ()> + Send + 'static;

    /// Called once a sample, on a worker of the runtime that is to be measured.
    fn start() -> Self;
    fn sleep(&self, duration: Duration) -> Self::Sleep;
    fn sleep_until(&self, deadline: Instant) -> Self::Sleep;
}

/// `tokio::time`, as it comes.
#[derive(Clone)]
pub(crate) struct Tokio;

impl Contestant for Tokio {
    const NAME: &'static str = "tokio";
    type Sleep = tokio::time::Sleep;

    fn start() -> Self {
        Self
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Self::Sleep {
        tokio::time::sleep_until(deadline)
    }
}

/// waterwheel's free functions: the timer of the current runtime, looked up by each call.
#[derive(Clone)]
pub(crate) struct Ambient;

impl Contestant for Ambient {
    const NAME: &'static str = "ambient";
    type Sleep = waterwheel::Sleep;

    fn start() -> Self {
        Self
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        waterwheel::sleep(duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Self::Sleep {
        waterwheel::sleep_until(deadline)
    }
}

/// A waterwheel [`Timer`] of one's own, with the bell (the default) or without.
#[derive(Clone)]
pub(crate) struct Own<const BELL: bool>(Timer);

impl<const BELL: bool> Contestant for Own<BELL> {
    const NAME: &'static str = if BELL { "own" } else { "own, no bell" };
    type Sleep = waterwheel::Sleep;

    fn start() -> Self {
        let builder = Timer::builder();
        let builder = if BELL { builder } else { builder.bell(false) };
        Self(builder.start().expect("a timer starts on a runtime"))
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Self::Sleep {
        self.0.sleep_until(deadline)
    }
}
