//! Jobs about to be submitted: their closures, times and options.

mod once;
mod repeat;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::engine::plan::{Plan, Recurrence, random_jitter, saturating_add};
use crate::engine::table::{Entry, Extras, Job, TableRef};
use crate::engine::task::{JobCell, TypedJob};
use crate::engine::work::Work;
use crate::error::SubmitError;
use crate::group::Group;
use crate::handle::JobHandle;
use crate::policy::{Misfire, OnError};

pub use once::{Once, Retry};
pub use repeat::Repeat;

/// The options that all kinds of jobs have.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    pub(crate) table: &'a Arc<TableRef>,
    pub(crate) deadline: Instant,
    pub(crate) jitter: Duration,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) time_limit: Option<Duration>,
    /// The wall-clock time that the job is for, before jitter.
    pub(crate) wall: Option<SystemTime>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(table: &'a Arc<TableRef>, deadline: Instant) -> Options<'a> {
        Options {
            table,
            deadline,
            jitter: Duration::ZERO,
            name: None,
            group: None,
            time_limit: None,
            wall: None,
        }
    }

    #[track_caller]
    pub(crate) fn set_group(&mut self, group: &Group) {
        assert!(
            group.is_of(self.table),
            "the group belongs to another scheduler: create it with `group` on the scheduler that the job is submitted to"
        );
        self.group = Some(group.index());
    }
}

/// A job of any kind, apart from its closure.
pub(crate) struct Submission<'a> {
    pub(crate) options: Options<'a>,
    /// `None` for a job that runs once and is not retried.
    pub(crate) plan: Option<Plan>,
    /// Whether the job has no time to run at.
    pub(crate) has_no_run: bool,
}

impl Submission<'_> {
    /// Submits the job.
    pub(crate) fn submit<W: Work>(self, work: W) -> Result<JobHandle<W::Value>, SubmitError> {
        let (options, plan) = (self.options, self.plan);
        let later = random_jitter(options.jitter);
        let wall = options
            .wall
            .map(|wall| wall.checked_add(later).unwrap_or(wall));
        let deadline = match &plan {
            Some(plan) => {
                plan.delayed_within(options.deadline, saturating_add(options.deadline, later))
            }
            None => saturating_add(options.deadline, later),
        };
        let has_no_run =
            self.has_no_run || plan.as_ref().is_some_and(|plan| !plan.allows(deadline));
        let cell = Arc::new(JobCell::new(Arc::clone(options.table), work));
        let is_plain = options.name.is_none()
            && options.group.is_none()
            && options.time_limit.is_none()
            && options.wall.is_none()
            && plan.is_none();
        let extras = (!is_plain).then(|| {
            Box::new(Extras {
                name: options.name,
                group: options.group,
                plan,
                wall,
                at_wall: options.wall,
                time_limit: options.time_limit,
            })
        });
        let entry = Entry::new(Arc::clone(&cell) as Arc<dyn Job>, deadline, extras);
        let (key, id) = options.table.submit(entry, has_no_run)?;
        Ok(JobHandle::new(cell as Arc<dyn TypedJob<W::Value>>, key, id))
    }
}

impl Options<'_> {
    /// The plan of a job with this recurrence, and defaults for everything else.
    pub(crate) fn plan(&self, recurrence: Recurrence) -> Plan {
        Plan {
            recurrence,
            misfire: Misfire::default(),
            on_error: OnError::default(),
            jitter: self.jitter,
            runs_left: None,
            until: None,
            next: self.deadline,
            next_wall: self.wall,
            is_triggered: false,
            failures: 0,
        }
    }
}

/// Panics if a job was refused, for the methods without a `try_`.
#[track_caller]
pub(crate) fn expect_accepted<T>(submitted: Result<JobHandle<T>, SubmitError>) -> JobHandle<T> {
    match submitted {
        Ok(handle) => handle,
        Err(error) => panic!("{error}; the `try_` form of this method returns an error instead"),
    }
}

/// The methods that all kinds of jobs share.
macro_rules! common_options {
    () => {
        /// Sets the job's name, which lists and events show. Names need not be unique.
        pub fn name(mut self, name: impl Into<std::sync::Arc<str>>) -> Self {
            self.options.name = Some(name.into());
            self
        }

        /// Adds the job to a [group](crate::Scheduler::group), whose concurrency limit then applies to it.
        ///
        /// # Panics
        ///
        /// Panics if the group belongs to another scheduler.
        #[track_caller]
        pub fn group(mut self, group: &crate::Group) -> Self {
            self.options.set_group(group);
            self
        }

        /// Delays each run by a random part of `most`, so that the jobs of many processes do not all run at the same
        /// time (a thundering herd).
        ///
        /// Jitter does not shift the grid of a fixed rate. More than thirty years counts as thirty years.
        pub fn jitter(mut self, most: std::time::Duration) -> Self {
            self.options.jitter = most;
            self
        }

        /// Sets a time limit for each run. A run that exceeds it has failed with
        /// [`TimedOut`](crate::JobError::TimedOut), and its future is dropped.
        ///
        /// Each attempt of a retried run has the whole limit. A blocking run cannot be stopped: its
        /// [token](crate::Context::token) is cancelled, and once it has returned, it has failed with `TimedOut`,
        /// whatever it returned.
        pub fn time_limit(mut self, most: std::time::Duration) -> Self {
            self.options.time_limit = Some(most);
            self
        }
    };
}
use common_options;
