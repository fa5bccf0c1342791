//! What `tokio::time` has, by the same names: [`Sleep`], [`Timeout`], [`Interval`], and the functions that make them.
//!
//! All of it is at the crate root as well. With this module, `tokio::time` can be replaced by `waterwheel::time`
//! wherever it stands: in `use tokio::time;`, in `use tokio::time::{self, sleep};`, in a path such as
//! `tokio::time::sleep(…)`.
//!
//! ```
//! use waterwheel::time::{self, Duration, Instant};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), time::error::Elapsed> {
//! let start = Instant::now();
//! time::timeout(Duration::from_secs(1), time::sleep(Duration::from_millis(5))).await?;
//! assert!(start.elapsed() >= Duration::from_millis(5));
//! # Ok(())
//! # }
//! ```

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

pub use crate::error;
#[doc(no_inline)]
pub use std::time::Duration;
#[doc(no_inline)]
pub use tokio::time::Instant;
#[cfg(feature = "test-util")]
#[doc(no_inline)]
pub use tokio::time::{advance, pause, resume};

/// As far as a relative delay reaches: about 30 years, as in tokio. On some systems an `Instant`
/// cannot tell much more.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

/// A delay from now that cannot overflow.
#[inline]
fn far_at_most(now: Instant, delay: Duration) -> Instant {
    now + delay.min(FAR)
}
