// The links of the README that lead to files, as they read here: the first definition of a link counts.
//! [architecture]: crate::_documentation::architecture
//! [benchmarks]: crate::_documentation
//! [changelog]: crate::_documentation::changelog
//! [comparison]: crate::_documentation::comparison
//! [contributing]: crate::_documentation
//! [differences]: crate::time#differences-from-tokiotime
//! [durable]: crate::_documentation
//! [ports]: crate::_documentation::comparison#published-crates-switched
//! [promises]: crate::_documentation
//! [releasing]: crate::_documentation
//! [schedule]: https://docs.rs/waterwheel-schedule
//! [security]: crate::_documentation
//! [switching]: crate::_documentation::switching
//! [timer]: crate::Timer
//! [trade-offs]: crate#trade-offs
//! [waking]: crate::Waking
//! [wheel]: crate::wheel
//!
#![doc = include_str!("../README.md")]
//!
//! # Index
//!
//! | To | use |
//! |---|---|
//! | wait | [`sleep`], [`sleep_until`], which return a [`Sleep`] |
//! | limit the time of a future | [`timeout`], [`timeout_at`], which return a [`Timeout`]; [`error::Elapsed`] |
//! | let timers fire together | [`Timer::sleep_within`], [`Sleep::with_slack`] |
//! | tick periodically | [`interval`], [`interval_at`], which return an [`Interval`], also a `Stream`; [`MissedTickBehavior`] |
//! | switch from `tokio::time` | [`time`]: all of the above under tokio's paths; when a timer is due, and in which order |
//! | read the time | [`Instant`], [`Duration`]: tokio's and std's own |
//! | call a closure later | [`Timer::call_after`], [`Timer::call_at`], [`Timer::shutdown_now`]; [`callback`]: [`callback::TimeoutHandle`], [`callback::Unrun`] |
//! | have a timer of your own: limit it, stop it, inspect it | [`Timer`], [`Builder`], [`Waking`], [`Metrics`], [`Lateness`]; [`Snapshot`], [`ShardSnapshot`], [`DialSnapshot`]; [`error::Error`], [`error::BuildError`] |
//! | test in virtual time | `pause`, `advance`, `resume`: tokio's own, with the feature `test-util`; [`ManualClock`] for a timer of your own, on any runtime; [`error::AdvanceError`] |
//! | wait for the wall clock, or count time spent in suspension | feature `clocks`: [`clocks::sleep_until_wall`], [`clocks::sleep_boot`], which return [`clocks::SleepUntilWall`] and [`clocks::SleepBoot`] |
//! | give hyper and hyper-util a timer | feature `hyper`: [`Timer`] is a `hyper::rt::Timer`, and [`Sleep`] a `hyper::rt::Sleep` |
//! | limit the time of tower services, bodies included, and pass deadlines on | feature `tower`: `tower::{TimeoutLayer, HttpTimeoutLayer, DeadlineLayer, ClientDeadlineLayer, RespondLayer}`; feature `tower-retry`: `tower::backoff` |
//! | limit futures and streams with methods | [`ext`]: [`ext::FutureExt`], [`ext::StreamExt`]; [`ext::Timeout`], [`ext::TimeoutRepeating`], [`ext::Throttle`], [`ext::ChunksTimeout`] |
//! | give a request a deadline that travels with it | [`rpc::Deadline`], [`rpc::Scoped`]; the header: [`rpc::grpc_timeout::parse`], [`rpc::grpc_timeout::format()`], [`rpc::grpc_timeout::Header`], [`rpc::grpc_timeout::InvalidTimeout`] |
//! | close a connection that is idle | [`rpc::IdleTimeout`], [`rpc::Guarded`] |
//! | queue items by deadline | [`DelayQueue`]; [`delay_queue`]: [`delay_queue::Key`], [`delay_queue::Expired`], [`delay_queue::Handle`], [`delay_queue::Closed`] |
//! | keep anything by deadline, without tokio | [`wheel`]: [`wheel::Wheel`], [`wheel::Tick`], [`wheel::Ticks`], [`wheel::Key`], [`wheel::Expire`], [`wheel::Verdict`], [`wheel::Progress`], [`wheel::Resolution`], [`wheel::InvalidResolution`] |
//!
//! # Cargo features
//!
//! No feature is enabled by default.
//!
//! | Feature | Adds |
//! |---|---|
//! | `clocks` | the module `clocks`: sleeps by the wall clock and by the time since boot |
//! | `hyper` | `hyper::rt::Timer` for [`Timer`] and `hyper::rt::Sleep` for [`Sleep`] (hyper 1.8 or later) |
//! | `test-util` | tokio's `pause`, `advance` and `resume`, for tests in virtual time; enables tokio's `test-util` |
//! | `tower` | the module `tower`: layers that limit the time of a service, including the response body |
//! | `tower-retry` | `tower::backoff`: delays for `tower::retry` (tower 0.5); enables `tower` |
//! | `tracing` | events for what no error shows: an invalid `grpc-timeout` from a peer, a callback that panics, an excess of timers |
//!
//! # Trade-offs
//!
//! - The driver is a task on your runtime. If all workers are blocked, no task is woken until one of them is free again.
//! - Each shard has its own dials. [`Builder::resolution`] says how much memory they take.
//! - A shard's slab of entries grows to its peak size, and is kept until the shard has no timer left.
//! - The free functions look up the runtime's timer on each call, and a `timeout` in a spawned task only once its future is pending.
//!   A [`Timer`] of your own needs no lookup.
//! - Within a task, the first poll of a delay of a second or more relies on the time that was read when the future was created. If
//!   the deadline has passed by then, the poll returns `Pending`, and the driver wakes the task at once. There is one exception: if
//!   all workers of the timer's runtime are blocked and the task needs none of them (it is on another runtime, in a `LocalSet` or in
//!   `spawn_blocking`), the driver wakes it when a worker is free. A clock that can be paused is always read.

#![forbid(unsafe_code)]
// The labels of features on docs.rs.
#![cfg_attr(docsrs, feature(doc_cfg))]

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
#[cfg(test)]
mod tests;

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
