use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::engine::share::Share;
use crate::group::Group;

/// What all kinds of jobs have.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    pub(crate) table: &'a Arc<Share>,
    pub(crate) deadline: Instant,
    pub(crate) jitter: Duration,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) time_limit: Option<Duration>,
    /// The time of day that the job is for, before jitter.
    pub(crate) wall: Option<SystemTime>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(table: &'a Arc<Share>, deadline: Instant) -> Options<'a> {
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

        /// Each run is later by a random part of `most`, so that jobs of many processes do not run together. It does not move the grid of a fixed rate. More than
        /// thirty years is thirty years.
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
