//! The contestants. Each implements the traits that it supports; dispatch is static, so that all are called alike.
//!
//! The floors are contestants too: the work that no timer can avoid.

mod async_io;
mod current;
mod everyone;
mod floor;
mod futures_timer;
mod lenient;
mod own;
mod pingora;
mod scoped;
mod tokio;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ::tokio::time::Instant;

pub(crate) use async_io::AsyncIo;
pub(crate) use current::Current;
pub(crate) use everyone::{Measure, Start, entrant, everyone};
pub(crate) use floor::Floor;
pub(crate) use futures_timer::FuturesTimer;
pub(crate) use lenient::Lenient;
pub(crate) use own::{Own, Thread, TokioOnly, Watched, WatchedClosely, Way};
pub(crate) use pingora::{PINGORA, PINGORA_IS_EARLY, pingora};
pub(crate) use scoped::Scoped;
pub(crate) use tokio::Tokio;

/// Makes sleeps. Each task has its own clone, as in a service.
pub(crate) trait Sleeps: Clone + Send + Sync + 'static {
    const NAME: &'static str;
    type Sleep: Future<Output = ()> + Send + 'static;

    fn sleep(&self, duration: Duration) -> Self::Sleep;

    /// A contestant that takes only durations reads the clock twice here: its deadline is some ten nanoseconds later than
    /// asked.
    fn sleep_until(&self, deadline: Instant) -> Self::Sleep {
        self.sleep(deadline - Instant::now())
    }
}

/// A contestant whose sleeps can be reset.
pub(crate) trait Postpones: Sleeps {
    /// Sets the deadline to this duration from now.
    fn postpone(sleep: Pin<&mut Self::Sleep>, duration: Duration) {
        Self::postpone_to(sleep, Instant::now() + duration);
    }

    /// Sets the deadline. A contestant that takes only durations reads the clock here.
    fn postpone_to(sleep: Pin<&mut Self::Sleep>, deadline: Instant);
}

/// A contestant that has timeouts.
pub(crate) trait TimesOut: Sleeps {
    /// Returns whether the future was ready in time.
    fn timeout<F: Future + Send>(
        &self,
        duration: Duration,
        future: F,
    ) -> impl Future<Output = bool> + Send;
}
