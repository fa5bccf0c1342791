//! A job, as the table keeps it: where it stands, and what it has besides its closure.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use waterwheel::wheel::Key;

use super::concurrency_limit::Rank;
use super::job::{AdmittedRun, Job, Run};
use super::plan::{Plan, Recurrence};
use crate::error::JobError;
use crate::info::JobId;

/// A job, as the table keeps it.
pub(crate) struct Entry {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) deadline: Instant,
    /// In the order of submission. Given by the table.
    pub(crate) id: JobId,
    pub(crate) status: Status,
    /// No run after the present one, and why.
    pub(crate) end_reason: Option<EndReason>,
    /// Pauses after the present run.
    pub(crate) pause_requested: bool,
    /// What a plain job after a delay does not have.
    pub(crate) extras: Option<Box<Extras>>,
}

#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) plan: Option<Plan>,
    /// The time of day that the job waits for.
    pub(crate) wall: Option<SystemTime>,
    /// The time of day that it was submitted for, before jitter.
    pub(crate) at_wall: Option<SystemTime>,
    /// The longest that a run may take.
    pub(crate) time_limit: Option<Duration>,
}

/// Where a job is between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// On the dials.
    Waiting,
    /// Its tick has come, and the driver is about to start it.
    Due,
    QueuedInGroup,
    /// Queued for a permit of the scheduler. It holds its permit of the group.
    Queued,
    /// It has its permits. Its run goes on, or is about to begin, in a task.
    Admitted,
    Paused,
}

/// Why a job ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    Cancelled,
    Shutdown,
}

impl EndReason {
    pub(crate) fn error(self) -> JobError {
        match self {
            EndReason::Cancelled => JobError::Cancelled,
            EndReason::Shutdown => JobError::Shutdown,
        }
    }
}

impl Entry {
    /// A job that is about to be submitted.
    pub(crate) fn new(job: Arc<dyn Job>, deadline: Instant, extras: Option<Box<Extras>>) -> Entry {
        Entry {
            job,
            deadline,
            id: JobId::from(0),
            status: Status::Waiting,
            end_reason: None,
            pause_requested: false,
            extras,
        }
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.plan()
            .is_some_and(|plan| plan.recurrence != Recurrence::Once)
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.extras.as_ref()?.plan.as_ref()
    }

    pub(crate) fn plan_mut(&mut self) -> Option<&mut Plan> {
        self.extras.as_mut()?.plan.as_mut()
    }

    pub(crate) fn wall(&self) -> Option<SystemTime> {
        self.extras.as_ref()?.wall
    }

    pub(crate) fn group(&self) -> Option<usize> {
        self.extras.as_ref()?.group
    }

    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.name.as_ref()
    }

    pub(crate) fn rank(&self) -> Rank {
        (self.deadline, self.id)
    }

    /// Whether a run goes on.
    pub(crate) fn is_running(&self) -> bool {
        self.status == Status::Admitted && self.job.has_begun()
    }

    /// Whether no run goes on. Then none that was admitted begins any more, so the entry must leave the table before its lock is given back.
    pub(crate) fn withdraw(&self) -> bool {
        self.status != Status::Admitted || self.job.withdraw()
    }

    /// The job has its permits, and its run may begin.
    pub(crate) fn admit(&mut self, key: Key) -> AdmittedRun {
        self.status = Status::Admitted;
        let limit = self.extras.as_mut().and_then(|extras| {
            // A time of day is for the first run.
            extras.wall = None;
            extras.time_limit
        });
        let failures = self.plan().map_or(0, |plan| plan.failures);
        AdmittedRun {
            job: Arc::clone(&self.job),
            run: Run {
                id: self.id,
                key,
                scheduled: self.deadline,
                number: self.job.runs() + 1,
                attempt: failures.saturating_add(1),
            },
            limit,
        }
    }
}
