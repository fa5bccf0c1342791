use std::future::Future;
use std::time::Duration;

use super::{Sleeps, TimesOut};

/// Its name among the contestants.
pub(crate) const PINGORA: &str = "pingora-timeout";

/// The reason why it does not take part where lateness is measured.
pub(crate) const PINGORA_IS_EARLY: &str =
    "it fires up to a millisecond early: a deadline is first cut to whole milliseconds";

/// pingora-timeout's fast path: one shared notification for all timeouts that end in the same 10 ms, in an ordered
/// map of the thread, which is searched by a thread that wakes every 10 ms.
///
/// A `sleep` is registered by its first poll, a `timeout` by the first poll that finds its future pending. A cancel
/// removes the waker; the entry of the 10 ms stays until they have passed. So a cancel is cheap, and there is no reset.
pub(crate) fn pingora() -> impl TimesOut {
    Pingora(pingora_timeout::sleep)
}

/// Generic, since the future of an `async fn` has no name. A boxed future would have one, but would cost an allocation
/// that the other contestants do not need.
#[derive(Clone)]
struct Pingora<F>(F);

impl<F, S> Sleeps for Pingora<F>
where
    F: Fn(Duration) -> S + Clone + Send + Sync + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    const NAME: &'static str = PINGORA;
    type Sleep = S;

    fn sleep(&self, duration: Duration) -> S {
        (self.0)(duration)
    }
}

impl<F> TimesOut for Pingora<F>
where
    Self: Sleeps,
    F: Sync,
{
    async fn timeout<T: Future + Send>(&self, duration: Duration, future: T) -> bool {
        pingora_timeout::timeout(duration, future).await.is_ok()
    }
}
