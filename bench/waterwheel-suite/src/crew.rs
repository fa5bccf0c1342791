//! Tasks that start and stop together, each on its own worker.
//!
//! At first each task spins, which holds its worker, until all tasks spin: then no worker has two of them. The spin has a
//! limit, since a worker may have two of the tasks in its own queue while the other worker sleeps and is not woken. After
//! its first await a task never spins, but yields: the task that it waits for could be in the queue of its own worker.
//! A task that yields may move to another worker, so each notes at every batch which worker it is on.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// Waking a worker takes microseconds, on a busy machine milliseconds.
const PATIENCE: Duration = Duration::from_millis(20);

/// The state that the tasks of one sample share: read and written once per batch.
pub(crate) struct Crew {
    placed: AtomicUsize,
    gathered: AtomicUsize,
    over: AtomicBool,
    /// For each member, the worker that it was last seen on, 0 for none.
    workers: Vec<AtomicUsize>,
    batches: AtomicUsize,
    batches_together: AtomicUsize,
}

impl Crew {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            placed: AtomicUsize::new(0),
            gathered: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            workers: (0..members).map(|_| AtomicUsize::new(0)).collect(),
            batches: AtomicUsize::new(0),
            batches_together: AtomicUsize::new(0),
        }
    }

    /// Returns when every member has a worker, or after [`PATIENCE`]. Call it before the member's first await.
    pub(crate) fn take_a_worker(&self) {
        self.placed.fetch_add(1, SeqCst);
        let start = Instant::now();
        while self.placed.load(SeqCst) < self.workers.len() && start.elapsed() < PATIENCE {
            spin_loop();
        }
    }

    /// Returns when every member is here.
    pub(crate) async fn gather(&self) {
        self.gathered.fetch_add(1, SeqCst);
        while self.gathered.load(SeqCst) < self.workers.len() {
            yield_now().await;
        }
    }

    /// Called before each batch: returns false as soon as one member is done, so that none is measured alone.
    pub(crate) fn goes_on(&self, me: usize, done: bool) -> bool {
        if done {
            self.over.store(true, Relaxed);
        }
        let here = worker();
        let together = self
            .workers
            .iter()
            .enumerate()
            .any(|(i, w)| i != me && w.load(Relaxed) == here);
        self.workers[me].store(here, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.batches_together
            .fetch_add(usize::from(together), Relaxed);
        !self.over.load(Relaxed)
    }

    /// Whether no two members shared a worker for more than a twentieth of the batches.
    pub(crate) fn kept_apart(&self) -> bool {
        self.batches_together.load(SeqCst) * 20 <= self.batches.load(SeqCst)
    }
}

/// A number of the current thread, from 1 up.
pub(crate) fn worker() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local!(static WORKER: usize = NEXT.fetch_add(1, Relaxed));
    WORKER.with(|worker| *worker)
}
