use std::future::Future;

use super::Retry;
use super::options::{Options, common_options};
use super::submission::{Submission, taken};
use crate::engine::work::{BlockOnce, RunOnce};
use crate::engine::{Context, Outcome};
use crate::error::SubmitError;
use crate::handle::JobHandle;
use crate::policy::BackOff;

/// A job that runs once, about to be submitted. Made by [`Scheduler::after`](crate::Scheduler::after), [`at`](crate::Scheduler::at) and
/// [`at_wall`](crate::Scheduler::at_wall).
#[derive(Debug, Clone)]
#[must_use = "a job is submitted by `run`"]
pub struct Once<'a> {
    options: Options<'a>,
}

impl<'a> Once<'a> {
    pub(crate) fn new(options: Options<'a>) -> Once<'a> {
        Once { options }
    }

    common_options!();

    /// Tries the run again if it fails. For this the job is a closure that can be called more than once.
    pub fn retry(self, back_off: BackOff) -> Retry<'a> {
        Retry::new(self.options, back_off)
    }

    /// Submits the job: an async closure.
    ///
    /// # Panics
    ///
    /// If the scheduler was shut down or is at its `max_pending`; see [`try_run`](Once::try_run).
    #[track_caller]
    pub fn run<F, R>(self, job: F) -> JobHandle<<R::Output as Outcome>::Value>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        taken(self.try_run(job))
    }

    /// [`run`](Once::run), or an error.
    ///
    /// # Errors
    ///
    /// [`SubmitError`]. The job was dropped.
    pub fn try_run<F, R>(
        self,
        job: F,
    ) -> Result<JobHandle<<R::Output as Outcome>::Value>, SubmitError>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        self.submission().submit(RunOnce(job))
    }

    /// Submits a closure that blocks its thread: it runs on one of the runtime's [threads for that](tokio::task::spawn_blocking).
    ///
    /// # Panics
    ///
    /// As [`run`](Once::run).
    #[track_caller]
    pub fn run_blocking<F, R>(self, job: F) -> JobHandle<R::Value>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        taken(self.try_run_blocking(job))
    }

    /// [`run_blocking`](Once::run_blocking), or an error.
    ///
    /// # Errors
    ///
    /// As [`try_run`](Once::try_run).
    pub fn try_run_blocking<F, R>(self, job: F) -> Result<JobHandle<R::Value>, SubmitError>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        self.submission().submit(BlockOnce(job))
    }

    fn submission(self) -> Submission<'a> {
        Submission {
            options: self.options,
            plan: None,
            is_over: false,
        }
    }
}
