use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use waterwheel_durable_core::store::{Store, StoreError};

use super::shared::Shared;
use super::worker::{into_message, unwound};
use crate::event::Event;
use waterwheel_durable_core::engine::{Call, Request};

/// What is asked of the store, in order.
#[derive(Debug, Default)]
pub(crate) struct StoreQueue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    jobs: VecDeque<Job>,
    /// When handlers that run are given up.
    abandons_at: Option<Instant>,
    /// When to ask for commands from other processes, if the store takes any.
    commands_at: Option<Instant>,
}

/// How long a command waits, about.
const COMMANDS_EVERY: Duration = Duration::from_secs(1);

/// Reads for a caller, and hands it what was found. The error is the store's.
pub(crate) struct Read(pub(crate) Box<Reads>);

type Reads = dyn FnOnce(Result<&mut dyn Store, StoreError>) -> Result<(), StoreError> + Send;

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Read")
    }
}

#[derive(Debug)]
pub(crate) enum Job {
    Engine(Request),
    /// A read for a caller. It is handed no store if that has failed.
    Read(Read),
    /// Ask for commands from other processes, and maintain an idle store.
    Commands,
    /// The time of a shutdown is over.
    Abandon,
    Close,
}

impl StoreQueue {
    /// Queues a job. The thread is to be woken after that, by [`wake`](StoreQueue::wake).
    pub(crate) fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Handlers that run then are given up. This thread is the one that notices it: it depends on no runtime, which a handler may block. Of several times, the
    /// first one counts.
    pub(crate) fn abandon_at(&self, at: Instant) {
        let mut inside = self.lock();
        inside.abandons_at = Some(inside.abandons_at.map_or(at, |first| first.min(at)));
        drop(inside);
        self.changed.notify_one();
    }

    fn take_commands(&self) {
        self.lock().commands_at = Some(Instant::now() + COMMANDS_EVERY);
    }

    fn next(&self) -> Job {
        let mut inside = self.lock();
        loop {
            let now = Instant::now();
            if inside.abandons_at.is_some_and(|at| at <= now) {
                inside.abandons_at = None;
                return Job::Abandon;
            }
            if inside.commands_at.is_some_and(|at| at <= now) {
                inside.commands_at = Some(now + COMMANDS_EVERY);
                return Job::Commands;
            }
            if let Some(job) = inside.jobs.pop_front() {
                return job;
            }
            let next = inside
                .abandons_at
                .into_iter()
                .chain(inside.commands_at)
                .min();
            inside = match next.map(|at| at - now) {
                Some(left) => {
                    let waited = self.changed.wait_timeout(inside, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .changed
                    .wait(inside)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls the store until it is closed. Nothing more is asked of it after an indeterminate error.
pub(crate) fn run(mut store: Box<dyn Store>, shared: &Arc<Shared>) {
    let mut has_failed = false;
    // Since it was last asked for commands.
    let mut has_committed = false;
    if store.takes_commands() {
        shared.queue.take_commands();
    }
    report(&mut *store, shared);
    loop {
        match shared.queue.next() {
            Job::Engine(request) if !has_failed => {
                let is_commit = matches!(request.call, Call::Commit(..));
                has_committed |= is_commit;
                let reply = guarded(|| request.call.execute(&mut *store));
                has_failed = reply.as_ref().is_err_and(|it| !it.is_definite());
                // If the engine panics, it has failed, and the callers know.
                unwound(|| shared.replied(request.number, reply));
                if is_commit && !has_failed {
                    has_failed = maintain(&mut *store, shared);
                }
            }
            // The engine has failed as well.
            Job::Engine(_) => {}
            Job::Read(Read(read)) if has_failed => {
                let why = shared.inspect(|it| it.failure()).unwrap_or_default();
                let error = StoreError::failed_earlier(why.to_string());
                unwound(|| drop(read(Err(error))));
            }
            Job::Read(Read(read)) => {
                let mut result = Ok(());
                // The caller's waker may panic.
                unwound(|| result = read(Ok(&mut *store)));
                if let Err(error) = result
                    && !error.is_definite()
                {
                    has_failed = true;
                    unwound(|| shared.failed(&error));
                }
            }
            Job::Commands if has_failed => {}
            Job::Commands => {
                match guarded(|| store.commands()) {
                    Ok(commands) if commands.is_empty() => {}
                    Ok(commands) => unwound(|| shared.handle_commands(commands)),
                    Err(error) if error.is_definite() => {}
                    Err(error) => {
                        has_failed = true;
                        unwound(|| shared.failed(&error));
                    }
                }
                if !std::mem::take(&mut has_committed) && !has_failed {
                    has_failed = maintain(&mut *store, shared);
                }
            }
            Job::Abandon => unwound(|| shared.abandon()),
            Job::Close => break,
        }
    }
    // A store that panics as it is dropped has nothing left to write.
    unwound(|| drop(store));
    shared.closed();
}

/// Reports what the operator should know.
fn report(store: &mut dyn Store, shared: &Arc<Shared>) {
    let notices = guarded(|| Ok(store.notices())).unwrap_or_default();
    for event in notices.into_iter().filter_map(Event::of_notice) {
        shared.report(event);
    }
}

/// Says whether the store has failed.
fn maintain(store: &mut dyn Store, shared: &Arc<Shared>) -> bool {
    let maintained = guarded(|| store.maintain());
    report(store, shared);
    match maintained {
        Err(error) if !error.is_definite() => {
            unwound(|| shared.failed(&error));
            true
        }
        _ => false,
    }
}

/// A store that panics has failed: it is not known what it has written.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = into_message(panic);
        Err(StoreError::indeterminate(format!(
            "the store panicked: {message}"
        )))
    })
}
