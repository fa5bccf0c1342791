//! Jobs for tokio: after a delay, at a fixed rate, with a fixed delay, by the calendar; with handles, limits and an orderly shutdown. What
//! `ScheduledThreadPoolExecutor` does, as async Rust, on a [hierarchical timing wheel](waterwheel).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use std::time::Duration;
//! use waterwheel_schedule::{BackOff, Missed, OnError, Scheduler};
//!
//! let scheduler = Scheduler::new();
//!
//! // Close the order in 30 minutes, unless it is paid.
//! let closing = scheduler.after(Duration::from_secs(1800)).run(|_| async { println!("closed") });
//! closing.cancel(); // paid
//!
//! // Every 30 seconds; if it fails, again after 1, 2, 4 … seconds.
//! let report = scheduler
//!     .every(Duration::from_secs(30))
//!     .name("report")
//!     .missed(Missed::Once)
//!     .on_error(OnError::BackOff(BackOff::new(Duration::from_secs(1), Duration::from_secs(20))))
//!     .run(|context| async move {
//!         println!("report {}", context.run());
//!         Ok::<(), std::io::Error>(())
//!     });
//!
//! scheduler.shutdown(); // what runs once still runs, `report` ends
//! assert!(report.await.is_err());
//! # }
//! ```
//!
//! # The index
//!
//! | to | use |
//! |---|---|
//! | have a scheduler, limit it, stop it, look into it | [`Scheduler`], [`Builder`], [`Group`], [`Counts`], [`JobInfo`], [`JobStatus`], [`Event`] |
//! | submit a job | [`Once`], [`Retry`], [`Repeat`]; what it is handed: [`Context`]; what it gives: [`Outcome`] |
//! | say when, by the calendar | the feature `cron`: `Scheduler::cron`; `calendar`: `Schedule`, `ScheduleOptions`, `Upcoming`, `ScheduleError`, `Field` |
//! | say what happens in bad times | [`Missed`], [`OnError`], [`BackOff`] |
//! | await a job, cancel it, pause it, move it | [`JobHandle`], [`JobControl`], [`JobError`], [`Panic`], [`SubmitError`] |
//!
//! [A table](_from_java_and_netty) has Java's and Netty's calls beside these.
//!
//! # What it promises
//!
//! - **Never early.** A run starts when its deadline's tick has come, by the scheduler's timer, as [all of its timers](waterwheel::time).
//! - **Never lost.** A job that was taken runs, or its handle says why not. That holds for shutdowns, panics, and the end of the runtime.
//! - **Never twice at a time.** Runs of one job do not overlap, and each happens before the next.
//! - **Nothing after a shutdown.** When [`shutdown`](Scheduler::shutdown) or [`shutdown_now`](Scheduler::shutdown_now) has returned, no run begins that it does not keep.
//! - **In order.** Jobs are started by (deadline, submission). On a current-thread runtime, and in a group of one, they begin to run in this order.
//! - A job that waits is no task. It takes some 200 bytes beside its closure; the example `soak` counts them.
//!
//! # What it does not
//!
//! Jobs do not outlive the process, and processes do not share them. The package's `README.md` says when another crate serves better.

#![forbid(unsafe_code)]

/// The README's example is tested.
#[cfg(all(doctest, feature = "cron"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(any(doc, doctest))]
pub mod _from_java_and_netty;

#[cfg(feature = "cron")]
pub mod calendar;
mod engine;
mod error;
mod group;
mod handle;
mod look;
mod policy;
mod scheduler;
mod submit;
mod sync;

pub use engine::{Context, Outcome};
pub use error::{JobError, Panic, SubmitError};
pub use group::Group;
pub use handle::{JobControl, JobHandle};
pub use look::{Counts, Event, JobInfo, JobStatus};
pub use policy::{BackOff, Missed, OnError};
pub use scheduler::{Builder, Scheduler};
pub use submit::{Once, Repeat, Retry};
