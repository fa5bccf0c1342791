//! The timers under test: one trait, implemented by waterwheel and by tokio. The two implementations differ in a path, as a
//! drop-in replacement should, and in two things that waterwheel adds: its `Interval` is a `Stream`, and its `Timer` has metrics.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use waterwheel::Metrics;

/// Everything that the load needs of a timer library.
pub(crate) trait Clock: Send + Sync + 'static {
    const NAME: &'static str;

    type Sleep: Future<Output = ()> + Send;

    fn sleep(delay: Duration) -> Self::Sleep;

    /// Resets an armed timer to `delay` from now.
    fn push_back(sleep: Pin<&mut Self::Sleep>, delay: Duration);

    /// `None` if the work was not done by its deadline.
    fn timeout<F: Future + Send>(
        limit: Duration,
        work: F,
    ) -> impl Future<Output = Option<F::Output>> + Send;

    /// Yields at once, then once a period.
    fn heartbeats(period: Duration) -> impl Stream<Item = ()> + Send;

    /// The timer's own counters. `None` if it has none.
    fn books() -> Option<Metrics>;
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

    async fn timeout<F: Future + Send>(limit: Duration, work: F) -> Option<F::Output> {
        waterwheel::timeout(limit, work).await.ok()
    }

    fn heartbeats(period: Duration) -> impl Stream<Item = ()> + Send {
        waterwheel::interval(period).map(|_| ())
    }

    fn books() -> Option<Metrics> {
        Some(waterwheel::Timer::current().metrics())
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

    async fn timeout<F: Future + Send>(limit: Duration, work: F) -> Option<F::Output> {
        tokio::time::timeout(limit, work).await.ok()
    }

    fn heartbeats(period: Duration) -> impl Stream<Item = ()> + Send {
        let mut interval = tokio::time::interval(period);
        stream::poll_fn(move |context| interval.poll_tick(context).map(|_| Some(())))
    }

    fn books() -> Option<Metrics> {
        None
    }
}
