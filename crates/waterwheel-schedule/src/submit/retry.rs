use std::future::Future;

use super::options::{Options, common_options};
use super::submission::{Submission, expect_accepted};
use crate::engine::plan::{Plan, Recurrence};
use crate::engine::work::{AsyncRepeat, BlockingRepeat};
use crate::engine::{Context, Outcome};
use crate::error::SubmitError;
use crate::handle::JobHandle;
use crate::policy::{BackOff, OnError};

/// A job that runs once and is retried if the run fails, about to be submitted. Created by [`Once::retry`](crate::Once::retry).
#[derive(Debug, Clone)]
#[must_use = "a job is only submitted by `run`, `run_blocking` or their `try_` forms"]
pub struct Retry<'a> {
    options: Options<'a>,
    back_off: BackOff,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(options: Options<'a>, back_off: BackOff) -> Retry<'a> {
        Retry { options, back_off }
    }

    common_options!();

    /// Submits the job, an async closure. The handle yields the value of the attempt that succeeded, or the last error.
    ///
    /// # Panics
    ///
    /// Panics where [`Once::run`](crate::Once::run) does.
    #[track_caller]
    pub fn run<F, R>(self, job: F) -> JobHandle<<R::Output as Outcome>::Value>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        expect_accepted(self.try_run(job))
    }

    /// Submits the job like [`run`](Retry::run), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Once::try_run`](crate::Once::try_run).
    pub fn try_run<F, R>(
        self,
        job: F,
    ) -> Result<JobHandle<<R::Output as Outcome>::Value>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        self.submission().submit(AsyncRepeat(job))
    }

    /// Submits a blocking closure, which runs on a thread of [`spawn_blocking`](tokio::task::spawn_blocking).
    ///
    /// # Panics
    ///
    /// Panics where [`Once::run`](crate::Once::run) does.
    #[track_caller]
    pub fn run_blocking<F, R>(self, job: F) -> JobHandle<R::Value>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        expect_accepted(self.try_run_blocking(job))
    }

    /// Submits the job like [`run_blocking`](Retry::run_blocking), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Once::try_run`](crate::Once::try_run).
    pub fn try_run_blocking<F, R>(self, job: F) -> Result<JobHandle<R::Value>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        self.submission().submit(BlockingRepeat(job))
    }

    fn submission(self) -> Submission<'a> {
        let plan = Plan {
            on_error: OnError::BackOff(self.back_off),
            ..self.options.plan(Recurrence::Once)
        };
        Submission {
            options: self.options,
            plan: Some(plan),
            is_over: false,
        }
    }
}
