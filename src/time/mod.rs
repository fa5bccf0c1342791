//! A drop-in replacement for `tokio::time`: [`Sleep`], [`Timeout`], [`Interval`] and the functions that create them, under the
//! same names.
//!
//! All of it is also available at the crate root. With this module, `tokio::time` can be replaced by `waterwheel::time` wherever
//! it appears; [the guide to switching](crate::_documentation::switching#one-crate) shows each form of import. With the feature
//! `test-util`, this module and the crate root also re-export tokio's `pause`, `advance` and `resume`.
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
//!
//! # When a timer is due
//!
//! A timer is due when its *tick* has been reached: when the deadline, rounded up to a tick of the timer, is not after the
//! current time, rounded down to a tick. The length of a tick is set by [`Builder::resolution`](crate::Builder::resolution). No
//! timer is therefore early, and:
//!
//! - A timer whose deadline is at least one tick in the past is ready at its first poll.
//! - A timer whose deadline is now, as with `sleep(Duration::ZERO)` or [`Interval::reset_immediately`], completes at the end of
//!   the current tick. `loop { sleep(Duration::ZERO).await }` iterates at most once per tick.
//! - On a paused clock that stands exactly on a tick, a timer whose deadline is now is ready at once.
//! - A poll after the tick is ready no matter how far behind the driver is, with [one exception](crate#trade-offs).
//!
//! # Order
//!
//! Within a shard, due timers are woken in order of their ticks, and timers of the same tick first in, first out. A timer takes
//! its place in this order at its first poll, when it is reset to an earlier deadline, and, if it has already fired, at the next
//! poll after a reset. A timer that was reset to a later deadline may come up anywhere among the timers of its tick.
//!
//! - On a clock that is or was paused, this holds for all due timers, however far the clock has jumped.
//! - On a running clock, it holds for the first turn after the driver slept, even after a stall of several seconds. That turn
//!   wakes up to 1024 timers of each shard, and more if the driver had to wait for a worker. If the turn ends in the middle of a
//!   tick, it has woken the first and the last timers of that tick. Later turns alternate between the oldest and the most recent
//!   timers, so that a herd does not hold up its neighbours.
//!
//! Two orders are not guaranteed: the order across shards (there is one shard per worker), and the order in which woken tasks run
//! on a multi-thread runtime.
//!
//! # When a runtime ends
//!
//! While a runtime is being dropped or [shut down in the background](tokio::runtime::Runtime::shutdown_background), a task that
//! is in the middle of a poll runs to its next `.await` and is dropped there. As with `tokio::time`:
//!
//! - In such a task, the futures of this crate stay pending until their tick. Nothing completes early, and no call panics.
//! - Elsewhere (in `Handle::block_on`, in `spawn_blocking`, or on another runtime), a future on a timer of that runtime stays
//!   pending until the runtime has dropped its last task. The future is then woken, and its next poll panics.
//!
//! Unlike in tokio, the calls that can report the end of the runtime do not panic: the `try_` methods return an error for which
//! [`is_shutdown`](crate::error::Error::is_shutdown) is true, and an interval that is used as a stream ends, as does a
//! [`DelayQueue`](crate::DelayQueue). A [drain](crate::Timer::drain) completes, and [callbacks](crate::callback) are cancelled.
//!
//! The timer's own [`shutdown`](crate::Timer::shutdown) is different: it makes everything that is pending ready at once.
//!
//! # Differences from `tokio::time`
//!
#![doc = include_str!("differences.md")]

mod interval;
mod missed;
mod slack;
mod sleep;
mod start;
mod timeout;
pub use interval::{Interval, interval, interval_at};
pub use missed::MissedTickBehavior;
pub use sleep::Sleep;
pub use start::{sleep, sleep_until};
pub use timeout::{Timeout, timeout, timeout_at};

pub(crate) use sleep::RUNTIME_IS_OVER;
pub(crate) use timeout::{poll_delay, poll_limit};

pub use crate::error;
#[doc(no_inline)]
pub use std::time::Duration;
#[doc(no_inline)]
pub use tokio::time::Instant;
#[cfg(feature = "test-util")]
#[doc(no_inline)]
pub use tokio::time::{advance, pause, resume};

/// The longest relative delay: about 30 years, as in tokio. On some systems the range of `Instant` is not much larger.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

/// A delay from now that cannot overflow.
#[inline]
fn far_at_most(now: Instant, delay: Duration) -> Instant {
    now + delay.min(FAR)
}
