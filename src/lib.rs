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
//! # Switching
//!
//! Replace `tokio::time` by [`waterwheel::time`](time), as `sed 's/tokio::time/waterwheel::time/g'` does. The names and
//! signatures are the same, and tokio's own tests of them pass. [What behaves
//! differently](time#what-behaves-differently-from-tokiotime) is one list.
//!
//! | in place of | write |
//! |---|---|
//! | `use tokio::time;` | `use waterwheel::time;` |
//! | `use tokio::time::{self, sleep};` | `use waterwheel::time::{self, sleep};` |
//! | `tokio::time::sleep(…)` | `waterwheel::time::sleep(…)` |
//! | `use tokio::{net::TcpStream, time::sleep};`, which is edited by hand | `use tokio::net::TcpStream;` and `use waterwheel::time::sleep;` |
//!
//! # The index
//!
//! | to | use |
//! |---|---|
//! | wait | [`sleep`], [`sleep_until`], which give a [`Sleep`] |
//! | limit the time of a future | [`timeout`], [`timeout_at`], which give a [`Timeout`]; [`error::Elapsed`] |
//! | tick | [`interval`], [`interval_at`], which give an [`Interval`], also a `Stream`; [`MissedTickBehavior`] |
//! | switch from `tokio::time` | [`time`]: all of the above by tokio's paths; when a timer is due, and in which order |
//! | read the time | [`Instant`], [`Duration`]: tokio's and std's own |
//! | have a timer of your own, bound it, stop it, look into it | [`Timer`], [`Builder`], [`Waking`], [`Metrics`], [`Lateness`]; [`error::Error`], [`error::BuildError`] |
//! | test in virtual time | `pause`, `advance`, `resume`: tokio's own, with the feature `test-util` |
//! | keep anything by deadline, without tokio | [`wheel`]: [`wheel::Wheel`], [`wheel::Tick`], [`wheel::Ticks`], [`wheel::Key`], [`wheel::Expire`], [`wheel::Verdict`], [`wheel::Progress`], [`wheel::Resolution`], [`wheel::InvalidResolution`] |
//!
//! # How it works
//!
//! Timers are filed in the slots of a [`wheel`], whose dials are those of a clock: a second of
//! ticks, then seconds, minutes, hours, days. A timer has one wheel for each
//! worker thread, a *shard*, with a lock of its own. A future registers with the shard of the
//! thread that polls it first. One task, the *driver*, turns the wheels when something is due, and sleeps otherwise. It runs on
//! your runtime, whose clock wakes it. A helper thread, the *wake-up thread*, one for the whole process, sees when a blocked worker
//! holds that clock, and has another worker turn the wheels. [`Waking`] has the other ways.
//!
//! # What it does
//!
//! - A timer is [due](time#when-a-timer-is-due) when its tick has come: the deadline is rounded up to a tick, and now is rounded
//!   down. So it is never early. It is late by at most a tick, the millisecond or two that tokio's clock may take to wake a worker, and what
//!   the scheduler takes. By default a tick is 100 µs, or a millisecond on a clock that can be paused.
//! - A poll past its tick is ready, however late the driver is.
//! - Due timers of a shard are woken in order of tick, equal ticks first in, first out. [Order](time#order) says how
//!   many at a time.
//! - A dropped future gives its place back at once. A deadline that is pushed back costs one
//!   atomic write.
//! - On a running clock, a million timers due at one tick do not hold up the timers that are due later.
//! - With nothing due, nothing runs: no ticking.
//! - With tokio's clock paused, all timers follow it.
//!
//! # What it does not do
//!
//! - Promise an order across shards, or in which woken tasks run on a multi-thread runtime.
//! - Survive a restart, or run on many machines. Durable and distributed timers are not there yet,
//!   nor are calendars (cron) and a delay queue.
//! - Change what other crates do: code within them that calls `tokio::time` keeps tokio's timers.
//!
//! # Trade-offs
//!
//! - The wake-up thread is a thread of its own. [`Waking`] says what changes without it.
//! - The driver is a task among yours. If every worker is blocked, no task is woken until one is
//!   free again.
//! - A shard's slab of entries grows to its peak, and stays there until the shard has no timer left.
//! - The free functions look up the runtime's timer at each call; a [`Timer`] of your own is not
//!   looked up.
//! - The first poll of a delay of a second or more, within a task, trusts the time that was read when the future was made. If the
//!   deadline has passed by then, the poll is pending, and the driver wakes the task at once. Exception: if all workers of the timer's
//!   runtime are blocked and the task needs none (on another runtime, in a `LocalSet` or in `spawn_blocking`), the driver wakes
//!   it when a worker is free. A clock that can be paused is always read.

#![forbid(unsafe_code)]

pub mod error;
pub mod time;
pub mod wheel;

mod clock;
mod driver;
mod sync;

pub use driver::{Builder, Lateness, Metrics, Timer, Waking};
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
