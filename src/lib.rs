//! Timers for tokio that scale: a hierarchical timing wheel behind the API of `tokio::time`.
//!
//! **Never early, never lost**: nothing completes before its deadline, and nothing that is armed
//! is forgotten. **Fast where services spend their time**: arming and cancelling, which is what
//! 99 of 100 timeouts do, and pushing deadlines back. **No `unsafe`**, anywhere.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() {
//! use waterwheel::{Duration, sleep, timeout};
//!
//! let answer = timeout(Duration::from_secs(30), async {
//!     sleep(Duration::from_millis(5)).await;
//!     42
//! });
//! assert_eq!(answer.await, Ok(42));
//! # }
//! ```
//!
//! To switch, change `use tokio::time::…` to `use waterwheel::…`: the names and signatures are
//! the same, and tokio's own tests of them pass.
//!
//! # The index
//!
//! | to | use |
//! |---|---|
//! | wait | [`sleep`], [`sleep_until`], which give a [`Sleep`] |
//! | limit the time of a future | [`timeout`], [`timeout_at`], which give a [`Timeout`]; [`error::Elapsed`] |
//! | tick | [`interval`], [`interval_at`], which give an [`Interval`], also a `Stream`; [`MissedTickBehavior`] |
//! | tell time | [`Instant`], [`Duration`]: tokio's and std's own |
//! | have a timer of your own, bound it, stop it, look into it | [`Timer`], [`Builder`], [`Metrics`], [`Lateness`]; [`error::Error`], [`error::BuildError`] |
//! | test in virtual time | `pause`, `advance`, `resume`: tokio's own, with the feature `test-util` |
//! | keep anything by deadline, without tokio | [`wheel`]: [`wheel::Wheel`], [`wheel::Tick`], [`wheel::Key`], [`wheel::Verdict`], [`wheel::Progress`], [`wheel::Resolution`], [`wheel::InvalidResolution`] |
//!
//! # How it works
//!
//! Timers are filed in the slots of a [`wheel`], whose dials are those of a clock: a thousand
//! slots of a millisecond, then seconds, minutes, hours, days. A timer has one wheel for each
//! worker thread, a *shard*, with a lock of its own. A future registers with the shard of the
//! thread that polls it first. One task, the *driver*, turns the wheels when something is due,
//! and sleeps otherwise; it runs on your runtime. A helper thread, the *bell*, one for the whole
//! process, wakes the driver on time even when a worker is blocked.
//!
//! # What it does
//!
//! - A deadline is rounded up to a tick, by default a millisecond; now is rounded down. So a
//!   timer is never early, and late by at most a tick and what the scheduler takes.
//! - A poll past the deadline is ready, however late the driver is.
//! - A dropped future gives its place back at once. A deadline that is pushed back costs one
//!   atomic write.
//! - A million timers due at one tick do not hold up those that are due later.
//! - With nothing due, nothing runs: no ticking.
//! - With tokio's clock paused, all timers follow it.
//!
//! # What it does not do
//!
//! - Fire timers of equal deadline in any promised order.
//! - Survive a restart, or run on many machines. Durable and distributed timers are not there yet,
//!   nor are calendars (cron) and a delay queue.
//! - Change what other crates do: code within them that calls `tokio::time` keeps tokio's timers.
//!
//! # Trade-offs
//!
//! - The bell is a thread. [`Builder::bell`] tells what is lost without it.
//! - The driver is a task among yours. If every worker is blocked, no task is woken until one is
//!   free again.
//! - A shard's slab of records grows to its peak and stays there until the timer is gone.
//! - The free functions look up the runtime's timer at each call; a [`Timer`] of your own is not
//!   looked up.
//! - The first poll of a delay of a second or more, on a multi-thread runtime, trusts the clock
//!   read that made the future. If the deadline has passed by then all the same, the poll is
//!   pending and the driver wakes the task at once.

#![forbid(unsafe_code)]

pub mod error;
pub mod time;
pub mod wheel;

mod driver;
mod sync;

pub use driver::{Builder, Lateness, Metrics, Timer};
#[doc(inline)]
pub use time::{
    Interval, MissedTickBehavior, Sleep, Timeout, interval, interval_at, sleep, sleep_until,
    timeout, timeout_at,
};

#[doc(no_inline)]
pub use time::{Duration, Instant};

#[cfg(feature = "test-util")]
#[doc(no_inline)]
pub use time::{advance, pause, resume};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
