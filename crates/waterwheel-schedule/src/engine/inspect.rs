//! What users see of a job.

use std::sync::Arc;
use std::thread::yield_now;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use waterwheel::wheel::Key;

use super::entry::{Entry, Status};
use super::plan::{Plan, Recurrence};
use super::table::Table;
use crate::info::{JobInfo, JobStatus};

/// How many places of the wheel's slab are read while the lock is held: about 10 µs.
const BATCH: usize = 128;

/// A job that has ended yields nothing.
impl Table {
    /// Reads the jobs, in no particular order. A job that exists during the whole call is read exactly once.
    pub(crate) fn list<R>(&self, mut read: impl FnMut(Key, &Entry) -> Option<R>) -> Vec<R> {
        let (mut list, mut first) = (Vec::new(), 0);
        loop {
            // Reserved without the lock: what is copied to a larger allocation is.
            list.reserve(BATCH);
            let state = self.state();
            let capacity = state.wheel.capacity();
            let batch = state.wheel.iter_places(first..first + BATCH);
            list.extend(batch.filter_map(|(key, _, entry)| read(key, entry)));
            drop(state);
            first += BATCH;
            if first >= capacity {
                return list;
            }
            // A thread that waits for the lock would come too late for it otherwise.
            yield_now();
        }
    }

    pub(crate) fn is_done(&self, key: Key) -> bool {
        self.with_entry(key, |_| ()).is_none()
    }

    pub(crate) fn is_periodic(&self, key: Key) -> bool {
        self.with_entry(key, Entry::is_periodic).unwrap_or(false)
    }

    pub(crate) fn is_running(&self, key: Key) -> bool {
        self.with_entry(key, Entry::is_running).unwrap_or(false)
    }

    pub(crate) fn is_paused(&self, key: Key) -> bool {
        self.with_entry(key, |entry| {
            entry.status == Status::Paused || entry.pause_requested
        })
        .unwrap_or(false)
    }

    /// When the next run is due, if it is known.
    pub(crate) fn next_run(&self, key: Key) -> Option<Instant> {
        self.with_entry(key, |entry| match entry.status {
            Status::Paused => None,
            _ if entry.is_running() => None,
            _ => Some(entry.deadline),
        })?
    }

    /// The name of a job.
    pub(crate) fn name_of(&self, key: Key) -> Option<Arc<str>> {
        self.with_entry(key, |entry| entry.name().cloned())?
    }

    /// The time of day that the run of this number is for. `None` when it has ended.
    pub(crate) fn wall_of_run(&self, key: Key, number: u64) -> Option<SystemTime> {
        self.with_entry(key, |entry| {
            let is_this = entry.job.runs() + 1 == number;
            entry.wall_of_run().filter(|_| is_this)
        })?
    }

    fn with_entry<R>(&self, key: Key, read: impl FnOnce(&Entry) -> R) -> Option<R> {
        self.state().wheel.get(key).map(read)
    }
}

impl Entry {
    pub(crate) fn info(&self) -> JobInfo {
        let status = match self.status {
            Status::Waiting => JobStatus::Waiting,
            Status::Admitted if self.job.has_begun() => JobStatus::Running,
            Status::Due | Status::QueuedInGroup | Status::Queued | Status::Admitted => {
                JobStatus::Queued
            }
            Status::Paused => JobStatus::Paused,
        };
        let plan = self.plan();
        JobInfo {
            id: self.id,
            name: self.name().cloned(),
            is_periodic: self.is_periodic(),
            status,
            next_run: (status != JobStatus::Paused).then_some(self.deadline),
            period: plan.and_then(period),
            runs: self.job.runs(),
            failures: plan.map_or(0, |plan| plan.failures),
            // A job without a plan ends with the first run. So of a million of these, no lock is taken.
            last_error: plan.and_then(|_| self.job.last_error()),
        }
    }

    /// The time of day that the run which goes on, or is next, is for.
    fn wall_of_run(&self) -> Option<SystemTime> {
        #[cfg(feature = "cron")]
        if let Some(plan) = self.plan() {
            if matches!(plan.recurrence, Recurrence::Calendar(_)) {
                return plan.next_wall.filter(|_| !plan.is_triggered);
            }
        }
        self.extras.as_ref()?.at_wall
    }
}

fn period(plan: &Plan) -> Option<Duration> {
    match plan.recurrence {
        Recurrence::FixedRate(period) | Recurrence::FixedDelay(period) => Some(period),
        #[cfg(feature = "cron")]
        Recurrence::Calendar(_) => None,
        Recurrence::Once => None,
    }
}
