//! Time limits as methods of futures and streams: [`FutureExt`] and [`StreamExt`].
//!
//! The names and their meaning are those of tokio-util's `FutureExt` and of tokio-stream's `StreamExt`, and so are the names of the
//! types that the methods of streams return. All of it is on the runtime's timer, [`Timer::current`](crate::Timer::current); but
//! `timeout_repeating` takes an [`Interval`](crate::Interval), of whichever timer.
//!
//! | file | concept |
//! |---|---|
//! | `future` | [`FutureExt`]: `timeout`, `timeout_at` |
//! | `stream` | [`StreamExt`]: `timeout`, `timeout_repeating`, `throttle`, `chunks_timeout` |
//! | `timeout`, `timeout_repeating`, `throttle`, `chunks_timeout` | the streams that they return: [`Timeout`], [`TimeoutRepeating`], [`Throttle`], [`ChunksTimeout`] |
//!
//! ```
//! use waterwheel::Duration;
//! use waterwheel::ext::FutureExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # let (_sender, receiver) = tokio::sync::oneshot::channel::<()>();
//! assert!(receiver.timeout(Duration::from_millis(5)).await.is_err());
//! # }
//! ```
//!
//! # What behaves differently from tokio-stream
//!
//! - A duration that overflows is cut to 30 years, where `timeout` and `throttle` of tokio-stream panic.
//! - [`StreamExt::timeout`] and [`StreamExt::timeout_repeating`] elapse even if each poll of the stream uses up the coop budget, and
//!   cancel their timer when the stream ends, not when they are dropped.
//! - [`StreamExt::chunks_timeout`] ends a chunk in time also if its stream uses up the coop budget at each poll, as a busy channel of
//!   tokio's does, or is always ready. A chunk then has up to 128 items more than had come when its limit passed.
//! - [`StreamExt::chunks_timeout`] sets room aside for 64 items at most, and lets a chunk grow beyond that; so `usize::MAX` means
//!   chunks without a bound.
//! - [`Throttle`] passes on its stream's `size_hint`.
//! - If the runtime's timer is [shut down](crate::Timer::shutdown), what waits goes on at once: an `Err` whose
//!   [`was_stopped`](crate::error::Elapsed::was_stopped) is true, an item without its delay, a chunk with what it has.

mod chunks_timeout;
mod future;
mod stream;
mod throttle;
mod timeout;
mod timeout_repeating;

pub use chunks_timeout::ChunksTimeout;
pub use future::FutureExt;
pub use stream::StreamExt;
pub use throttle::Throttle;
pub use timeout::Timeout;
pub use timeout_repeating::TimeoutRepeating;
