use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::engine::table::TableRef;
use crate::group::Group;

/// What all kinds of jobs have.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    pub(crate) table: &'a Arc<TableRef>,
    pub(crate) deadline: Instant,
    pub(crate) jitter: Duration,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) time_limit: Option<Duration>,
    /// The time of day that the job is for, before jitter.
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
pub(crate) use common_options;
