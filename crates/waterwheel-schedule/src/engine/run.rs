//! One run of a job: a future, for a task of its own or for one that begins several.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::task::coop::unconstrained;
use waterwheel::Sleep;

use super::Context;
use super::completion::{AfterRun, RunEnd};
use super::job::{Job, Run};
use super::job_cell::JobCell;
use super::work::{Holder, Work};
use crate::error::{JobError, Panic};

pin_project! {
    /// The task of a run. It is small, and takes few locks: what a plain job costs is mostly this.
    pub(crate) struct Running<W: Work> {
        // Dropped before `guard`, with a task whose runtime ends: the job's next run does not overlap with it.
        #[pin]
        future: Option<W::Running>,
        limit: Option<Limit>,
        // An abort wakes this task, which is always the same one.
        is_registered: bool,
        guard: RunGuard<W>,
    }
}

/// The longest that a run may take.
enum Limit {
    /// It has not begun.
    Of(Duration),
    Until(Box<Sleep>),
    /// It took longer, on a thread that goes on. The next run must not begin before that is done.
    Exceeded,
}

impl<W: Work> Running<W> {
    pub(crate) fn new(cell: Arc<JobCell<W>>, run: Run, limit: Option<Duration>) -> Running<W> {
        Running {
            future: None,
            limit: limit.map(Limit::Of),
            is_registered: false,
            guard: RunGuard {
                cell,
                run,
                is_over: false,
            },
        }
    }

    /// Calls the closure, or has a thread call it, unless the run was withdrawn.
    fn begin(self: Pin<&mut Self>) -> Result<(), Ended<W::Value>> {
        let mut this = self.project();
        let (cell, run) = (&this.guard.cell, this.guard.run);
        let context = || Context::new(Arc::clone(cell) as Arc<dyn Job>, run);
        let begun = catch_unwind(AssertUnwindSafe(|| W::begin(cell, context())));
        let future = match begun {
            Ok(future) => future.ok_or(Ended::NeverStarted)?,
            Err(panic) => {
                if W::BLOCKS {
                    // There is no thread for it: a run that fails as it begins.
                    cell.give_back(cell.begin_run(&context()).ok_or(Ended::NeverStarted)?);
                }
                return Err(Ended::With(Err(panicked(panic))));
            }
        };
        this.future.set(Some(future));
        if let Some(Limit::Of(limit)) = *this.limit {
            // A timer that is stopped measures no limit.
            let sleep = cell.table().timer.try_sleep(limit);
            *this.limit = sleep.ok().map(|sleep| Limit::Until(Box::new(sleep)));
        }
        Ok(())
    }

    fn poll_begun(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Ended<W::Value>> {
        let this = self.project();
        let cell = &this.guard.cell;
        // A run on a thread that may block cannot be ended from outside.
        if !W::BLOCKS && cell.is_aborted() {
            return Poll::Ready(Ended::Aborted);
        }
        let future = this.future.as_pin_mut().expect("a run that goes on");
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Ready(Some(result))) => return Poll::Ready(Ended::With(result)),
            Ok(Poll::Ready(None)) => return Poll::Ready(Ended::NeverStarted),
            Err(panic) => return Poll::Ready(Ended::With(Err(panicked(panic)))),
            Ok(Poll::Pending) => {}
        }
        if !W::BLOCKS && !*this.is_registered {
            *this.is_registered = true;
            cell.wake_when_aborted(cx);
        }
        if !W::BLOCKS && cell.is_aborted() {
            return Poll::Ready(Ended::Aborted);
        }
        let Some(Limit::Until(sleep)) = this.limit else {
            return Poll::Pending;
        };
        // A job that uses up the coop budget at each poll would otherwise never reach its limit.
        if pin!(unconstrained(&mut **sleep)).poll(cx).is_pending() {
            return Poll::Pending;
        }
        if sleep.was_stopped() {
            *this.limit = None;
            return Poll::Pending;
        }
        cell.time_is_up();
        if W::BLOCKS {
            *this.limit = Some(Limit::Exceeded);
            return Poll::Pending;
        }
        Poll::Ready(Ended::With(Err(JobError::TimedOut)))
    }
}

/// How a run has ended.
enum Ended<T> {
    With(Result<T, JobError>),
    /// By an abort.
    Aborted,
    /// The run was withdrawn, or the job has ended, before its closure was called.
    NeverStarted,
}

impl<W: Work> Future for Running<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let begun = match self.future {
            Some(_) => Ok(()),
            None => self.as_mut().begin(),
        };
        let mut ended = match begun {
            Ok(()) => ready!(self.as_mut().poll_begun(cx)),
            Err(ended) => ended,
        };
        let mut this = self.project();
        let is_late = matches!(this.limit.take(), Some(Limit::Exceeded));
        // One that waited for a thread for too long, and was withdrawn, has had no run.
        if is_late && this.guard.cell.has_begun() {
            let late = Ended::With(Err(JobError::TimedOut));
            drop_safely(std::mem::replace(&mut ended, late));
        }
        // Its destructor may panic.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| this.future.set(None))) {
            if matches!(ended, Ended::With(Ok(_))) {
                let panicked = Ended::With(Err(panicked(panic)));
                drop_safely(std::mem::replace(&mut ended, panicked));
            }
        }
        match ended {
            // A blocking closure that its runtime never began.
            Ended::With(Err(JobError::Shutdown)) => this.guard.end_dropped(),
            Ended::With(result) => this.guard.end(result),
            Ended::Aborted => this.guard.end_by(RunEnd::Aborted),
            // Whoever withdrew it has told the table, and ends the job.
            Ended::NeverStarted => this.guard.is_over = true,
        }
        Poll::Ready(())
    }
}

/// Ends the run when the task is dropped too, by a runtime that ends.
struct RunGuard<W: Work> {
    cell: Arc<JobCell<W>>,
    run: Run,
    is_over: bool,
}

impl<W: Work> RunGuard<W> {
    fn end(&mut self, result: Result<W::Value, JobError>) {
        self.is_over = true;
        let began = self.cell.take_beginning();
        if !W::IS_ONCE {
            self.cell.forget_run();
        }
        let end = match &result {
            Ok(_) => RunEnd::Succeeded,
            Err(error) => {
                let error = described(error);
                self.cell.set_last_error(Arc::clone(&error));
                RunEnd::Failed(error)
            }
        };
        match self.cell.table().finished(&self.run, began, end) {
            AfterRun::RunAgain => drop_safely(result),
            AfterRun::EndWithResult => self.cell.complete(result),
            AfterRun::EndOk => {
                drop_safely(result);
                self.cell.end_well();
            }
            AfterRun::EndWithError(error) => {
                drop_safely(result);
                self.cell.end(error);
            }
        }
    }

    /// The runtime ends, and drops the run.
    fn end_dropped(&mut self) {
        self.end_by(match self.cell.withdraw() {
            true => RunEnd::NeverStarted,
            false => RunEnd::Dropped,
        });
    }

    /// The run has given nothing, and the job has ended with it.
    fn end_by(&mut self, end: RunEnd) {
        self.is_over = true;
        let began = self.cell.take_beginning();
        self.cell.forget_run();
        if let AfterRun::EndWithError(error) = self.cell.table().finished(&self.run, began, end) {
            self.cell.end(error);
        }
    }
}

impl<W: Work> Drop for RunGuard<W> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end_dropped();
        }
    }
}

/// The error in words. Those are foreign code.
fn described(error: &JobError) -> Arc<str> {
    let words = catch_unwind(AssertUnwindSafe(|| match error {
        JobError::Failed(error) => error.to_string(),
        other => other.to_string(),
    }));
    match words {
        Ok(words) => words.into(),
        Err(_) => "an error whose `Display` implementation panicked".into(),
    }
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> JobError {
    JobError::Panicked(Box::new(Panic::new(panic)))
}

fn drop_safely<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
