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
use super::table::Table;
use super::table_ref::TableRef;
use super::work::{Holder, Work};
use crate::error::JobError;
use crate::sync::lock;

/// A job with its closure and its result.
pub(crate) struct JobCell<W: Work> {
    table: Arc<TableRef>,
    runs: AtomicU64,
    /// The run that goes on, if any, is to end at its next poll.
    is_aborted: AtomicBool,
    /// The run that was admitted has begun. Written with the state's lock held, which decides between a beginning and a withdrawal.
    has_begun: AtomicBool,
    state: Mutex<CellState<W>>,
}

pub(super) struct CellState<W: Work> {
    work: Option<W>,
    pub(super) result: JobResult<W::Value>,
    /// Of the task that awaits the handle.
    pub(super) awaiting: Option<Waker>,
    is_cancelled: bool,
    /// No run begins any more: the one that was admitted was withdrawn, or the job has ended.
    is_withdrawn: bool,
    /// The handle is complete, and the closure is gone or about to go.
    has_ended: bool,
    /// In a box: a job that waits for its time has none of it, and takes less memory.
    rare: Option<Box<RareState>>,
}

#[derive(Default)]
struct RareState {
    /// Of the task that runs the job, once the run has waited for something.
    running: Option<Waker>,
    token: Option<CancellationToken>,
    /// When the present run began, for the hook.
    began: Option<Instant>,
    last_error: Option<Arc<str>>,
    /// Cancelled when the job has ended, for controls that wait for that.
    ended: Option<CancellationToken>,
}

pub(super) enum JobResult<T> {
    Pending,
    Ready(Result<T, JobError>),
    Taken,
}

impl<W: Work> JobCell<W> {
    pub(crate) fn new(table: Arc<TableRef>, work: W) -> JobCell<W> {
        JobCell {
            table,
            runs: AtomicU64::new(0),
            is_aborted: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            state: Mutex::new(CellState {
                work: Some(work),
                result: JobResult::Pending,
                awaiting: None,
                is_cancelled: false,
                is_withdrawn: false,
                has_ended: false,
                rare: None,
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, CellState<W>> {
        lock(&self.state)
    }

    /// Whether the run is to end now.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// An abort from now on wakes this task.
    pub(crate) fn wake_when_aborted(&self, cx: &TaskContext<'_>) {
        let waker = cx.waker().clone();
        let mut state = self.state();
        let before = state.rare.get_or_insert_default().running.replace(waker);
        drop(state);
        drop(before);
    }

    /// After a run: its task is woken no more, and its token is not the next one's.
    pub(crate) fn forget_run(&self) {
        let mut state = self.state();
        let forgotten = match &mut state.rare {
            Some(rare) => (rare.running.take(), rare.token.take()),
            None => return,
        };
        drop(state);
        drop(forgotten);
    }

    /// When the run began. `None` if it did not, or if there is no hook to be told.
    pub(crate) fn take_beginning(&self) -> Option<Instant> {
        self.table.hook.as_ref()?;
        self.state().rare.as_mut()?.began.take()
    }

    /// The run has taken too long: its token is cancelled, also if the job asks for it only now.
    pub(crate) fn time_is_up(&self) {
        cancel(Some(self.token()));
    }

    /// The job has ended: completes the handle.
    pub(crate) fn complete(&self, result: Result<W::Value, JobError>) {
        self.complete_locked(self.state(), result);
    }

    fn complete_locked(
        &self,
        mut state: MutexGuard<'_, CellState<W>>,
        result: Result<W::Value, JobError>,
    ) {
        let unused = match state.result {
            JobResult::Pending => {
                state.result = JobResult::Ready(result);
                None
            }
            _ => Some(result),
        };
        state.is_withdrawn = true;
        state.has_ended = true;
        let awaiting = state.awaiting.take();
        let (running, ended) = match &mut state.rare {
            Some(rare) => (rare.running.take(), rare.ended.take()),
            None => (None, None),
        };
        let work = state.work.take();
        drop(state);
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

impl<W: Work> Holder<W> for JobCell<W> {
    fn begin_run(&self, context: &Context) -> Option<W> {
        let began = self.table.hook.as_ref().map(|_| self.table.timer.now());
        let mut state = self.state();
        if state.is_withdrawn {
            return None;
        }
        let work = state.work.take()?;
        self.has_begun.store(true, Ordering::Relaxed);
        if began.is_some() {
            state.rare.get_or_insert_default().began = began;
        }
        // With the lock held: who has found the run begun, finds it counted.
        self.table.runs_started.fetch_add(1, Ordering::Relaxed);
        drop(state);
        self.table.report_start(context.which());
        Some(work)
    }

    fn give_back(&self, work: W) {
        let mut state = self.state();
        let unused = match state.is_withdrawn {
            true => Some(work),
            false => state.work.replace(work),
        };
        drop(state);
        drop(unused);
    }
}

impl<W: Work> Job for JobCell<W> {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn spawn_run(self: Arc<Self>, run: Run, limit: Option<Duration>, runtime: &Handle) {
        runtime.spawn(Running::new(self, run, limit));
    }

    fn run_future(
        self: Arc<Self>,
        run: Run,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Running::new(self, run, limit))
    }

    fn end(&self, error: JobError) {
        let mut state = self.state();
        state.is_cancelled = true;
        let token = state.rare.as_ref().and_then(|rare| rare.token.clone());
        self.complete_locked(state, Err(error));
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
        let mut state = self.state();
        let is_cancelled = state.is_cancelled;
        let token = &mut state.rare.get_or_insert_default().token;
        let token = token.get_or_insert_default().clone();
        drop(state);
        if is_cancelled {
            token.cancel();
        }
        token
    }

    fn ended(&self) -> CancellationToken {
        let mut state = self.state();
        if !state.has_ended {
            let ended = &mut state.rare.get_or_insert_default().ended;
            return ended.get_or_insert_default().clone();
        }
        drop(state);
        cancelled_token()
    }

    fn mark_cancelled(&self) {
        let mut state = self.state();
        state.is_cancelled = true;
        let token = state.rare.as_ref().and_then(|rare| rare.token.clone());
        drop(state);
        cancel(token);
    }

    fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    fn withdraw(&self) -> bool {
        let mut state = self.state();
        let has_begun = self.has_begun();
        state.is_withdrawn |= !has_begun;
        !has_begun
    }

    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    fn expect_another(&self) {
        let _slot = self.state();
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
        let mut state = self.state();
        let waker = state.rare.as_mut().and_then(|rare| rare.running.take());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn set_last_error(&self, error: Arc<str>) {
        self.state().rare.get_or_insert_default().last_error = Some(error);
    }

    fn last_error(&self) -> Option<Arc<str>> {
        self.state().rare.as_ref()?.last_error.clone()
    }
}

/// What waits for the token is foreign code.
fn cancel(token: Option<CancellationToken>) {
    if let Some(token) = token {
        let _ = catch_unwind(AssertUnwindSafe(|| token.cancel()));
    }
}
