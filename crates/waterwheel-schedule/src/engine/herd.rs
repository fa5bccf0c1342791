//! Many jobs that are due at once, without a task for each.
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

use super::job::Start;
use super::table::Table;
use crate::sync::lock;

/// So few are spawned as tasks of their own.
const FEW: usize = 3;
/// How many jobs a task begins in one poll. Then others run.
const IN_A_POLL: usize = 32;

impl Table {
    /// Starts runs that were admitted together, in this order.
    pub(crate) fn start_together(self: &Arc<Table>, starts: Vec<Start>) {
        if starts.len() <= FEW {
            return self.start(starts);
        }
        lock(&self.herd).extend(starts);
        self.serve_herd();
    }

    /// Spawns one more task for the jobs that wait for one. `false` if none does.
    pub(crate) fn serve_herd(self: &Arc<Table>) -> bool {
        let waits = !lock(&self.herd).is_empty();
        if waits {
            self.runtime.spawn(Server {
                table: Arc::clone(self),
                run: None,
            });
        }
        waits
    }

    /// Takes out what no task has begun.
    pub(crate) fn take_herd(&self) -> VecDeque<Start> {
        std::mem::take(&mut *lock(&self.herd))
    }

    fn next_of_herd(&self) -> Option<Start> {
        lock(&self.herd).pop_front()
    }
}

/// A task that begins jobs of the herd.
struct Server {
    table: Arc<Table>,
    /// The run that is not done yet.
    run: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Future for Server {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        for _ in 0..IN_A_POLL {
            if let Some(run) = &mut self.run {
                ready!(run.as_mut().poll(cx));
                self.run = None;
            }
            if !has_budget_remaining() {
                // The next job would find all of tokio pending.
                break;
            }
            let Some(start) = self.table.next_of_herd() else {
                return Poll::Ready(());
            };
            self.run = Some(start.job.begin(start.run, start.limit));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
