//! Jobs that run once, with retries or without.

use std::future::Future;

use super::{Options, Submission, common_options, expect_accepted};
use crate::engine::plan::{Plan, Recurrence};
use crate::engine::work::{AsyncOnce, AsyncRepeat, BlockingOnce, BlockingRepeat, Plain, ToPlain};
use crate::engine::{Context, Outcome};
use crate::error::SubmitError;
use crate::handle::JobHandle;
use crate::policy::{Backoff, OnError};

/// A job that runs once, about to be submitted.
///
/// Created by [`Scheduler::after`](crate::Scheduler::after), [`at`](crate::Scheduler::at) and [`at_wall`](crate::Scheduler::at_wall).
#[derive(Debug, Clone)]
#[must_use = "a job is only submitted by `run`, `run_value`, their blocking forms or their `try_` forms"]
pub struct Once<'a> {
    options: Options<'a>,
}

impl<'a> Once<'a> {
    pub(crate) fn new(options: Options<'a>) -> Once<'a> {
        Once { options }
    }

    common_options!();

    /// Retries the run if it fails. The closure must then be callable more than once.
    pub fn retry(self, backoff: Backoff) -> Retry<'a> {
        Retry::new(self.options, backoff)
    }

    /// Submits the job, an async closure.
    ///
    /// # Panics
    ///
    /// Panics if the scheduler was shut down or is at its `max_pending`; [`try_run`](Once::try_run) returns an error instead.
    #[track_caller]
    pub fn run<F, R>(self, job: F) -> JobHandle<<R::Output as Outcome>::Value>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        expect_accepted(self.try_run(job))
    }

    /// Submits the job like [`run`](Once::run), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns a [`SubmitError`] if the scheduler was shut down or is at its `max_pending`. The job is dropped.
    pub fn try_run<F, R>(
        self,
        job: F,
    ) -> Result<JobHandle<<R::Output as Outcome>::Value>, SubmitError>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        self.submission().submit(AsyncOnce(job))
    }

    /// Submits the job, an async closure whose value may be of any type. The handle yields the value, as that of
    /// [`tokio::spawn`] does.
    ///
    /// A `Result` is a value like any other: if it is an `Err`, the run has not failed. [`run`](Once::run) takes a
    /// `Result` apart, so that its errors are counted and reported.
    ///
    /// # Panics
    ///
    /// Panics where [`run`](Once::run) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel_schedule::JobError> {
    /// use std::time::Duration;
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let greeting = scheduler.after(Duration::from_millis(5)).run_value(|_| async { "hello" });
    /// assert_eq!(greeting.await?, "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn run_value<F, R>(self, job: F) -> JobHandle<R::Output>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output: Send + 'static> + Send + 'static,
    {
        expect_accepted(self.try_run_value(job))
    }

    /// Submits the job like [`run_value`](Once::run_value), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_run`](Once::try_run).
    pub fn try_run_value<F, R>(self, job: F) -> Result<JobHandle<R::Output>, SubmitError>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output: Send + 'static> + Send + 'static,
    {
        self.try_run(move |context| ToPlain::new(job(context)))
    }

    /// Submits a blocking closure, which runs on a thread of [`spawn_blocking`](tokio::task::spawn_blocking).
    ///
    /// # Panics
    ///
    /// Panics where [`run`](Once::run) does.
    #[track_caller]
    pub fn run_blocking<F, R>(self, job: F) -> JobHandle<R::Value>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        expect_accepted(self.try_run_blocking(job))
    }

    /// Submits the job like [`run_blocking`](Once::run_blocking), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_run`](Once::try_run).
    pub fn try_run_blocking<F, R>(self, job: F) -> Result<JobHandle<R::Value>, SubmitError>
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        self.submission().submit(BlockingOnce(job))
    }

    /// Submits a blocking closure whose value may be of any type: the blocking variant of [`run_value`](Once::run_value).
    ///
    /// # Panics
    ///
    /// Panics where [`run`](Once::run) does.
    #[track_caller]
    pub fn run_blocking_value<F, T>(self, job: F) -> JobHandle<T>
    where
        F: FnOnce(Context) -> T + Send + 'static,
        T: Send + 'static,
    {
        expect_accepted(self.try_run_blocking_value(job))
    }

    /// Submits the job like [`run_blocking_value`](Once::run_blocking_value), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_run`](Once::try_run).
    pub fn try_run_blocking_value<F, T>(self, job: F) -> Result<JobHandle<T>, SubmitError>
    where
        F: FnOnce(Context) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_run_blocking(move |context| Plain(job(context)))
    }

    fn submission(self) -> Submission<'a> {
        Submission {
            options: self.options,
            plan: None,
            has_no_run: false,
        }
    }
}

/// A job that runs once and is retried if the run fails, about to be submitted. Created by [`Once::retry`].
#[derive(Debug, Clone)]
#[must_use = "a job is only submitted by `run`, `run_blocking` or their `try_` forms"]
pub struct Retry<'a> {
    options: Options<'a>,
    backoff: Backoff,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(options: Options<'a>, backoff: Backoff) -> Retry<'a> {
        Retry { options, backoff }
    }

    common_options!();

    /// Submits the job, an async closure. The handle yields the value of the attempt that succeeded, or the last error.
    ///
    /// # Panics
    ///
    /// Panics where [`Once::run`] does.
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
    /// Returns the errors of [`Once::try_run`].
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
    /// Panics where [`Once::run`] does.
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
    /// Returns the errors of [`Once::try_run`].
    pub fn try_run_blocking<F, R>(self, job: F) -> Result<JobHandle<R::Value>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome + Send + 'static,
    {
        self.submission().submit(BlockingRepeat(job))
    }

    fn submission(self) -> Submission<'a> {
        let plan = Plan {
            on_error: OnError::Backoff(self.backoff),
            ..self.options.plan(Recurrence::Once)
        };
        Submission {
            options: self.options,
            plan: Some(plan),
            has_no_run: false,
        }
    }
}
