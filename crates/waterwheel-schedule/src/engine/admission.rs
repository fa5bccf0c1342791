//! Admission: a job that is due runs now if it gets its permits, and is queued otherwise. A run that ends releases its permits to the
//! first jobs of the queues.
//!
//! # The run queue
//!
//! A few admitted runs are spawned as tasks of their own. If there are more, they are queued, and the driver spawns a worker task that
//! starts one run after the other. A run that is still pending after its first poll keeps that worker. As long as the queue is not empty, the driver is
//! polled again and again, and spawns one more worker each time. So a run that takes long, or blocks its thread, delays the others no more
//! than if each had a task of its own.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use tokio::task::coop::has_budget_remaining;
use waterwheel::wheel::Key;

use super::concurrency_limit::Rank;
use super::table::{AdmittedRun, Run, State, Status, Table, lock};
use crate::info::Event;

impl State {
    /// Admits a job that is due, or queues it for a permit.
    pub(crate) fn admit(&mut self, key: Key, starts: &mut Vec<AdmittedRun>) {
        let Some(entry) = self.wheel.get_mut(key) else {
            return;
        };
        match entry.group() {
            None if self.limit.try_acquire_unbounded() => starts.push(entry.admit(key)),
            None => {
                self.queue_for_scheduler(key);
                self.admit_from_queue(starts);
            }
            Some(group) => {
                entry.status = Status::QueuedInGroup;
                let rank = entry.rank();
                self.groups[group].enqueue(rank, key);
                self.admit_from_group(group);
                self.admit_from_queue(starts);
            }
        }
    }

    /// Whether a job of this group may have to wait for a permit.
    pub(crate) fn is_limited(&self, group: Option<usize>) -> bool {
        group.is_some() || self.limit.is_bounded()
    }

    /// Queues a job whose next run is already due, before `release_permits` gives the permits of its last run to the queues.
    pub(crate) fn requeue(&mut self, key: Key) {
        let Some(entry) = self.wheel.get_mut(key) else {
            return;
        };
        let rank = entry.rank();
        match entry.group() {
            None => {
                self.queue_for_scheduler(key);
            }
            Some(group) => {
                entry.status = Status::QueuedInGroup;
                self.groups[group].enqueue(rank, key);
            }
        }
    }

    /// Returns `false` if the job is no longer in the table.
    fn queue_for_scheduler(&mut self, key: Key) -> bool {
        let Some(entry) = self.wheel.get_mut(key) else {
            return false;
        };
        entry.status = Status::Queued;
        let rank = entry.rank();
        self.limit.enqueue(rank, key);
        true
    }

    /// Moves jobs from the queue of a group to that of the scheduler, as many as the group has permits for.
    fn admit_from_group(&mut self, group: usize) {
        while let Some(key) = self.groups[group].acquire_for_next() {
            // A job that was just removed from the table leaves its queue next.
            if !self.queue_for_scheduler(key) {
                self.groups[group].release();
            }
        }
    }

    fn admit_from_queue(&mut self, starts: &mut Vec<AdmittedRun>) {
        while let Some(key) = self.limit.acquire_for_next() {
            match self.wheel.get_mut(key) {
                Some(entry) => starts.push(entry.admit(key)),
                // It was just removed from the table.
                None => self.limit.release(),
            }
        }
    }

    /// Releases the permits of a run that has ended, or that never begins, to the first jobs of the queues.
    pub(crate) fn release_permits(&mut self, group: Option<usize>, starts: &mut Vec<AdmittedRun>) {
        self.limit.release();
        if let Some(group) = group {
            self.groups[group].release();
            self.admit_from_group(group);
        }
        self.admit_from_queue(starts);
    }

    /// Takes a job out of its queue, or releases its permits, depending on the `status` that it had until now.
    pub(crate) fn leave_limits(
        &mut self,
        status: Status,
        rank: Rank,
        group: Option<usize>,
        starts: &mut Vec<AdmittedRun>,
    ) {
        match (status, group) {
            (Status::Admitted, group) => self.release_permits(group, starts),
            (Status::QueuedInGroup, Some(group)) => self.groups[group].remove_from_queue(rank),
            (Status::Queued, group) => {
                self.limit.remove_from_queue(rank);
                if let Some(group) = group {
                    self.groups[group].release();
                    self.admit_from_group(group);
                    self.admit_from_queue(starts);
                }
            }
            _ => {}
        }
    }
}

impl Table {
    /// Spawns a task for each admitted run.
    pub(crate) fn start(&self, starts: Vec<AdmittedRun>) {
        for start in starts {
            start
                .job
                .spawn_run(start.run, start.time_limit, &self.runtime);
        }
    }

    /// Reports to the hook that a run starts.
    pub(crate) fn report_start(&self, run: &Run) {
        if self.hook.is_none() {
            return;
        }
        let name = self.name_of(run.key);
        self.report(|| Event::Started {
            id: run.id,
            name,
            run: run.number,
            scheduled: run.scheduled,
        });
    }
}

/// Up to this many runs that are due together get a task each.
const MAX_OWN_TASKS: usize = 3;
/// How many jobs a worker starts in one poll before it yields.
const STARTS_PER_POLL: usize = 32;

impl Table {
    /// Starts runs that were admitted together, in this order, with a worker if there are many.
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
    /// The run that is still pending.
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
                // All of tokio would be pending for the next run.
                break;
            }
            let Some(start) = self.table.pop_run() else {
                return Poll::Ready(());
            };
            self.run = Some(start.job.run_future(start.run, start.time_limit));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
