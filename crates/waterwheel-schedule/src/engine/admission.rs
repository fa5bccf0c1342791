//! What runs now, and what queues for a permit? What is due is admitted; a run that ends gives its permits to the first of the queues.

use waterwheel::wheel::Key;

use super::concurrency_limit::Rank;
use super::entry::Status;
use super::job::{AdmittedRun, Run};
use super::table::{State, Table};
use crate::info::Event;

impl State {
    /// Admits a job that is due: it runs, or it queues behind a limit.
    pub(crate) fn admit(&mut self, key: Key, starts: &mut Vec<AdmittedRun>) {
        let Some(entry) = self.wheel.get_mut(key) else {
            return;
        };
        match entry.group() {
            None if self.limit.try_acquire_unbounded() => starts.push(entry.admit(key)),
            None => {
                self.queue_for_scheduler(key);
                self.start_queued(starts);
            }
            Some(group) => {
                entry.status = Status::QueuedInGroup;
                let rank = entry.rank();
                self.groups[group].enqueue(rank, key);
                self.start_group(group);
                self.start_queued(starts);
            }
        }
    }

    /// Whether a job of this group may have to wait for a permit.
    pub(crate) fn is_limited(&self, group: Option<usize>) -> bool {
        group.is_some() || self.limit.is_bounded()
    }

    /// Queues a job whose next run is due already, before the permits of the last run go to others. They follow by `leave`.
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

    /// `false` if the job is gone.
    fn queue_for_scheduler(&mut self, key: Key) -> bool {
        let Some(entry) = self.wheel.get_mut(key) else {
            return false;
        };
        entry.status = Status::Queued;
        let rank = entry.rank();
        self.limit.enqueue(rank, key);
        true
    }

    /// Lets jobs of a group queue for the scheduler, as many as the group has permits.
    fn start_group(&mut self, group: usize) {
        while let Some(key) = self.groups[group].acquire_for_next() {
            // A job that was just taken out of the table leaves its queue next.
            if !self.queue_for_scheduler(key) {
                self.groups[group].release();
            }
        }
    }

    fn start_queued(&mut self, starts: &mut Vec<AdmittedRun>) {
        while let Some(key) = self.limit.acquire_for_next() {
            match self.wheel.get_mut(key) {
                Some(entry) => starts.push(entry.admit(key)),
                // A job that was just taken out of the table.
                None => self.limit.release(),
            }
        }
    }

    /// Gives back the permits of a run that has ended, or never begins. The first of the queues get them.
    pub(crate) fn release_permits(&mut self, group: Option<usize>, starts: &mut Vec<AdmittedRun>) {
        self.limit.release();
        if let Some(group) = group {
            self.groups[group].release();
            self.start_group(group);
        }
        self.start_queued(starts);
    }

    /// Takes a job out of the queues, or its permits from it, which had this status until now. The permits go to others.
    pub(crate) fn leave(
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
                    self.start_group(group);
                    self.start_queued(starts);
                }
            }
            _ => {}
        }
    }
}

impl Table {
    /// Starts runs that the table has admitted.
    pub(crate) fn start(&self, starts: Vec<AdmittedRun>) {
        for start in starts {
            start.job.spawn_run(start.run, start.limit, &self.runtime);
        }
    }

    /// Reports that a run begins.
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
