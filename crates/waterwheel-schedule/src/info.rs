//! Values that users inspect: job ids, the state of a job, counters and events.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The id of a job. It is unique in the scheduler, and no other job of the scheduler gets it later.
///
/// Ids count up from 1, in the order in which the scheduler accepted the jobs. [`JobInfo`], every
/// [`Event`] of an accepted job, handles, controls and contexts show the id of their job, and
/// [`Scheduler::job`](crate::Scheduler::job) finds a job by its id.
///
/// An id converts to and from `u64`, for logs and URLs. The ids of a scheduler mean nothing to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u64);

impl From<u64> for JobId {
    fn from(number: u64) -> JobId {
        JobId(number)
    }
}

impl From<JobId> for u64 {
    fn from(id: JobId) -> u64 {
        id.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Information about a job, as listed by [`Scheduler::jobs`](crate::Scheduler::jobs) and
/// [`Scheduler::shutdown_now`](crate::Scheduler::shutdown_now).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobInfo {
    /// The id of the job.
    pub id: JobId,
    /// The name that the job was submitted with.
    pub name: Option<Arc<str>>,
    /// Whether the job is a repeating job.
    pub is_periodic: bool,
    /// The current state of the job.
    pub status: JobStatus,
    /// When the next run is due, or, while the job is running, when this run was due. `None` if the job is paused.
    pub next_run: Option<Instant>,
    /// The period of a job at a fixed rate or with a fixed delay. `None` for a job by the calendar, and for a job that runs once.
    pub period: Option<Duration>,
    /// How many runs of the job have ended. A run that is retried counts once.
    pub runs: u64,
    /// How many attempts of the current run have failed. More than 0 while the job [backs off](crate::Backoff).
    pub failures: u32,
    /// The error message of the last run that failed. `None` if no run has failed.
    pub last_error: Option<Arc<str>>,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// The job is waiting for its deadline.
    Waiting,
    /// The job is due, and is waiting for a concurrency limit or for the task that is about to begin it.
    Queued,
    /// A run is in progress.
    Running,
    /// The job is paused.
    Paused,
}

/// The counters of a scheduler, all taken at the same moment. Returned by [`Scheduler::counts`](crate::Scheduler::counts).
///
/// Every accepted job is in exactly one state, so at any moment `submitted` = `pending` + `running` + `cancelled` + `ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Jobs that were accepted.
    pub submitted: u64,
    /// Jobs that were refused, after a shutdown or because of `max_pending`.
    pub refused: u64,
    /// Jobs that were ended from outside while they were not running: by a cancel, a shutdown, or the end of the runtime.
    pub cancelled: u64,
    /// All other jobs that have ended: with a run, or because they had no time left to run at.
    pub ended: u64,
    /// Jobs that have not ended and are not running. A job that is due is pending until its closure is called.
    pub pending: u64,
    /// Runs in progress, from the moment that the closure is called.
    pub running: u64,
    /// Runs that have ended, successfully or not. Every attempt of a retried run counts.
    pub finished: u64,
    /// Runs that returned an error, panicked, or exceeded their time limit. Every attempt of a retried run counts.
    pub failed: u64,
    /// Runs that were missed (misfires) and left out under the [`Misfire`](crate::Misfire) policy.
    #[doc(alias = "misfire")]
    pub missed: u64,
}

/// An event in the life of a job, for metrics and logs. [`Builder::on_event`](crate::Builder::on_event) shows how to receive events.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A run starts: its closure is called as soon as the function that receives this event returns. A run that is
    /// cancelled earlier has no events.
    #[non_exhaustive]
    Started {
        /// The job's id.
        id: JobId,
        /// The job's name.
        name: Option<Arc<str>>,
        /// The number of the run, counted from 1.
        run: u64,
        /// When the run was due.
        scheduled: Instant,
    },
    /// A run has ended.
    #[non_exhaustive]
    Finished {
        /// The job's id.
        id: JobId,
        /// The job's name.
        name: Option<Arc<str>>,
        /// The number of the run.
        run: u64,
        /// When the run was due.
        scheduled: Instant,
        /// How late the run started, that is, the time from `scheduled` to its start.
        lateness: Duration,
        /// How long the run took. Like `lateness`, it is measured with the scheduler's timer.
        duration: Duration,
        /// The error message, if the run failed, was aborted, or ended with its runtime.
        error: Option<Arc<str>>,
    },
    /// Runs were missed (a misfire) and left out under the [`Misfire`](crate::Misfire) policy.
    #[doc(alias = "misfire")]
    #[non_exhaustive]
    Missed {
        /// The job's id.
        id: JobId,
        /// The job's name.
        name: Option<Arc<str>>,
        /// How many runs were left out.
        runs: u64,
    },
    /// A job was refused, after a shutdown or because of `max_pending`.
    #[non_exhaustive]
    Refused {
        /// The job's name.
        name: Option<Arc<str>>,
    },
}

/// The user's event hook.
pub(crate) struct Hook(Box<dyn Fn(&Event) + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Hook {
        Hook(Box::new(hook))
    }

    /// Calls the hook, and ignores a panic in it.
    pub(crate) fn call(&self, event: &Event) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
