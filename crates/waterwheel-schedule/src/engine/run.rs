//! One run of a job: a task that ends with the run.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::task::coop::unconstrained;
use waterwheel::Sleep;

use super::Context;
use super::after::After;
use super::cell::Cell;
use super::job::{Job, Run};
use super::plan::Ran;
use super::work::Work;
use crate::error::{JobError, Panic};

pin_project! {
    /// The task of a run. It is small, and takes few locks: what a plain job costs is mostly this.
    pub(crate) struct Running<W: Work> {
        // Dropped before `over`, with a task whose runtime ends: the job's next run does not overlap with it.
        #[pin]
        future: Option<W::Running>,
        limit: Option<Limit>,
        // An abort wakes this task, which is always the same one.
        is_registered: bool,
        over: Over<W>,
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
    pub(crate) fn new(cell: Arc<Cell<W>>, run: Run, limit: Option<Duration>) -> Running<W> {
        Running {
            future: None,
            limit: limit.map(Limit::Of),
            is_registered: false,
            over: Over {
                cell,
                run,
                is_over: false,
            },
        }
    }

    /// Calls the closure.
    fn begin(self: Pin<&mut Self>) -> Result<(), JobError> {
        let mut this = self.project();
        let cell = &this.over.cell;
        let mut work = Some(cell.take_work()?);
        let context = Context::new(Arc::clone(cell) as Arc<dyn Job>, this.over.run);
        let begun = catch_unwind(AssertUnwindSafe(|| W::begin(&mut work, context)));
        if let Some(work) = work {
            cell.give_work_back(work);
        }
        this.future.set(Some(begun.map_err(panicked)?));
        if let Some(Limit::Of(limit)) = *this.limit {
            // A timer that is stopped measures no limit.
            let sleep = cell.table().timer.try_sleep(limit);
            *this.limit = sleep.ok().map(|sleep| Limit::Until(Box::new(sleep)));
        }
        Ok(())
    }

    fn poll_begun(
        self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<W::Value, JobError>> {
        let this = self.project();
        let cell = &this.over.cell;
        // A run on a thread that may block cannot be ended from outside.
        if !W::BLOCKS && cell.is_aborted() {
            return Poll::Ready(Err(JobError::Cancelled));
        }
        let future = this.future.as_pin_mut().expect("a run that goes on");
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Ready(result)) => return Poll::Ready(result),
            Err(panic) => return Poll::Ready(Err(panicked(panic))),
            Ok(Poll::Pending) => {}
        }
        if !W::BLOCKS && !*this.is_registered {
            *this.is_registered = true;
            cell.wake_when_aborted(cx);
        }
        if !W::BLOCKS && cell.is_aborted() {
            return Poll::Ready(Err(JobError::Cancelled));
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
        cell.cancel_token();
        if W::BLOCKS {
            *this.limit = Some(Limit::Exceeded);
            return Poll::Pending;
        }
        Poll::Ready(Err(JobError::TimedOut))
    }
}

impl<W: Work> Future for Running<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let begun = match self.future {
            Some(_) => Ok(()),
            None => self.as_mut().begin(),
        };
        let polled = match begun {
            Ok(()) => self.as_mut().poll_begun(cx),
            Err(error) => Poll::Ready(Err(error)),
        };
        let Poll::Ready(mut result) = polled else {
            return Poll::Pending;
        };
        let mut this = self.project();
        if let Some(Limit::Exceeded) = this.limit.take() {
            drop_safely(std::mem::replace(&mut result, Err(JobError::TimedOut)));
        }
        // Its destructor may panic.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| this.future.set(None))) {
            if result.is_ok() {
                drop_safely(std::mem::replace(&mut result, Err(panicked(panic))));
            }
        }
        this.over.end(result);
        Poll::Ready(())
    }
}

/// Ends the run when the task is dropped too, by a runtime that ends.
struct Over<W: Work> {
    cell: Arc<Cell<W>>,
    run: Run,
    is_over: bool,
}

impl<W: Work> Over<W> {
    fn end(&mut self, result: Result<W::Value, JobError>) {
        self.is_over = true;
        if !W::IS_ONCE {
            self.cell.forget_run();
        }
        let (ran, failed) = match &result {
            Ok(_) => (Ran::Well, None),
            Err(error) => (Ran::Badly, Some(described(error))),
        };
        if let Some(error) = &failed {
            self.cell.set_last_error(Arc::clone(error));
        }
        match self.cell.table().finished(&self.run, ran, failed) {
            After::Again => drop_safely(result),
            After::Over => self.cell.complete(result),
            After::Well => {
                drop_safely(result);
                self.cell.end_well();
            }
            After::Ended(error) => {
                drop_safely(result);
                self.cell.end(error);
            }
        }
    }
}

impl<W: Work> Drop for Over<W> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Err(JobError::Shutdown));
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
        Err(_) => "an error whose `Display` panics".into(),
    }
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> JobError {
    JobError::Panicked(Box::new(Panic::new(panic)))
}

fn drop_safely<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
