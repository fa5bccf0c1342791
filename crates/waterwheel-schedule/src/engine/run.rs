//! One run of a job: a task that ends with the run.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use super::Context;
use super::after::After;
use super::job::{Cell, Job};
use super::plan::Ran;
use super::work::Work;
use crate::error::{JobError, Panic};

/// Which run it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) key: Key,
    pub(crate) scheduled: Instant,
    pub(crate) number: u64,
    pub(crate) attempt: u32,
    /// The longest that it may take.
    pub(crate) limit: Option<Duration>,
}

/// Runs a job once.
pub(crate) async fn run<W: Work>(cell: Arc<Cell<W>>, run: Run) {
    // If the task is dropped, by a runtime that ends, the run is over nevertheless.
    let mut over = Over {
        cell: Arc::clone(&cell),
        run,
        result: Some(Err(JobError::Shutdown)),
    };
    match cell.take_work() {
        (_, true) => over.result = Some(Err(JobError::Cancelled)),
        (Some(work), false) => over.result = Some(cell.work(work, run).await),
        // The job has ended meanwhile.
        (None, false) => {}
    }
}

impl<W: Work> Cell<W> {
    async fn work(self: &Arc<Self>, work: W, run: Run) -> Result<W::Value, JobError> {
        let job: Arc<dyn Job> = self.clone();
        let context = Context::new(job, run);
        let mut work = Some(work);
        let begun = catch_unwind(AssertUnwindSafe(|| W::begin(&mut work, context)));
        if let Some(work) = work {
            self.give_work_back(work);
        }
        let mut running = pin!(Some(begun.map_err(panicked)?));
        let result = match run.limit {
            None => poll_fn(|cx| self.poll_run(running.as_mut(), cx)).await,
            // In a box: the task of a run without a limit is smaller.
            Some(limit) => Box::pin(self.work_within(limit, running.as_mut())).await,
        };
        // Its destructor may panic.
        match catch_unwind(AssertUnwindSafe(|| running.set(None))) {
            Ok(()) => result,
            Err(panic) => result.and(Err(panicked(panic))),
        }
    }

    fn poll_run(
        &self,
        running: Pin<&mut Option<W::Running>>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<W::Value, JobError>> {
        // A run on a thread that may block cannot be ended from outside.
        if !W::BLOCKS && self.is_aborted() {
            return Poll::Ready(Err(JobError::Cancelled));
        }
        let running = running.as_pin_mut().expect("a run that goes on");
        match catch_unwind(AssertUnwindSafe(|| running.poll(cx))) {
            Ok(Poll::Ready(result)) => Poll::Ready(result),
            Err(panic) => Poll::Ready(Err(panicked(panic))),
            Ok(Poll::Pending) if !W::BLOCKS && self.poll_aborted(cx) => {
                Poll::Ready(Err(JobError::Cancelled))
            }
            Ok(Poll::Pending) => Poll::Pending,
        }
    }

    async fn work_within(
        &self,
        limit: Duration,
        mut running: Pin<&mut Option<W::Running>>,
    ) -> Result<W::Value, JobError> {
        {
            let polled = poll_fn(|cx| self.poll_run(running.as_mut(), cx));
            // A timer that is stopped measures no limit.
            if let Ok(limited) = self.table().timer.try_timeout(limit, polled) {
                match limited.await {
                    Ok(result) => return result,
                    Err(elapsed) if elapsed.was_stopped() => {}
                    Err(_) => {
                        self.cancel_token();
                        if W::BLOCKS {
                            // The thread goes on. The next run must not begin before it is done.
                            let late = poll_fn(|cx| self.poll_run(running.as_mut(), cx)).await;
                            drop_safely(late);
                        }
                        return Err(JobError::TimedOut);
                    }
                }
            }
        }
        poll_fn(|cx| self.poll_run(running.as_mut(), cx)).await
    }
}

struct Over<W: Work> {
    cell: Arc<Cell<W>>,
    run: Run,
    result: Option<Result<W::Value, JobError>>,
}

impl<W: Work> Drop for Over<W> {
    fn drop(&mut self) {
        let Some(result) = self.result.take() else {
            return;
        };
        self.cell.forget_run();
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
