use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::JobId;

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
    /// How many attempts of the current run have failed. More than 0 while the job [backs off](crate::BackOff).
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
