//! A job, whatever its closure and its result.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as TaskContext, Poll, Waker};

use tokio_util::sync::CancellationToken;

use super::run::{Run, run};
use super::table::Table;
use super::work::Work;
use crate::error::JobError;
use crate::sync::lock;

/// What the table knows of a job.
pub(crate) trait Job: Send + Sync {
    fn table(&self) -> &Arc<Table>;

    /// Starts a run as a task.
    fn start(self: Arc<Self>, run: Run);

    /// Ends a job that never runs again: drops its closure, and completes its handle.
    fn end(&self, error: JobError);

    /// Ends a job that has had its last run, or none, well.
    fn end_well(&self);

    /// The token of the present run, which a cancel cancels; made when first asked for.
    fn token(&self) -> CancellationToken;

    /// Cancels the token, if it was ever asked for.
    fn cancel_token(&self);

    /// The same, and the job counts as cancelled.
    fn mark_cancelled(&self);

    fn is_cancelled(&self) -> bool;

    /// A run has ended, and is not tried again.
    fn count_run(&self);

    /// How many runs have ended.
    fn runs(&self) -> u64;

    /// Lets the run that goes on end at its next poll.
    fn abort(&self);

    fn set_last_error(&self, error: Arc<str>);

    fn last_error(&self) -> Option<Arc<str>>;
}

/// What a handle knows of a job: what its result is.
pub(crate) trait Awaited<T>: Job {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<T, JobError>>;

    /// The handle is gone: the result is dropped, now or when it is there.
    fn detach(&self);

    /// The job, whatever its result is.
    fn as_job(self: Arc<Self>) -> Arc<dyn Job>;
}

/// A job with its closure and its result.
pub(crate) struct Cell<W: Work> {
    table: Arc<Table>,
    runs: AtomicU64,
    slot: Mutex<Slot<W>>,
}

struct Slot<W: Work> {
    work: Option<W>,
    result: Stored<W::Value>,
    /// Of the task that awaits the handle.
    awaiting: Option<Waker>,
    /// Of the task that runs the job, once the run has waited for something.
    running: Option<Waker>,
    is_aborted: bool,
    is_cancelled: bool,
    /// What most jobs never need.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    token: CancellationToken,
    last_error: Option<Arc<str>>,
}

enum Stored<T> {
    NotYet,
    There(Result<T, JobError>),
    Taken,
}

impl<W: Work> Cell<W> {
    pub(crate) fn new(table: Arc<Table>, work: W) -> Cell<W> {
        Cell {
            table,
            runs: AtomicU64::new(0),
            slot: Mutex::new(Slot {
                work: Some(work),
                result: Stored::NotYet,
                awaiting: None,
                running: None,
                is_aborted: false,
                is_cancelled: false,
                rare: None,
            }),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot<W>> {
        lock(&self.slot)
    }

    /// The work, and whether the run was aborted before it began.
    pub(crate) fn take_work(&self) -> (Option<W>, bool) {
        let mut slot = self.slot();
        match slot.is_aborted {
            true => (None, true),
            false => (slot.work.take(), false),
        }
    }

    /// For the next run.
    pub(crate) fn give_work_back(&self, work: W) {
        let before = self.slot().work.replace(work);
        drop(before);
    }

    /// Whether the run is to end before its next poll.
    pub(crate) fn is_aborted(&self) -> bool {
        self.slot().is_aborted
    }

    /// Whether the run is to end now. If not, an abort wakes this task.
    pub(crate) fn poll_aborted(&self, cx: &TaskContext<'_>) -> bool {
        {
            let slot = self.slot();
            if slot.is_aborted {
                return true;
            }
            if slot
                .running
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                return false;
            }
        }
        let waker = cx.waker().clone();
        let mut slot = self.slot();
        let before = slot.running.replace(waker);
        let is_aborted = slot.is_aborted;
        drop(slot);
        drop(before);
        is_aborted
    }

    /// After a run: its task is woken no more, and its token is not the next one's.
    pub(crate) fn forget_run(&self) {
        let mut slot = self.slot();
        let waker = slot.running.take();
        let token = slot
            .rare
            .as_mut()
            .map(|rare| std::mem::take(&mut rare.token));
        drop(slot);
        drop(waker);
        drop(token);
    }

    /// The job has ended: completes the handle.
    pub(crate) fn complete(&self, result: Result<W::Value, JobError>) {
        let mut slot = self.slot();
        let unused = match slot.result {
            Stored::NotYet => {
                slot.result = Stored::There(result);
                None
            }
            _ => Some(result),
        };
        let awaiting = slot.awaiting.take();
        let work = slot.work.take();
        drop(slot);
        // A destructor that panics ends neither the driver nor what others wait for.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unused)));
        if let Some(waker) = awaiting {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl<W: Work> Job for Cell<W> {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn start(self: Arc<Self>, of: Run) {
        let runtime = self.table.runtime.clone();
        runtime.spawn(run(self, of));
    }

    fn end(&self, error: JobError) {
        self.mark_cancelled();
        self.complete(Err(error));
    }

    fn end_well(&self) {
        // A job that may end without a value gives none: all such jobs give `()`.
        let nothing: Box<dyn Any> = Box::new(());
        self.complete(match nothing.downcast::<W::Value>() {
            Ok(value) => Ok(*value),
            Err(_) => Err(JobError::Cancelled),
        });
    }

    fn token(&self) -> CancellationToken {
        let mut slot = self.slot();
        let is_cancelled = slot.is_cancelled;
        let token = slot.rare.get_or_insert_default().token.clone();
        drop(slot);
        if is_cancelled {
            token.cancel();
        }
        token
    }

    fn mark_cancelled(&self) {
        self.slot().is_cancelled = true;
        self.cancel_token();
    }

    fn is_cancelled(&self) -> bool {
        self.slot().is_cancelled
    }

    fn count_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    fn cancel_token(&self) {
        let slot = self.slot();
        let token = slot.rare.as_ref().map(|rare| rare.token.clone());
        drop(slot);
        if let Some(token) = token {
            let _ = catch_unwind(AssertUnwindSafe(|| token.cancel()));
        }
    }

    fn abort(&self) {
        let mut slot = self.slot();
        slot.is_aborted = true;
        let waker = slot.running.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn set_last_error(&self, error: Arc<str>) {
        self.slot().rare.get_or_insert_default().last_error = Some(error);
    }

    fn last_error(&self) -> Option<Arc<str>> {
        self.slot().rare.as_ref()?.last_error.clone()
    }
}

impl<W: Work> Awaited<W::Value> for Cell<W> {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<W::Value, JobError>> {
        // The clone of a waker is foreign code, so it is made without the lock.
        let mut fresh: Option<Waker> = None;
        loop {
            let mut slot = self.slot();
            match std::mem::replace(&mut slot.result, Stored::Taken) {
                Stored::There(result) => return Poll::Ready(result),
                Stored::Taken => {
                    drop(slot);
                    panic!("a `JobHandle` was polled after it had given its result")
                }
                Stored::NotYet => slot.result = Stored::NotYet,
            }
            let is_known = slot
                .awaiting
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()));
            if is_known {
                return Poll::Pending;
            }
            if let Some(waker) = fresh.take() {
                let before = slot.awaiting.replace(waker);
                drop(slot);
                drop(before);
                return Poll::Pending;
            }
            drop(slot);
            fresh = Some(cx.waker().clone());
        }
    }

    fn detach(&self) {
        let mut slot = self.slot();
        let unused = std::mem::replace(&mut slot.result, Stored::Taken);
        let awaiting = slot.awaiting.take();
        drop(slot);
        drop(unused);
        drop(awaiting);
    }

    fn as_job(self: Arc<Self>) -> Arc<dyn Job> {
        self
    }
}
