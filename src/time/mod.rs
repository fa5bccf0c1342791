//! What users await: [`Sleep`], [`Timeout`], [`Interval`], and the functions that make them.

mod interval;
mod missed;
mod phase;
mod sleep;
mod start;
mod timeout;

pub use interval::{Interval, interval, interval_at};
pub use missed::MissedTickBehavior;
pub use sleep::Sleep;
pub use start::{sleep, sleep_until};
pub use timeout::{Timeout, timeout, timeout_at};

use tokio::time::{Duration, Instant};

/// As far as a relative delay reaches: about 30 years, as in tokio. On some systems an `Instant`
/// cannot tell much more.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

/// A delay from now that cannot overflow.
#[inline]
fn far_at_most(now: Instant, delay: Duration) -> Instant {
    now + delay.min(FAR)
}
