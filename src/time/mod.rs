//! What `tokio::time` has, by the same names: [`Sleep`], [`Timeout`], [`Interval`], and the functions that make them.
//!
//! All of it is at the crate root as well. With this module, `tokio::time` can be replaced by `waterwheel::time`
//! wherever it stands; [the page on switching](crate::_documentation::switching#one-crate) shows each form of import.
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
//! When its *tick* has come: the deadline, rounded up to a tick of the timer, is not after now, rounded down.
//! [`Builder::resolution`](crate::Builder::resolution) says how long a tick is. So no timer is early, and:
//!
//! - A timer whose deadline is a tick or more in the past is ready at the first poll.
//! - A timer whose deadline is now, as of `sleep(Duration::ZERO)` or [`Interval::reset_immediately`], completes at the end of
//!   the running tick. `loop { sleep(Duration::ZERO).await }` iterates once a tick at most.
//! - On a paused clock that stands at a whole tick, a timer whose deadline is now is ready at once.
//! - A poll past the tick is ready, however late the driver is, but for [one case](crate#trade-offs).
//!
//! # Order
//!
//! Within a shard, due timers are woken in order of tick, and timers of one tick first in, first out. A timer is filed by its
//! first poll, by a reset to earlier, and by the next poll after a reset if it has fired. A timer that was reset to later may
//! come anywhere among its equals.
//!
//! - On a clock that is or was paused, this holds for all that is due, however far the clock has jumped.
//! - On a running clock it holds for the first turn after the driver slept, also after a stall of several seconds. That turn
//!   wakes up to 1024 timers of each shard, and more if the driver had to wait for a worker. Of a tick that it does not
//!   finish, it wakes the first timers and the last. The turns after it wake the oldest and the freshest timers alternately,
//!   so that a herd does not hold up its neighbours.
//!
//! Not promised are the order across shards, of which there is one a worker, and the order in which woken tasks run on a
//! multi-thread runtime.
//!
//! # When a runtime ends
//!
//! While a runtime is dropped or [shut down in the background](tokio::runtime::Runtime::shutdown_background), a task that is in the middle
//! of a poll runs to its next `.await`, and is dropped there. As with `tokio::time`:
//!
//! - In such a task everything of this crate is pending until its tick. Nothing completes early, and nothing panics at the call.
//! - Elsewhere (in `Handle::block_on`, `spawn_blocking`, another runtime) a future of a timer of that runtime is pending until the
//!   runtime has dropped its last task. That wakes it, and its next poll panics.
//!
//! Beyond tokio, the forms that can say so do not panic once the runtime has ended: the `try_` forms give an error for which
//! [`is_shutdown`](crate::error::Error::is_shutdown) is true, an interval taken as a stream ends, and so does a
//! [`DelayQueue`](crate::DelayQueue). A [drain](crate::Timer::drain) completes, and [callbacks](crate::callback) are cancelled.
//!
//! The timer's own [`shutdown`](crate::Timer::shutdown) is different: it makes everything that is pending ready at once.
//!
//! # What behaves differently from `tokio::time`
//!
#![doc = include_str!("differences.md")]

mod interval;
mod missed;
mod phase;
mod slack;
mod sleep;
mod start;
mod timeout;
#[cfg(feature = "hyper")]
mod unrefused;

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
