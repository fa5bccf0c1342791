use std::future::Future;
use std::time::Duration;

use super::{Sleeps, TimesOut};

/// Its name among the contestants.
pub(crate) const PINGORA: &str = "pingora-timeout";

/// Why it is not where lateness counts.
pub(crate) const PINGORA_IS_EARLY: &str =
    "it fires up to a millisecond early: a deadline is first cut to whole milliseconds";

/// pingora-timeout's fast path: one shared notification for all that end in the same 10 ms, in an ordered map of the
/// thread, looked through by a thread that wakes every 10 ms.
///
/// `sleep` is registered by its first poll and `timeout` when its future is first pending. Neither is ever taken out again
/// before its time, only its waker is: that is what makes a cancel cheap, and why there is no reset.
pub(crate) fn pingora() -> impl TimesOut {
    Pingora(pingora_timeout::sleep)
}

/// Generic since the future of an `async fn` has no name. Boxed it would have one, for the price of an allocation that
/// the others need not pay.
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
