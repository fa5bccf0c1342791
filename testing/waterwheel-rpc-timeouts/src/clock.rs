//! The timers under test: one trait, implemented by waterwheel and by tokio. The two implementations differ in a path, as a
//! drop-in replacement should, and in two things that waterwheel adds: its `Interval` is a `Stream`, and its `Timer` has metrics.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::TryFutureExt as _;
use futures::stream::{self, Stream, StreamExt as _};

/// Everything that the load needs of a timer library.
pub(crate) trait Clock: Send + Sync + 'static {
    const NAME: &'static str;

    type Sleep: Future<Output = ()> + Send;

    fn sleep(delay: Duration) -> Self::Sleep;

    /// Resets an armed timer to `delay` from now.
    fn push_back(sleep: Pin<&mut Self::Sleep>, delay: Duration);

    fn timeout<F: Future + Send>(
        limit: Duration,
        work: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> + Send;

    /// Yields at once, then once a period.
    fn heartbeats(period: Duration) -> impl Stream<Item = ()> + Send;

    /// The timer's own counters. `None` if it has none.
    fn books() -> Option<Books>;
}

pub(crate) struct Waterwheel;

impl Clock for Waterwheel {
    const NAME: &'static str = "waterwheel";

    type Sleep = waterwheel::Sleep;

    fn sleep(delay: Duration) -> Self::Sleep {
        waterwheel::sleep(delay)
    }

    fn push_back(sleep: Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.reset(waterwheel::Instant::now() + delay);
    }

    fn timeout<F: Future + Send>(
        limit: Duration,
        work: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> + Send {
        waterwheel::timeout(limit, work).map_err(|_| TimedOut)
    }

    fn heartbeats(period: Duration) -> impl Stream<Item = ()> + Send {
        waterwheel::interval(period).map(|_| ())
    }

    fn books() -> Option<Books> {
        let metrics = waterwheel::Timer::current().metrics();
        Some(Books {
            armed: metrics.armed(),
            fired: metrics.fired(),
            cancelled: metrics.cancelled(),
            stopped: metrics.stopped(),
            pending: metrics.pending(),
        })
    }
}

pub(crate) struct Tokio;

impl Clock for Tokio {
    const NAME: &'static str = "tokio::time";

    type Sleep = tokio::time::Sleep;

    fn sleep(delay: Duration) -> Self::Sleep {
        tokio::time::sleep(delay)
    }

    fn push_back(sleep: Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.reset(tokio::time::Instant::now() + delay);
    }

    fn timeout<F: Future + Send>(
        limit: Duration,
        work: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> + Send {
        tokio::time::timeout(limit, work).map_err(|_| TimedOut)
    }

    fn heartbeats(period: Duration) -> impl Stream<Item = ()> + Send {
        let mut interval = tokio::time::interval(period);
        stream::poll_fn(move |context| interval.poll_tick(context).map(|_| Some(())))
    }

    fn books() -> Option<Books> {
        None
    }
}

/// The work was not done by its deadline.
#[derive(Debug)]
pub(crate) struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("timed out")
    }
}

impl std::error::Error for TimedOut {}

/// How many timers a [`Clock`] has armed and how they ended, by its own counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Books {
    pub(crate) armed: u64,
    pub(crate) fired: u64,
    pub(crate) cancelled: u64,
    pub(crate) stopped: u64,
    pub(crate) pending: u64,
}

impl Books {
    /// Whether every timer has ended exactly once and none is pending. Must hold once the load is over.
    pub(crate) fn settled(&self) -> bool {
        self.pending == 0 && self.armed == self.fired + self.cancelled + self.stopped
    }
}
