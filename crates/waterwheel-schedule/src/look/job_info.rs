use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::plan::{Pace, Plan};
use crate::engine::table::{Entry, Status};

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
    /// It is due, and waits for a limit on concurrency.
    Queued,
    /// It runs.
    Running,
    /// It was paused.
    Paused,
}

impl JobInfo {
    pub(crate) fn of(entry: &Entry) -> JobInfo {
        let status = JobStatus::of(entry.status);
        let plan = entry.plan();
        JobInfo {
            name: entry.name().cloned(),
            is_periodic: entry.is_periodic(),
            status,
            next_run: (status != JobStatus::Paused).then_some(entry.deadline),
            period: plan.and_then(period),
            runs: entry.job.runs(),
            failures: plan.map_or(0, |plan| plan.failures),
            // A job without a plan ends with the first run. So of a million of these, no lock is taken.
            last_error: plan.and_then(|_| entry.job.last_error()),
        }
    }
}

impl JobStatus {
    pub(crate) fn of(status: Status) -> JobStatus {
        match status {
            Status::Waiting => JobStatus::Waiting,
            Status::Due | Status::Queued | Status::QueuedInGroup => JobStatus::Queued,
            Status::Running => JobStatus::Running,
            Status::Paused => JobStatus::Paused,
        }
    }
}

fn period(plan: &Plan) -> Option<Duration> {
    match plan.pace {
        Pace::Rate(period) | Pace::Delay(period) => Some(period),
        #[cfg(feature = "cron")]
        Pace::Calendar(_) => None,
        Pace::Once => None,
    }
}
