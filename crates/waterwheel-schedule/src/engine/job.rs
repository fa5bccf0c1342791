//! A job, whatever its closure and its result.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::run::{Run, Running};
use super::share::Share;
use super::table::Table;
use super::work::Work;
use crate::error::JobError;
use crate::sync::lock;

/// What the table knows of a job.
pub(crate) trait Job: Send + Sync {
    fn table(&self) -> &Arc<Table>;

    /// A run as a task of its own.
    fn start(self: Arc<Self>, run: Run, limit: Option<Duration>, runtime: &Handle);

    /// A run, for a task that there is.
    fn begin(
        self: Arc<Self>,
        run: Run,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

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
    table: Arc<Share>,
    runs: AtomicU64,
    /// The run that goes on, if any, is to end at its next poll.
    is_aborted: AtomicBool,
    slot: Mutex<Slot<W>>,
}

struct Slot<W: Work> {
    work: Option<W>,
    result: Stored<W::Value>,
    /// Of the task that awaits the handle.
    awaiting: Option<Waker>,
    is_cancelled: bool,
    /// In a box: a job that waits for its time has none of it, and takes less memory.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    /// Of the task that runs the job, once the run has waited for something.
    running: Option<Waker>,
    token: Option<CancellationToken>,
    last_error: Option<Arc<str>>,
}

enum Stored<T> {
    NotYet,
    There(Result<T, JobError>),
    Taken,
}

impl<W: Work> Cell<W> {
    pub(crate) fn new(table: Arc<Share>, work: W) -> Cell<W> {
        Cell {
            table,
            runs: AtomicU64::new(0),
            is_aborted: AtomicBool::new(false),
            slot: Mutex::new(Slot {
                work: Some(work),
                result: Stored::NotYet,
                awaiting: None,
                is_cancelled: false,
                rare: None,
            }),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot<W>> {
        lock(&self.slot)
    }

    /// The work, for a run that begins.
    pub(crate) fn take_work(&self) -> Result<W, JobError> {
        if self.is_aborted() {
            return Err(JobError::Cancelled);
        }
        // Without it, the job has ended meanwhile.
        self.slot().work.take().ok_or(JobError::Shutdown)
    }

    /// For the next run.
    pub(crate) fn give_work_back(&self, work: W) {
        let before = self.slot().work.replace(work);
        drop(before);
    }

    /// Whether the run is to end now.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// An abort from now on wakes this task.
    pub(crate) fn wake_when_aborted(&self, cx: &TaskContext<'_>) {
        let waker = cx.waker().clone();
        let mut slot = self.slot();
        let before = slot.rare.get_or_insert_default().running.replace(waker);
        drop(slot);
        drop(before);
    }

    /// After a run: its task is woken no more, and its token is not the next one's.
    pub(crate) fn forget_run(&self) {
        let mut slot = self.slot();
        let forgotten = match &mut slot.rare {
            Some(rare) => (rare.running.take(), rare.token.take()),
            None => return,
        };
        drop(slot);
        drop(forgotten);
    }

    /// The job has ended: completes the handle.
    pub(crate) fn complete(&self, result: Result<W::Value, JobError>) {
        self.complete_locked(self.slot(), result);
    }

    fn complete_locked(
        &self,
        mut slot: MutexGuard<'_, Slot<W>>,
        result: Result<W::Value, JobError>,
    ) {
        let unused = match slot.result {
            Stored::NotYet => {
                slot.result = Stored::There(result);
                None
            }
            _ => Some(result),
        };
        let awaiting = slot.awaiting.take();
        let running = slot.rare.as_mut().and_then(|rare| rare.running.take());
        let work = slot.work.take();
        drop(slot);
        drop(running);
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

    fn start(self: Arc<Self>, run: Run, limit: Option<Duration>, runtime: &Handle) {
        runtime.spawn(Running::new(self, run, limit));
    }

    fn begin(
        self: Arc<Self>,
        run: Run,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Running::new(self, run, limit))
    }

    fn end(&self, error: JobError) {
        let mut slot = self.slot();
        slot.is_cancelled = true;
        let token = slot.rare.as_ref().and_then(|rare| rare.token.clone());
        self.complete_locked(slot, Err(error));
        cancel(token);
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
        let token = &mut slot.rare.get_or_insert_default().token;
        let token = token.get_or_insert_default().clone();
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
        // The table's lock lets one in at a time.
        let runs = self.runs.load(Ordering::Relaxed);
        self.runs.store(runs + 1, Ordering::Relaxed);
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    fn cancel_token(&self) {
        let slot = self.slot();
        let token = slot.rare.as_ref().and_then(|rare| rare.token.clone());
        drop(slot);
        cancel(token);
    }

    fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
        let mut slot = self.slot();
        let waker = slot.rare.as_mut().and_then(|rare| rare.running.take());
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

/// What waits for the token is foreign code.
fn cancel(token: Option<CancellationToken>) {
    if let Some(token) = token {
        let _ = catch_unwind(AssertUnwindSafe(|| token.cancel()));
    }
}
