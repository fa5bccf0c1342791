use std::fmt;

/// The id of a job. It is unique in the scheduler, and no other job of the scheduler gets it later.
///
/// Ids count up from 1, in the order in which the scheduler accepted the jobs. [`JobInfo`](crate::JobInfo), every
/// [`Event`](crate::Event) of an accepted job, handles, controls and contexts show the id of their job, and
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
