use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// A job, as [`Scheduler::jobs`](crate::Scheduler::jobs) and [`Scheduler::shutdown_now`](crate::Scheduler::shutdown_now) list it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobInfo {
    /// The name that it was submitted with.
    pub name: Option<Arc<str>>,
    /// Whether it runs more than once.
    pub is_periodic: bool,
    /// What it does now.
    pub status: JobStatus,
    /// When it runs next; of a job that runs, when this run was due; `None` if it is paused.
    pub next_run: Option<Instant>,
    /// The time between two runs, at a fixed rate or with a fixed delay. `None` of a job by the calendar, and of one that runs once.
    pub period: Option<Duration>,
    /// How many runs of it have ended. A run that is tried again counts once.
    pub runs: u64,
    /// How often the run that it is at has failed and is tried again: more than 0 while the job [backs off](crate::BackOff).
    pub failures: u32,
    /// What the last run that failed said. `None` if none has.
    pub last_error: Option<Arc<str>>,
}

/// What a job does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// It waits for its deadline.
    Waiting,
    /// It is due, and waits for a limit on concurrency, or for the task that is about to begin it.
    Queued,
    /// It runs.
    Running,
    /// It was paused.
    Paused,
}
