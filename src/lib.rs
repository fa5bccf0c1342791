// The links of the README that lead to files, as they read here: the first definition of a link counts.
//! [architecture]: crate::_documentation::architecture
//! [benchmarks]: crate::_documentation
//! [changelog]: crate::_documentation::changelog
//! [comparison]: crate::_documentation::comparison
//! [contributing]: crate::_documentation
//! [differences]: crate::time#what-behaves-differently-from-tokiotime
//! [durable]: crate::_documentation
//! [order]: crate::time#order
//! [ports]: crate::_documentation::comparison#published-crates-switched
//! [promises]: crate::_documentation
//! [switching]: crate::_documentation::switching
//! [timer]: crate::Timer
//! [trade-offs]: crate#trade-offs
//! [waking]: crate::Waking
//! [wheel]: crate::wheel
//!
#![doc = include_str!("../README.md")]
//!
//! # The index
//!
//! | to | use |
//! |---|---|
//! | wait | [`sleep`], [`sleep_until`], which give a [`Sleep`] |
//! | limit the time of a future | [`timeout`], [`timeout_at`], which give a [`Timeout`]; [`error::Elapsed`] |
//! | let timers fire together | [`Timer::sleep_within`], [`Sleep::with_slack`] |
//! | tick | [`interval`], [`interval_at`], which give an [`Interval`], also a `Stream`; [`MissedTickBehavior`] |
//! | switch from `tokio::time` | [`time`]: all of the above by tokio's paths; when a timer is due, and in which order |
//! | read the time | [`Instant`], [`Duration`]: tokio's and std's own |
//! | call a closure later | [`Timer::call_after`], [`Timer::call_at`], [`Timer::shutdown_now`]; [`callback`]: [`callback::TimeoutHandle`], [`callback::Unrun`] |
//! | have a timer of your own, bound it, stop it, look into it | [`Timer`], [`Builder`], [`Waking`], [`Metrics`], [`Lateness`]; [`Snapshot`], [`ShardSnapshot`], [`DialSnapshot`]; [`error::Error`], [`error::BuildError`] |
//! | test in virtual time | `pause`, `advance`, `resume`: tokio's own, with the feature `test-util`; [`ManualClock`] of a timer's own, on every runtime; [`error::AdvanceError`] |
//! | wait for the wall clock, or count the time in suspension | the feature `clocks`: [`clocks::sleep_until_wall`], [`clocks::sleep_boot`], which give [`clocks::SleepUntilWall`] and [`clocks::SleepBoot`] |
//! | give hyper and hyper-util a timer | the feature `hyper`: [`Timer`] is a `hyper::rt::Timer`, and [`Sleep`] a `hyper::rt::Sleep` |
//! | limit the time of tower's services, bodies included, and pass deadlines on | the feature `tower`: `tower::{TimeoutLayer, HttpTimeoutLayer, DeadlineLayer, ClientDeadlineLayer, RespondLayer}`; the feature `tower-retry`: `tower::backoff` |
//! | limit futures and streams by methods | [`ext`]: [`ext::FutureExt`], [`ext::StreamExt`]; [`ext::Timeout`], [`ext::TimeoutRepeating`], [`ext::Throttle`], [`ext::ChunksTimeout`] |
//! | give a request a deadline that travels | [`rpc::Deadline`], [`rpc::Scoped`]; the header: [`rpc::grpc_timeout::parse`], [`rpc::grpc_timeout::format()`], [`rpc::grpc_timeout::Header`], [`rpc::grpc_timeout::InvalidTimeout`] |
//! | end a connection that is idle | [`rpc::IdleTimeout`], [`rpc::Guarded`] |
//! | queue items by deadline | [`DelayQueue`]; [`delay_queue`]: [`delay_queue::Key`], [`delay_queue::Expired`], [`delay_queue::Handle`], [`delay_queue::Closed`] |
//! | keep anything by deadline, without tokio | [`wheel`]: [`wheel::Wheel`], [`wheel::Tick`], [`wheel::Ticks`], [`wheel::Key`], [`wheel::Expire`], [`wheel::Verdict`], [`wheel::Progress`], [`wheel::Resolution`], [`wheel::InvalidResolution`] |
//!
//! # Trade-offs
//!
//! - The driver is a task among yours. If every worker is blocked, no task is woken until one is
//!   free again.
//! - Each shard has dials of its own; [`Builder::resolution`] has their size.
//! - A shard's slab of entries grows to its peak, and stays there until the shard has no timer left.
//! - The free functions look up the runtime's timer at each call; a `timeout` in a spawned task, only when its future is pending. A [`Timer`]
//!   of your own is not looked up.
//! - The first poll of a delay of a second or more, within a task, trusts the time that was read when the future was made. If the
//!   deadline has passed by then, the poll is pending, and the driver wakes the task at once. Exception: if all workers of the timer's
//!   runtime are blocked and the task needs none (on another runtime, in a `LocalSet` or in `spawn_blocking`), the driver wakes
//!   it when a worker is free. A clock that can be paused is always read.

#![forbid(unsafe_code)]

#[cfg(any(doc, doctest))]
pub mod _documentation;
pub mod callback;
#[cfg(feature = "clocks")]
pub mod clocks;
pub mod delay_queue;
pub mod error;
pub mod ext;
pub mod rpc;
pub mod time;
pub mod wheel;

mod clock;
mod driver;
mod integration;
mod sync;

pub use clock::ManualClock;
#[doc(inline)]
pub use delay_queue::DelayQueue;
pub use driver::{
    Builder, DialSnapshot, Lateness, Metrics, ShardSnapshot, Snapshot, Timer, Waking,
};
#[cfg(feature = "tower")]
pub use integration::tower;
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
