use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::options::{Options, common_options};
use super::submission::{Submission, taken};
use crate::engine::plan::{Pace, Plan, add};
use crate::engine::work::{BlockAgain, RunAgain};
use crate::engine::{Context, Outcome};
use crate::error::SubmitError;
use crate::handle::JobHandle;
use crate::policy::{Missed, OnError};

/// A job that runs more than once, about to be submitted. Made by [`Scheduler::every`](crate::Scheduler::every),
/// [`with_delay`](crate::Scheduler::with_delay), and `cron` and `by_calendar` with the feature `cron`.
///
/// Its runs never overlap, and each happens before the next. Its first run is one period from now, or at the first time of its calendar.
#[derive(Debug, Clone)]
#[must_use = "a job is submitted by `run`"]
pub struct Repeat<'a> {
    options: Options<'a>,
    pace: Pace,
    missed: Missed,
    on_error: OnError,
    max_runs: Option<u64>,
    until: Option<Instant>,
    /// It has no run at all.
    is_over: bool,
}

impl<'a> Repeat<'a> {
    pub(crate) fn new(options: Options<'a>, pace: Pace) -> Repeat<'a> {
        Repeat {
            options,
            pace,
            missed: Missed::default(),
            on_error: OnError::default(),
            max_runs: None,
            until: None,
            is_over: false,
        }
    }

    /// A job whose calendar has no time any more.
    #[cfg(feature = "cron")]
    pub(crate) fn without_runs(mut self) -> Self {
        self.is_over = true;
        self
    }

    common_options!();

    /// The first run is `delay` from now, [`Duration::ZERO`] for at once.
    pub fn first_after(mut self, delay: Duration) -> Self {
        self.options.deadline = add(self.options.table.timer.now(), delay);
        self.options.wall = None;
        self
    }

    /// The first run is at this instant.
    pub fn first_at(mut self, deadline: Instant) -> Self {
        self.options.deadline = deadline;
        self.options.wall = None;
        self
    }

    /// What becomes of runs that were missed, by default [`Missed::Skip`]. With a fixed delay no run is ever missed.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// What becomes of the job if a run fails, by default [`OnError::End`].
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// At most so many runs. Then the job has ended, and its handle gives `Ok(())`. A run that is tried again counts once.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[track_caller]
    pub fn max_runs(mut self, most: u64) -> Self {
        assert!(most > 0, "`max_runs` must be at least 1");
        self.max_runs = Some(most);
        self
    }

    /// No run is due after this instant.
    pub fn until(mut self, last: Instant) -> Self {
        self.until = Some(last);
        self
    }

    /// Submits the job: an async closure, called for each run.
    ///
    /// # Panics
    ///
    /// If the scheduler was shut down or is at its `max_pending`; see [`try_run`](Repeat::try_run).
    #[track_caller]
    pub fn run<F, R>(self, job: F) -> JobHandle<()>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Future<Output: Outcome<Value = ()>> + Send + 'static,
    {
        taken(self.try_run(job))
    }

    /// [`run`](Repeat::run), or an error.
    ///
    /// # Errors
    ///
    /// [`SubmitError`]. The job was dropped.
    pub fn try_run<F, R>(self, job: F) -> Result<JobHandle<()>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Future<Output: Outcome<Value = ()>> + Send + 'static,
    {
        self.submission().submit(RunAgain(job))
    }

    /// Submits a closure that blocks its thread, called for each run on one of the runtime's [threads for that](tokio::task::spawn_blocking).
    ///
    /// # Panics
    ///
    /// As [`run`](Repeat::run).
    #[track_caller]
    pub fn run_blocking<F, R>(self, job: F) -> JobHandle<()>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome<Value = ()> + Send + 'static,
    {
        taken(self.try_run_blocking(job))
    }

    /// [`run_blocking`](Repeat::run_blocking), or an error.
    ///
    /// # Errors
    ///
    /// As [`try_run`](Repeat::try_run).
    pub fn try_run_blocking<F, R>(self, job: F) -> Result<JobHandle<()>, SubmitError>
    where
        F: FnMut(Context) -> R + Send + 'static,
        R: Outcome<Value = ()> + Send + 'static,
    {
        self.submission().submit(BlockAgain(job))
    }

    fn submission(self) -> Submission<'a> {
        let plan = Plan {
            missed: self.missed,
            on_error: self.on_error,
            left: self.max_runs,
            until: self.until,
            ..self.options.plan(self.pace)
        };
        Submission {
            options: self.options,
            plan: Some(plan),
            is_over: self.is_over,
        }
    }
}
