//! A job scheduler for tokio: jobs run once after a delay, at a fixed rate, with a fixed delay, or by a cron expression in a time zone.
//!
//! Each job has a handle to await it, cancel it, pause it or move it to another time. The scheduler has concurrency limits, retries with
//! backoff, policies for missed runs (misfires), and a graceful shutdown. It does what Java's `ScheduledThreadPoolExecutor` does, as async
//! Rust, on a [hierarchical timing wheel](waterwheel).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use std::time::Duration;
//! use waterwheel_schedule::{Backoff, Misfire, OnError, Scheduler};
//!
//! let scheduler = Scheduler::new();
//!
//! // Close the order in 30 minutes, unless it is paid.
//! let closing = scheduler.after(Duration::from_secs(1800)).run(|_| async { println!("closed") });
//! closing.cancel(); // paid
//!
//! // Every 30 seconds. If a run fails, it is retried after 1, 2, 4 … seconds.
//! let report = scheduler
//!     .every(Duration::from_secs(30))
//!     .name("report")
//!     .misfire(Misfire::Once)
//!     .on_error(OnError::Backoff(Backoff::new(Duration::from_secs(1), Duration::from_secs(20))))
//!     .run(|context| async move {
//!         println!("report {}", context.run());
//!         Ok::<(), std::io::Error>(())
//!     });
//!
//! scheduler.shutdown(); // jobs that run once still run, `report` ends
//! assert!(report.await.is_err());
//! # }
//! ```
//!
//! # Index
//!
//! | to | use |
//! |---|---|
//! | create a scheduler, limit it, inspect it, shut it down | [`Scheduler`], [`Builder`], [`Group`], [`Counts`], [`JobInfo`], [`JobId`], [`JobStatus`], [`Event`] |
//! | submit a job | [`Once`], [`Retry`], [`Repeat`]; its closure takes a [`Context`] and returns an [`Outcome`] |
//! | run jobs by cron | with the feature `cron`: `Scheduler::cron`, and `calendar` with `Schedule`, `ScheduleOptions`, `Upcoming`, `ScheduleError`, `Field` |
//! | handle missed runs (misfires) and failures | [`Misfire`], [`OnError`], [`Backoff`] |
//! | await a job, cancel it, pause it, move it | [`JobHandle`], [`JobControl`], [`JobError`], [`Panic`], [`SubmitError`] |
//!
//! If you know `ScheduledThreadPoolExecutor`, Quartz or Netty's `HashedWheelTimer`,
//! [a page of tables](_from_java_and_netty) maps their calls to this crate.
//!
//! # Guarantees
//!
//! - **Never early.** A run never starts before its deadline. Like [every timer of waterwheel](waterwheel::time), it is
//!   due when the tick of its deadline has come on the scheduler's timer.
//! - **Never lost.** Every accepted job runs, or its handle says why not. This holds across shutdowns, panics, and the end of the runtime.
//! - **Never overlapping.** Runs of one job do not overlap, and each run happens before the next.
//! - **Nothing after a shutdown.** Once [`shutdown`](Scheduler::shutdown) or [`shutdown_now`](Scheduler::shutdown_now) has returned, no run
//!   begins apart from those that it keeps.
//! - **In order.** Jobs are started by deadline, then by submission. On a current-thread runtime, and in a group with a limit of one, they
//!   also begin to run in this order.
//! - **Small.** A waiting job is not a task. It takes about 200 bytes in addition to its closure; the example `soak` measures this.
//!
//! # Trade-offs
//!
//! - Jobs do not survive a restart, and processes do not share them: two replicas of a service both run every cron job. The package's
//!   `README.md` names crates that are made for this.
//! - Runs are tokio tasks: a blocked runtime delays its jobs. A blocking closure cannot be stopped from outside, but it can watch its
//!   [token](Context::token).
//! - Jobs that are due together share tasks, and with them the task id and the cooperative budget ([details](Scheduler#tasks)).
//! - A scheduler has one lock. If many threads submit jobs at the highest rates, use one scheduler per thread.
//!
//! # Crate features
//!
//! Both are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `cron` | `Scheduler::cron`, `Scheduler::by_calendar`, `reschedule_by_calendar` of handles and controls, and the module `calendar` |
//! | `bundled-zones` | `cron`, and a copy of the time zone database in the program (about 400 kB), for machines without one |

#![forbid(unsafe_code)]
// The labels of features on docs.rs.
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Tests the example of the README.
#[cfg(all(doctest, feature = "cron"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(any(doc, doctest))]
pub mod _from_java_and_netty;

mod engine;
mod error;
mod group;
mod handle;
mod info;
mod policy;
mod scheduler;
mod submit;

pub use engine::{Context, Outcome};
pub use error::{JobError, Panic, SubmitError};
pub use group::Group;
pub use handle::{JobControl, JobHandle};
pub use info::{Counts, Event, JobId, JobInfo, JobStatus};
pub use policy::{Backoff, Misfire, OnError};
pub use scheduler::{Builder, Scheduler};
pub use submit::{Once, Repeat, Retry};
#[cfg(feature = "cron")]
#[doc(inline)]
pub use waterwheel_cron as calendar;
