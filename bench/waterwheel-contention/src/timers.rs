//! The two timer libraries, behind one trait.

use std::time::Duration;

/// The instant type of both libraries.
pub(crate) use tokio::time::Instant;

pub(crate) trait Timers: 'static {
    const NAME: &'static str;
    type Sleep: Future<Output = ()> + Send + 'static;

    fn sleep(duration: Duration) -> Self::Sleep;
    fn sleep_until(deadline: Instant) -> Self::Sleep;
    /// Checks the library's own counters of the current runtime now that no timer is pending, and returns any problem.
    fn complaint() -> Option<String>;
}

pub(crate) struct Tokio;

impl Timers for Tokio {
    const NAME: &'static str = "tokio::time";
    type Sleep = tokio::time::Sleep;

    fn sleep(duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    fn sleep_until(deadline: Instant) -> Self::Sleep {
        tokio::time::sleep_until(deadline)
    }

    fn complaint() -> Option<String> {
        None
    }
}

/// The drop-in replacement, as it is used after the switch.
pub(crate) struct Waterwheel;

impl Timers for Waterwheel {
    const NAME: &'static str = "waterwheel";
    type Sleep = waterwheel::Sleep;

    fn sleep(duration: Duration) -> Self::Sleep {
        waterwheel::time::sleep(duration)
    }

    fn sleep_until(deadline: Instant) -> Self::Sleep {
        waterwheel::time::sleep_until(deadline)
    }

    fn complaint() -> Option<String> {
        let metrics = waterwheel::Timer::current().metrics();
        let (armed, fired) = (metrics.armed(), metrics.fired());
        let (cancelled, pending) = (metrics.cancelled(), metrics.pending());
        (pending != 0 || armed != fired + cancelled).then(|| {
            format!("{armed} timers armed, but {fired} fired, {cancelled} cancelled and {pending} pending")
        })
    }
}
