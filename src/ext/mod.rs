//! Time limits as methods of futures and streams: [`FutureExt`] and [`StreamExt`].
//!
//! The methods, and the types that the stream methods return, have the names and semantics of tokio-util's `FutureExt` and
//! tokio-stream's `StreamExt`. They run on the runtime's timer, [`Timer::current`](crate::Timer::current), except for
//! `timeout_repeating`, which takes an [`Interval`](crate::Interval) of any timer.
//!
//! | trait | methods |
//! |---|---|
//! | [`FutureExt`] | `timeout`, `timeout_at` |
//! | [`StreamExt`] | `timeout`, `timeout_repeating`, `throttle`, `chunks_timeout`, which return [`Timeout`], [`TimeoutRepeating`], [`Throttle`], [`ChunksTimeout`] |
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
//! # Differences from tokio-stream
//!
//! - A duration that overflows is limited to 30 years, where `timeout` and `throttle` of tokio-stream panic.
//! - [`StreamExt::timeout`] and [`StreamExt::timeout_repeating`] elapse even if each poll of the stream uses up the coop budget.
//!   They cancel their timer when the stream ends, not when they are dropped.
//! - [`StreamExt::chunks_timeout`] ends a chunk in time even if its stream is always ready or uses up the coop budget at each
//!   poll, as a busy tokio channel does. Such a chunk has up to 128 items more than had arrived when its limit passed.
//! - [`StreamExt::chunks_timeout`] reserves space for at most 64 items and lets a chunk grow beyond that, so `usize::MAX` means
//!   chunks of unlimited size.
//! - [`Throttle`] forwards the `size_hint` of its stream.
//! - If the runtime's timer is [shut down](crate::Timer::shutdown), everything that waits continues at once: with an `Err` whose
//!   [`was_stopped`](crate::error::Elapsed::was_stopped) is true, with an item that is not delayed, or with a chunk of the items
//!   collected so far.

mod future;
mod stream;

pub use future::{FutureExt, Timeout};
pub use stream::{ChunksTimeout, StreamExt, Throttle, TimeoutRepeating};
