//! The requests to the store, in order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use waterwheel_durable_core::store::{Op, Store, StoreError};

use waterwheel_durable_core::engine::Query;

/// The requests to the store, in order.
#[derive(Debug, Default)]
pub(crate) struct StoreQueue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    jobs: VecDeque<Job>,
    /// When to give up running handlers.
    abandons_at: Option<Instant>,
    /// When to ask for commands from other processes, if the store takes any.
    commands: Option<Commands>,
}

#[derive(Debug)]
struct Commands {
    every: Duration,
    at: Instant,
    /// When they were last asked for.
    asked_at: Instant,
}

/// The longest time between two reads of commands.
const RARELY: Duration = Duration::from_secs(3_600);

/// Hints are combined for this long: otherwise many commands would keep commits waiting.
const BETWEEN_HINTS: Duration = Duration::from_millis(5);

/// A read for a caller, which is sent the result. Returns the error of the store.
pub(crate) struct Read(pub(crate) Box<Reads>);

type Reads = dyn FnOnce(Result<&mut dyn Store, StoreError>) -> Result<(), StoreError> + Send;

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Read")
    }
}

#[derive(Debug)]
pub(crate) enum Job {
    /// Commit these operations of the engine.
    Commit {
        /// The number of the request.
        request: u64,
        /// The number of the commit.
        number: u64,
        ops: Arc<Vec<Op>>,
    },
    /// Run this query of the engine, with its number.
    Query(u64, Query),
    /// Run a read for a caller. If the store has failed, it is passed the error instead.
    Read(Read),
    /// Ask for commands from other processes, and maintain an idle store.
    Commands,
    /// The time limit of a shutdown has passed.
    Abandon,
    Close,
}

impl StoreQueue {
    /// Queues a job. Afterwards, the thread has to be woken with [`wake`](StoreQueue::wake).
    pub(crate) fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Gives up running handlers at this time. The store's thread checks this, because it does not depend on a runtime, which a handler may block. If called
    /// repeatedly, the earliest time counts.
    pub(crate) fn abandon_at(&self, at: Instant) {
        let mut inside = self.lock();
        inside.abandons_at = Some(inside.abandons_at.map_or(at, |first| first.min(at)));
        drop(inside);
        self.changed.notify_one();
    }

    /// Asks for commands this often.
    pub(super) fn take_commands(&self, every: Duration) {
        let asked_at = Instant::now();
        let every = every.min(RARELY);
        let at = asked_at + every;
        self.lock().commands = Some(Commands {
            every,
            at,
            asked_at,
        });
    }

    /// Asks for commands within this time, once.
    pub(super) fn ask_within(&self, within: Duration) {
        if let Some(commands) = &mut self.lock().commands {
            commands.at = commands.at.min(Instant::now() + within);
        }
    }

    /// Asks for commands soon.
    pub(super) fn hint(&self) {
        if let Some(commands) = &mut self.lock().commands {
            commands.at = commands.at.min(commands.asked_at + BETWEEN_HINTS);
        }
        self.changed.notify_one();
    }

    /// Returns the next job, and waits until there is one.
    pub(super) fn next(&self) -> Job {
        let mut inside = self.lock();
        loop {
            let now = Instant::now();
            if inside.abandons_at.is_some_and(|at| at <= now) {
                inside.abandons_at = None;
                return Job::Abandon;
            }
            if let Some(commands) = inside.commands.as_mut().filter(|it| it.at <= now) {
                (commands.asked_at, commands.at) = (now, now + commands.every);
                return Job::Commands;
            }
            if let Some(job) = inside.jobs.pop_front() {
                return job;
            }
            let next = inside
                .abandons_at
                .into_iter()
                .chain(inside.commands.as_ref().map(|it| it.at))
                .min();
            inside = match next.map(|at| at.saturating_duration_since(now)) {
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

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
