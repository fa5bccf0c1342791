//! The handlers, and the tasks that run them, including panics and time limits.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use tokio::task::AbortHandle;
use waterwheel_durable_core::store::{Due, Ended, Id, Row};

use super::shared::Shared;
use super::task::{message_of, yield_now};
use waterwheel_durable_core::engine::Delivery;
use waterwheel_durable_core::engine::planted::{self, Planted};

/// The number of attempts that a worker makes before it yields to other tasks, if none of them has to wait.
const AT_A_TIME: usize = 32;

/// The handlers by name.
#[derive(Debug, Default)]
pub(crate) struct Handlers(RwLock<HashMap<Arc<str>, Arc<Handler>>>);

/// A user's function, and the options for calling it.
pub(crate) struct Handler {
    pub(crate) name: Arc<str>,
    pub(crate) attempt_limit: Option<Duration>,
    pub(crate) function: Function,
}

/// Begins an attempt, given the present in microseconds since 1970.
pub(crate) type Function = Box<dyn Fn(Row, i64, &Arc<Shared>) -> Attempt + Send + Sync>;

pub(crate) type Attempt = Pin<Box<dyn Future<Output = Ended> + Send>>;

impl Handlers {
    /// Adds a handler. Returns `false` if the name already has one.
    pub(crate) fn add(&self, handler: Handler) -> bool {
        let mut handlers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = !handlers.contains_key(&handler.name);
        if is_new {
            handlers.insert(Arc::clone(&handler.name), Arc::new(handler));
        }
        is_new
    }

    pub(crate) fn of(&self, name: &str) -> Option<Arc<Handler>> {
        let handlers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        handlers.get(name).map(Arc::clone)
    }

    /// Removes all handlers, to be dropped where no lock is held.
    pub(crate) fn take(&self) -> HashMap<Arc<str>, Arc<Handler>> {
        std::mem::take(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("name", &self.name)
            .field("attempt_limit", &self.attempt_limit)
            .finish_non_exhaustive()
    }
}

/// The running workers, to be aborted when a shutdown has waited long enough.
#[derive(Debug, Default)]
pub(super) struct Workers {
    tasks: Mutex<Tasks>,
    running: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Tasks {
    tasks: Vec<AbortHandle>,
    /// The length at which finished tasks are removed.
    sweeps_at: usize,
    is_aborted: bool,
}

impl Workers {
    pub(super) fn spawn(&self, shared: &Arc<Shared>, handler: Arc<Handler>, delivery: Delivery) {
        let work = work(Arc::clone(shared), handler, delivery, self.begin());
        let task = shared.runtime.spawn(work).abort_handle();
        let mut tasks = self.lock();
        if tasks.is_aborted {
            drop(tasks);
            return task.abort();
        }
        if tasks.tasks.len() >= tasks.sweeps_at {
            tasks.tasks.retain(|task| !task.is_finished());
            tasks.sweeps_at = (tasks.tasks.len() * 2).max(64);
        }
        tasks.tasks.push(task);
    }

    /// The number of running attempts. The engine also knows that, but not once its store has failed.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn begin(&self) -> Running {
        self.running.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(&self.running))
    }

    /// Aborts all workers, including those spawned later.
    pub(super) fn abort(&self) {
        let tasks = {
            let mut tasks = self.lock();
            tasks.is_aborted = true;
            std::mem::take(&mut tasks.tasks)
        };
        for task in tasks {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt whose handler was called.
pub(super) struct Called {
    pub(super) id: Id,
    pub(super) due: Due,
    /// The number of the attempt, counted from 1.
    pub(super) number: u32,
    /// When the handler was called, by the wall clock.
    pub(super) wall: i64,
}

/// Counts a running attempt until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs an attempt and then the next ones of its handler, as long as some are ready: each end makes a place for the next.
async fn work(shared: Arc<Shared>, handler: Arc<Handler>, first: Delivery, running: Running) {
    let mut next = Some((first, running));
    let mut count = 0_usize;
    while let Some((delivery, running)) = next {
        let wall = shared.clock.wall();
        let due = delivery.row.due.as_millis().saturating_mul(1_000);
        let is_planted =
            planted::is(Planted::CalledThoughEarly) || planted::is(Planted::RoundedDown);
        let may_run = (wall >= due || is_planted) && shared.lease.is_held();
        let delivery = match may_run {
            true => run(&shared, &handler, delivery.row, wall, running).await,
            // The clock was set back, or the lease ended, while the delivery was on its way.
            false => {
                drop(running);
                shared.withdraw(&delivery, &handler)
            }
        };
        next = delivery.map(|it| (it, shared.workers.begin()));
        count += 1;
        if next.is_some() && count.is_multiple_of(AT_A_TIME) {
            yield_now().await;
        }
    }
}

/// Runs an attempt. Returns the next delivery of its handler, if one is ready.
async fn run(
    shared: &Arc<Shared>,
    handler: &Handler,
    row: Row,
    wall: i64,
    running: Running,
) -> Option<Delivery> {
    let called = Called {
        id: row.id,
        due: row.due,
        number: row.failures.saturating_add(1),
        wall,
    };
    #[cfg(feature = "tracing")]
    let span = super::trace::span(&row);
    let ended = attempt(shared, handler, row, wall);
    #[cfg(feature = "tracing")]
    let ended = tracing::Instrument::instrument(ended, span);
    let ended = ended.await;
    drop(running);
    shared.ended(&called, ended, handler)
}

async fn attempt(shared: &Arc<Shared>, handler: &Handler, row: Row, wall: i64) -> Ended {
    let begun = catch_unwind(AssertUnwindSafe(|| (handler.function)(row, wall, shared)));
    let attempt = match begun {
        Ok(attempt) => attempt,
        Err(panic) => return panicked(panic),
    };
    // Boxed and in an option, so that it is also dropped under a guard if it panics.
    let mut attempt = Some(attempt);
    let guarded = poll_fn(|context| {
        let Some(future) = &mut attempt else {
            return Poll::Ready(Ended::Well);
        };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(ready) => ready,
            Err(panic) => Poll::Ready(panicked(panic)),
        }
    });
    let ended = match handler.attempt_limit {
        None => guarded.await,
        Some(limit) => match shared.timer.try_timeout(limit, guarded) {
            Ok(limited) => match limited.await {
                Ok(ended) => ended,
                Err(elapsed) if elapsed.was_stopped() => ended_with_runtime(),
                Err(_) => Ended::Failed(format!("the attempt did not end within {limit:?}").into()),
            },
            Err(_) => ended_with_runtime(),
        },
    };
    match catch_unwind(AssertUnwindSafe(|| drop(attempt))) {
        Ok(()) => ended,
        Err(panic) => panicked(panic),
    }
}

/// The timer is stopped with the runtime, which drops this task as well.
fn ended_with_runtime() -> Ended {
    Ended::Failed("the runtime ended during the attempt".into())
}

fn panicked(panic: Box<dyn Any + Send>) -> Ended {
    Ended::Failed(format!("the handler panicked: {}", message_of(panic)).into())
}
