//! Repeating jobs.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::{Options, Submission, common_options, expect_accepted};
use crate::engine::plan::{Plan, Recurrence, saturating_add};
use crate::engine::work::{AsyncRepeat, BlockingRepeat};
use crate::engine::{Context, Outcome};
use crate::error::SubmitError;
use crate::handle::JobHandle;
use crate::policy::{Misfire, OnError};

/// A repeating job, about to be submitted.
///
/// Created by [`Scheduler::every`](crate::Scheduler::every) (fixed rate), [`with_delay`](crate::Scheduler::with_delay)
/// (fixed delay), and, with the feature `cron`, `cron` and `by_calendar`.
///
/// The runs of a job never overlap, and each happens before the next. By default, the first run is one period from now,
/// or at the first time of the calendar.
#[derive(Debug, Clone)]
#[must_use = "a job is only submitted by `run`, `run_blocking` or their `try_` forms"]
pub struct Repeat<'a> {
    options: Options<'a>,
    recurrence: Recurrence,
    misfire: Misfire,
    on_error: OnError,
    max_runs: Option<u64>,
    until: Option<Instant>,
    /// Whether the job has no time to run at.
    has_no_run: bool,
}

impl<'a> Repeat<'a> {
    pub(crate) fn new(options: Options<'a>, recurrence: Recurrence) -> Repeat<'a> {
        Repeat {
            options,
            recurrence,
            misfire: Misfire::default(),
            on_error: OnError::default(),
            max_runs: None,
            until: None,
            has_no_run: false,
        }
    }

    /// A job whose calendar has no time left.
    #[cfg(feature = "cron")]
    pub(crate) fn without_runs(mut self) -> Self {
        self.has_no_run = true;
        self
    }

    common_options!();

    /// Moves the first run to `delay` from now. With [`Duration::ZERO`], the job runs immediately.
    pub fn first_after(mut self, delay: Duration) -> Self {
        self.options.deadline = saturating_add(self.options.table.timer.now(), delay);
        self.options.wall = None;
        self
    }

    /// Moves the first run to this instant.
    pub fn first_at(mut self, deadline: Instant) -> Self {
        self.options.deadline = deadline;
        self.options.wall = None;
        self
    }

    /// Sets the misfire policy, that is, what happens to runs that were missed. The default is [`Misfire::Skip`].
    ///
    /// A job with a fixed delay never misses a run.
    #[doc(alias = "coalesce")]
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// Sets what happens to the job if a run fails. The default is [`OnError::End`].
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Limits the number of runs. After the last one the job has ended, and its handle yields `Ok(())`. A run that is retried counts once.
    ///
    /// # Panics
    ///
    /// Panics if `most` is 0.
    #[track_caller]
    pub fn max_runs(mut self, most: u64) -> Self {
        assert!(most > 0, "`max_runs` must be at least 1");
        self.max_runs = Some(most);
        self
    }

    /// Sets the last instant at which a run may be due. When no run is left, the job has ended.
    pub fn until(mut self, last: Instant) -> Self {
        self.until = Some(last);
        self
    }

    /// Submits the job, an async closure that is called for each run.
    ///
    /// # Panics
    ///
    /// Panics if the scheduler was shut down or is at its `max_pending`; [`try_run`](Repeat::try_run) returns an error instead.
    #[track_caller]
    pub fn run<F, R>(self, job: F) -> JobHandle<()>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Future<Output: Outcome<Value = ()>> + Send + 'static,
    {
        expect_accepted(self.try_run(job))
    }

    /// Submits the job like [`run`](Repeat::run), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns a [`SubmitError`] if the scheduler was shut down or is at its `max_pending`. The job is dropped.
    pub fn try_run<F, R>(self, job: F) -> Result<JobHandle<()>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Future<Output: Outcome<Value = ()>> + Send + 'static,
    {
        self.submission().submit(AsyncRepeat(job))
    }

    /// Submits a blocking closure, which is called for each run on a thread of [`spawn_blocking`](tokio::task::spawn_blocking).
    ///
    /// # Panics
    ///
    /// Panics where [`run`](Repeat::run) does.
    #[track_caller]
    pub fn run_blocking<F, R>(self, job: F) -> JobHandle<()>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome<Value = ()> + Send + 'static,
    {
        expect_accepted(self.try_run_blocking(job))
    }

    /// Submits the job like [`run_blocking`](Repeat::run_blocking), or returns an error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_run`](Repeat::try_run).
    pub fn try_run_blocking<F, R>(self, job: F) -> Result<JobHandle<()>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome<Value = ()> + Send + 'static,
    {
        self.submission().submit(BlockingRepeat(job))
    }

    fn submission(self) -> Submission<'a> {
        let plan = Plan {
            misfire: self.misfire,
            on_error: self.on_error,
            runs_left: self.max_runs,
            until: self.until,
            ..self.options.plan(self.recurrence)
        };
        Submission {
            options: self.options,
            plan: Some(plan),
            has_no_run: self.has_no_run,
        }
    }
}
