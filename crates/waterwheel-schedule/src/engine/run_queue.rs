//! The run queue: many jobs that are due at once, without a task for each.
//!
//! The driver queues them, and spawns a task that serves the queue: it begins one job after the other. A job that is not done at its first poll keeps
//! the task. As long as jobs are queued, the driver is polled again and again, and spawns one more task each time. So a job that takes long, or
//! blocks its thread, delays the others no more than if each had a task of its own.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use tokio::task::coop::has_budget_remaining;

use super::job::AdmittedRun;
use super::table::Table;
use crate::sync::lock;

/// Up to this many runs that are due together get a task each.
const MAX_OWN_TASKS: usize = 3;
/// How many jobs a worker starts in one poll before it yields.
const STARTS_PER_POLL: usize = 32;

impl Table {
    /// Starts runs that were admitted together, in this order.
    pub(crate) fn start_batch(self: &Arc<Table>, starts: Vec<AdmittedRun>) {
        if starts.len() <= MAX_OWN_TASKS {
            return self.start(starts);
        }
        lock(&self.run_queue).extend(starts);
        self.spawn_queue_worker();
    }

    /// Spawns one more worker if the run queue is not empty, and returns whether it did.
    pub(crate) fn spawn_queue_worker(self: &Arc<Table>) -> bool {
        let waits = !lock(&self.run_queue).is_empty();
        if waits {
            self.runtime.spawn(QueueWorker {
                table: Arc::clone(self),
                run: None,
            });
        }
        waits
    }

    /// Empties the run queue.
    pub(crate) fn drain_run_queue(&self) -> VecDeque<AdmittedRun> {
        std::mem::take(&mut *lock(&self.run_queue))
    }

    fn pop_run(&self) -> Option<AdmittedRun> {
        lock(&self.run_queue).pop_front()
    }
}

/// A task that starts jobs of the run queue, one after the other.
struct QueueWorker {
    table: Arc<Table>,
    /// The run that is not done yet.
    run: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Future for QueueWorker {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        for _ in 0..STARTS_PER_POLL {
            if let Some(run) = &mut self.run {
                ready!(run.as_mut().poll(cx));
                self.run = None;
            }
            if !has_budget_remaining() {
                // The next job would find all of tokio pending.
                break;
            }
            let Some(start) = self.table.pop_run() else {
                return Poll::Ready(());
            };
            self.run = Some(start.job.run_future(start.run, start.limit));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
