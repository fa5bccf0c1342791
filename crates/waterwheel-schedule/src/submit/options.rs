use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::work::Work;
use crate::engine::job::{Awaited, Cell, Job};
use crate::engine::plan::{Plan, add, jitter};
use crate::engine::table::{Entry, More, Status, Table};
use crate::handle::{JobHandle, SubmitError};
use crate::scheduler::Group;

/// What all kinds of jobs have.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    pub(crate) table: &'a Arc<Arc<Table>>,
    pub(crate) deadline: Instant,
    pub(crate) jitter: Duration,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) time_limit: Option<Duration>,
    /// The time of day that the job waits for; its jitter is in it already.
    pub(crate) wall: Option<SystemTime>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(table: &'a Arc<Arc<Table>>, deadline: Instant) -> Options<'a> {
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
            "the group is another scheduler's: make it by `group` of the scheduler that the job is submitted to"
        );
        self.group = Some(group.index());
    }

    /// Submits the job. One that is over has no run.
    pub(crate) fn submit<W: Work>(
        self,
        plan: Option<Plan>,
        is_over: bool,
        work: W,
    ) -> Result<JobHandle<W::Value>, SubmitError> {
        let later = jitter(self.jitter);
        let wall = self
            .wall
            .map(|wall| wall.checked_add(later).unwrap_or(wall));
        let deadline = match &plan {
            Some(plan) => plan.within(self.deadline, add(self.deadline, later)),
            None => add(self.deadline, later),
        };
        let is_over = is_over || plan.as_ref().is_some_and(|plan| !plan.admits(deadline));
        let cell = Arc::new(Cell::new(Arc::clone(self.table), work));
        let is_plain = self.name.is_none()
            && self.group.is_none()
            && self.time_limit.is_none()
            && self.wall.is_none()
            && plan.is_none();
        let more = (!is_plain).then(|| {
            Box::new(More {
                name: self.name,
                group: self.group,
                plan,
                wall,
                time_limit: self.time_limit,
            })
        });
        let entry = Entry {
            job: Arc::clone(&cell) as Arc<dyn Job>,
            deadline,
            sequence: 0,
            status: Status::Waiting,
            ends: None,
            pauses: false,
            more,
        };
        let key = self.table.submit(entry, is_over)?;
        Ok(JobHandle::new(cell as Arc<dyn Awaited<W::Value>>, key))
    }
}

/// What an infallible call does with a refusal.
#[track_caller]
pub(crate) fn taken<T>(submitted: Result<JobHandle<T>, SubmitError>) -> JobHandle<T> {
    match submitted {
        Ok(handle) => handle,
        Err(error) => panic!("{error}; the `try_` form returns this as an error"),
    }
}

/// The methods that all kinds of jobs share.
macro_rules! common_options {
    () => {
        /// A name, for lists, events and messages. It need not be unique.
        pub fn name(mut self, name: impl Into<std::sync::Arc<str>>) -> Self {
            self.options.name = Some(name.into());
            self
        }

        /// The job runs only while the group has a place free ([`Scheduler::group`](crate::Scheduler::group)).
        ///
        /// # Panics
        ///
        /// If the group is another scheduler's.
        #[track_caller]
        pub fn group(mut self, group: &crate::Group) -> Self {
            self.options.set_group(group);
            self
        }

        /// Each run is later by a random part of `most`, so that jobs of many processes do not run together. It does not move the grid of a fixed rate.
        pub fn jitter(mut self, most: std::time::Duration) -> Self {
            self.options.jitter = most;
            self
        }

        /// Ends a run that takes longer: its future is dropped, and the run has failed with [`TimedOut`](crate::JobError::TimedOut). A run on a
        /// thread that may block goes on to its end: its token is cancelled, and it has failed all the more.
        pub fn time_limit(mut self, most: std::time::Duration) -> Self {
            self.options.time_limit = Some(most);
            self
        }
    };
}
pub(crate) use common_options;
