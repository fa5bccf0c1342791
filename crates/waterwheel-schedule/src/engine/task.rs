//! A job with its closure and its result, and the future of one run of it.
//!
//! A [`JobCell`] is to a [`JobHandle`](crate::JobHandle) what tokio's task cell is to its `JoinHandle`. The table knows it as a [`Job`], its
//! handle as a [`TypedJob`]. A [`RunFuture`] is spawned for each run, or polled by a worker of the run queue.
//!
//! The lock of a cell is held for a few loads and stores, and may be taken while the table's is held, never the other way round.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as TaskContext, Poll, Waker, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::task::coop::unconstrained;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use waterwheel::Sleep;

use super::completion::{AfterRun, RunEnd};
use super::context::Context;
use super::table::{Job, Run, Table, TableRef, cancelled_token, lock};
use super::work::{Holder, Work};
use crate::error::{JobError, Panic};

/// A job with its closure and its result.
pub(crate) struct JobCell<W: Work> {
    table: Arc<TableRef>,
    runs: AtomicU64,
    /// Whether the run in progress must end at its next poll.
    is_aborted: AtomicBool,
    /// Whether the admitted run has begun. Written while the cell's lock is held, which decides whether a run begins or is withdrawn.
    has_begun: AtomicBool,
    state: Mutex<CellState<W>>,
}

struct CellState<W: Work> {
    work: Option<W>,
    result: JobResult<W::Value>,
    /// Wakes the task that awaits the handle.
    awaiting: Option<Waker>,
    is_cancelled: bool,
    /// Whether no further run begins: the admitted run was withdrawn, or the job has ended.
    is_withdrawn: bool,
    /// Whether the handle is complete, and the closure is dropped or about to be.
    has_ended: bool,
    /// Boxed, since a job that waits for its deadline has none of it, and takes less memory.
    rare: Option<Box<RareState>>,
}

/// The state that most jobs do not need.
#[derive(Default)]
struct RareState {
    /// Wakes the task of the run, once that has waited for something.
    running: Option<Waker>,
    token: Option<CancellationToken>,
    /// When the current run began, if there is an event hook.
    began: Option<Instant>,
    last_error: Option<Arc<str>>,
    /// Cancelled when the job has ended, for `JobControl::ended`.
    ended: Option<CancellationToken>,
}

enum JobResult<T> {
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

    fn state(&self) -> MutexGuard<'_, CellState<W>> {
        lock(&self.state)
    }

    fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// From now on, an abort wakes this task.
    fn wake_when_aborted(&self, cx: &TaskContext<'_>) {
        let waker = cx.waker().clone();
        let mut state = self.state();
        let before = state.rare.get_or_insert_default().running.replace(waker);
        drop(state);
        drop(before);
    }

    /// Forgets the waker and the token of a run that has ended.
    fn forget_run(&self) {
        let mut state = self.state();
        let forgotten = match &mut state.rare {
            Some(rare) => (rare.running.take(), rare.token.take()),
            None => return,
        };
        drop(state);
        drop(forgotten);
    }

    /// When the run began. `None` if it did not, or if there is no event hook.
    fn take_start_time(&self) -> Option<Instant> {
        self.table.hook.as_ref()?;
        self.state().rare.as_mut()?.began.take()
    }

    /// Cancels the token of a run that has exceeded its time limit, even if the job asks for the token only later.
    fn cancel_token(&self) {
        cancel(Some(self.token()));
    }

    /// Ends the job: completes its handle.
    fn complete(&self, result: Result<W::Value, JobError>) {
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
        // A panic in a destructor or a waker must not end the driver.
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
        // Counted while the lock is held: whoever finds that the run has begun, finds it counted.
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
        runtime.spawn(RunFuture::new(self, run, limit));
    }

    fn run_future(
        self: Arc<Self>,
        run: Run,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(RunFuture::new(self, run, limit))
    }

    fn end(&self, error: JobError) {
        let mut state = self.state();
        state.is_cancelled = true;
        let token = state.rare.as_ref().and_then(|rare| rare.token.clone());
        self.complete_locked(state, Err(error));
        cancel(token);
    }

    fn end_ok(&self) {
        // All jobs that may end without a run have `()` as their value.
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

    fn prepare_next_run(&self) {
        let _slot = self.state();
        self.has_begun.store(false, Ordering::Relaxed);
    }

    fn count_run(&self) {
        // The caller holds the table's lock.
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

/// Cancels a token. Tasks that wait for it are foreign code, so no lock may be held.
fn cancel(token: Option<CancellationToken>) {
    if let Some(token) = token {
        let _ = catch_unwind(AssertUnwindSafe(|| token.cancel()));
    }
}

/// A job whose result type is known, for its handle.
pub(crate) trait TypedJob<T>: Job {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<T, JobError>>;

    /// The handle was dropped: drops the result, now or once there is one.
    fn detach(&self);

    /// Forgets the result type.
    fn upcast(self: Arc<Self>) -> Arc<dyn Job>;
}

impl<W: Work> TypedJob<W::Value> for JobCell<W> {
    fn poll_result(&self, cx: &mut TaskContext<'_>) -> Poll<Result<W::Value, JobError>> {
        // Cloning a waker is foreign code, so it happens without the lock.
        let mut fresh: Option<Waker> = None;
        loop {
            let mut state = self.state();
            match std::mem::replace(&mut state.result, JobResult::Taken) {
                JobResult::Ready(result) => return Poll::Ready(result),
                JobResult::Taken => {
                    drop(state);
                    panic!("`JobHandle` polled after it had yielded its result")
                }
                JobResult::Pending => state.result = JobResult::Pending,
            }
            let is_known = state
                .awaiting
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()));
            if is_known {
                return Poll::Pending;
            }
            if let Some(waker) = fresh.take() {
                let before = state.awaiting.replace(waker);
                drop(state);
                drop(before);
                return Poll::Pending;
            }
            drop(state);
            fresh = Some(cx.waker().clone());
        }
    }

    fn detach(&self) {
        let mut state = self.state();
        let unused = std::mem::replace(&mut state.result, JobResult::Taken);
        let awaiting = state.awaiting.take();
        drop(state);
        drop(unused);
        drop(awaiting);
    }

    fn upcast(self: Arc<Self>) -> Arc<dyn Job> {
        self
    }
}

pin_project! {
    /// The future of one run. It is small and takes few locks, since it is most of the cost of a plain job.
    struct RunFuture<W: Work> {
        // Dropped before `guard`, also when the runtime drops the task, so that the next run does not overlap with it.
        #[pin]
        future: Option<W::Running>,
        time_limit: Option<TimeLimit>,
        // An abort wakes the task that polls this future, which is always the same one.
        is_registered: bool,
        guard: RunGuard<W>,
    }
}

/// The time limit of a run.
enum TimeLimit {
    /// The run has not begun.
    NotStarted(Duration),
    Until(Box<Sleep>),
    /// Exceeded by a blocking run. The next run must not begin before its thread is done.
    Exceeded,
}

impl<W: Work> RunFuture<W> {
    pub(crate) fn new(cell: Arc<JobCell<W>>, run: Run, limit: Option<Duration>) -> RunFuture<W> {
        RunFuture {
            future: None,
            time_limit: limit.map(TimeLimit::NotStarted),
            is_registered: false,
            guard: RunGuard {
                cell,
                run,
                has_ended: false,
            },
        }
    }

    /// Calls the closure, or sends it to a blocking thread, unless the run was withdrawn.
    fn begin(self: Pin<&mut Self>) -> Result<(), Ended<W::Value>> {
        let mut this = self.project();
        let (cell, run) = (&this.guard.cell, this.guard.run);
        let context = || Context::new(Arc::clone(cell) as Arc<dyn Job>, run);
        let begun = catch_unwind(AssertUnwindSafe(|| W::begin(cell, context())));
        let future = match begun {
            Ok(future) => future.ok_or(Ended::NeverStarted)?,
            Err(panic) => {
                if W::BLOCKS {
                    // The runtime could not spawn a thread: the run fails as it begins.
                    cell.give_back(cell.begin_run(&context()).ok_or(Ended::NeverStarted)?);
                }
                return Err(Ended::With(Err(panicked(panic))));
            }
        };
        this.future.set(Some(future));
        if let Some(TimeLimit::NotStarted(limit)) = *this.time_limit {
            // A timer that was stopped cannot measure the limit.
            let sleep = cell.table().timer.try_sleep(limit);
            *this.time_limit = sleep.ok().map(|sleep| TimeLimit::Until(Box::new(sleep)));
        }
        Ok(())
    }

    fn poll_begun(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Ended<W::Value>> {
        let this = self.project();
        let cell = &this.guard.cell;
        // A blocking run cannot be stopped from outside.
        if !W::BLOCKS && cell.is_aborted() {
            return Poll::Ready(Ended::Aborted);
        }
        let future = this.future.as_pin_mut().expect("the run has begun");
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
        let Some(TimeLimit::Until(sleep)) = this.time_limit else {
            return Poll::Pending;
        };
        // Otherwise a job that uses up its cooperative budget in each poll would never reach its time limit.
        if pin!(unconstrained(&mut **sleep)).poll(cx).is_pending() {
            return Poll::Pending;
        }
        if sleep.was_stopped() {
            *this.time_limit = None;
            return Poll::Pending;
        }
        cell.cancel_token();
        if W::BLOCKS {
            *this.time_limit = Some(TimeLimit::Exceeded);
            return Poll::Pending;
        }
        Poll::Ready(Ended::With(Err(JobError::TimedOut)))
    }
}

/// How the future of a run ended.
enum Ended<T> {
    With(Result<T, JobError>),
    Aborted,
    /// The run was withdrawn, or the job ended, before the closure was called.
    NeverStarted,
}

impl<W: Work> Future for RunFuture<W> {
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
        let is_late = matches!(this.time_limit.take(), Some(TimeLimit::Exceeded));
        // If it exceeded the limit while it waited for a thread, and was then withdrawn, there was no run.
        if is_late && this.guard.cell.has_begun() {
            let late = Ended::With(Err(JobError::TimedOut));
            drop_safely(std::mem::replace(&mut ended, late));
        }
        // The destructor of the future may panic.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| this.future.set(None))) {
            if matches!(ended, Ended::With(Ok(_))) {
                let panicked = Ended::With(Err(panicked(panic)));
                drop_safely(std::mem::replace(&mut ended, panicked));
            }
        }
        match ended {
            // The runtime ended before it called a blocking closure.
            Ended::With(Err(JobError::Shutdown)) => this.guard.end_dropped(),
            Ended::With(result) => this.guard.end(result),
            Ended::Aborted => this.guard.end_by(RunEnd::Aborted),
            // The call that withdrew the run has updated the table, and ends the job.
            Ended::NeverStarted => this.guard.has_ended = true,
        }
        Poll::Ready(())
    }
}

/// Ends the run in the table, also if the runtime drops the task.
struct RunGuard<W: Work> {
    cell: Arc<JobCell<W>>,
    run: Run,
    has_ended: bool,
}

impl<W: Work> RunGuard<W> {
    fn end(&mut self, result: Result<W::Value, JobError>) {
        self.has_ended = true;
        let began = self.cell.take_start_time();
        if !W::IS_ONCE {
            self.cell.forget_run();
        }
        let end = match &result {
            Ok(_) => RunEnd::Succeeded,
            Err(error) => {
                let error = error_message(error);
                self.cell.set_last_error(Arc::clone(&error));
                RunEnd::Failed(error)
            }
        };
        match self.cell.table().finished(&self.run, began, end) {
            AfterRun::RunAgain => drop_safely(result),
            AfterRun::EndWithResult => self.cell.complete(result),
            AfterRun::EndOk => {
                drop_safely(result);
                self.cell.end_ok();
            }
            AfterRun::EndWithError(error) => {
                drop_safely(result);
                self.cell.end(error);
            }
        }
    }

    /// The runtime drops the run as it ends.
    fn end_dropped(&mut self) {
        self.end_by(match self.cell.withdraw() {
            true => RunEnd::NeverStarted,
            false => RunEnd::Dropped,
        });
    }

    /// The run has no result, and the job ends with it.
    fn end_by(&mut self, end: RunEnd) {
        self.has_ended = true;
        let began = self.cell.take_start_time();
        self.cell.forget_run();
        if let AfterRun::EndWithError(error) = self.cell.table().finished(&self.run, began, end) {
            self.cell.end(error);
        }
    }
}

impl<W: Work> Drop for RunGuard<W> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end_dropped();
        }
    }
}

/// The error message, whose `Display` implementation is foreign code.
fn error_message(error: &JobError) -> Arc<str> {
    let message = catch_unwind(AssertUnwindSafe(|| match error {
        JobError::Failed(error) => error.to_string(),
        other => other.to_string(),
    }));
    match message {
        Ok(message) => message.into(),
        Err(_) => "an error whose `Display` implementation panicked".into(),
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> JobError {
    JobError::Panicked(Box::new(Panic::new(panic)))
}

fn drop_safely<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
