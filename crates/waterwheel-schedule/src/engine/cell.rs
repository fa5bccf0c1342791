//! What holds a job: its closure, its result, and what its runs share.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::job::{Job, Run, cancelled_token};
use super::run::Running;
use super::share::Share;
use super::table::Table;
use super::work::{Holder, Work};
use crate::error::JobError;
use crate::sync::lock;

/// A job with its closure and its result.
pub(crate) struct Cell<W: Work> {
    table: Arc<Share>,
    runs: AtomicU64,
    /// The run that goes on, if any, is to end at its next poll.
    is_aborted: AtomicBool,
    /// The run that was admitted has begun. Written with the slot's lock held, which decides between a beginning and a withdrawal.
    has_begun: AtomicBool,
    slot: Mutex<Slot<W>>,
}

pub(super) struct Slot<W: Work> {
    work: Option<W>,
    pub(super) result: Stored<W::Value>,
    /// Of the task that awaits the handle.
    pub(super) awaiting: Option<Waker>,
    is_cancelled: bool,
    /// No run begins any more: the one that was admitted was withdrawn, or the job has ended.
    is_withdrawn: bool,
    /// The handle is complete, and the closure is gone or about to go.
    has_ended: bool,
    /// In a box: a job that waits for its time has none of it, and takes less memory.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    /// Of the task that runs the job, once the run has waited for something.
    running: Option<Waker>,
    token: Option<CancellationToken>,
    /// When the present run began, for the hook.
    began: Option<Instant>,
    last_error: Option<Arc<str>>,
    /// Cancelled when the job has ended, for controls that wait for that.
    ended: Option<CancellationToken>,
}

pub(super) enum Stored<T> {
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
            has_begun: AtomicBool::new(false),
            slot: Mutex::new(Slot {
                work: Some(work),
                result: Stored::NotYet,
                awaiting: None,
                is_cancelled: false,
                is_withdrawn: false,
                has_ended: false,
                rare: None,
            }),
        }
    }

    pub(super) fn slot(&self) -> MutexGuard<'_, Slot<W>> {
        lock(&self.slot)
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

    /// When the run began. `None` if it did not, or if there is no hook to be told.
    pub(crate) fn take_beginning(&self) -> Option<Instant> {
        self.table.hook.as_ref()?;
        self.slot().rare.as_mut()?.began.take()
    }

    /// The run has taken too long: its token is cancelled, also if the job asks for it only now.
    pub(crate) fn time_is_up(&self) {
        cancel(Some(self.token()));
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
        slot.is_withdrawn = true;
        slot.has_ended = true;
        let awaiting = slot.awaiting.take();
        let (running, ended) = match &mut slot.rare {
            Some(rare) => (rare.running.take(), rare.ended.take()),
            None => (None, None),
        };
        let work = slot.work.take();
        drop(slot);
        drop(running);
        // A destructor that panics ends neither the driver nor what others wait for.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unused)));
        if let Some(waker) = awaiting {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        cancel(ended);
    }
}

impl<W: Work> Holder<W> for Cell<W> {
    fn begin_run(&self, context: &Context) -> Option<W> {
        let began = self.table.hook.as_ref().map(|_| self.table.timer.now());
        let mut slot = self.slot();
        if slot.is_withdrawn {
            return None;
        }
        let work = slot.work.take()?;
        self.has_begun.store(true, Ordering::Relaxed);
        if began.is_some() {
            slot.rare.get_or_insert_default().began = began;
        }
        // With the lock held: who has found the run begun, finds it counted.
        self.table.begun.fetch_add(1, Ordering::Relaxed);
        drop(slot);
        self.table.report_start(context.which());
        Some(work)
    }

    fn give_back(&self, work: W) {
        let mut slot = self.slot();
        let unused = match slot.is_withdrawn {
            true => Some(work),
            false => slot.work.replace(work),
        };
        drop(slot);
        drop(unused);
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

    fn ended(&self) -> CancellationToken {
        let mut slot = self.slot();
        if !slot.has_ended {
            let ended = &mut slot.rare.get_or_insert_default().ended;
            return ended.get_or_insert_default().clone();
        }
        drop(slot);
        cancelled_token()
    }

    fn mark_cancelled(&self) {
        let mut slot = self.slot();
        slot.is_cancelled = true;
        let token = slot.rare.as_ref().and_then(|rare| rare.token.clone());
        drop(slot);
        cancel(token);
    }

    fn is_cancelled(&self) -> bool {
        self.slot().is_cancelled
    }

    fn withdraw(&self) -> bool {
        let mut slot = self.slot();
        let has_begun = self.has_begun();
        slot.is_withdrawn |= !has_begun;
        !has_begun
    }

    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    fn expect_another(&self) {
        let _slot = self.slot();
        self.has_begun.store(false, Ordering::Relaxed);
    }

    fn count_run(&self) {
        // The table's lock lets one in at a time.
        let runs = self.runs.load(Ordering::Relaxed);
        self.runs.store(runs + 1, Ordering::Relaxed);
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
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

/// What waits for the token is foreign code.
fn cancel(token: Option<CancellationToken>) {
    if let Some(token) = token {
        let _ = catch_unwind(AssertUnwindSafe(|| token.cancel()));
    }
}
