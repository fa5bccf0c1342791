//! What ends jobs before their time: a cancel, a shutdown, and the end of the timer.

use std::sync::Arc;

use waterwheel::wheel::Key;

use super::entry::{EndReason, Entry, Status};
use super::job::Job;
use super::table::{Phase, State, Table, wake};
use crate::error::JobError;
use crate::info::JobInfo;

/// The fate of active runs of the jobs that end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    GoOn,
    /// Their tokens are cancelled, and they are the last ones.
    AreTold,
}

impl Table {
    /// Cancels a job. Its present run goes on. Returns whether that changed anything.
    pub(crate) fn cancel(&self, key: Key) -> bool {
        self.cancel_or_abort(key, false)
    }

    /// Cancels a job, and ends its present run at its next poll.
    pub(crate) fn abort(&self, key: Key) -> bool {
        self.cancel_or_abort(key, true)
    }

    fn cancel_or_abort(&self, key: Key, aborts: bool) -> bool {
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        if !entry.withdraw() {
            let is_first = entry.end_reason.is_none();
            entry.end_reason.get_or_insert(EndReason::Cancelled);
            let job = Arc::clone(&entry.job);
            drop(guard);
            job.mark_cancelled();
            if aborts {
                job.abort();
            }
            return is_first || aborts;
        }
        let mut starts = Vec::new();
        let removed = state.take(key);
        if let Some(entry) = &removed {
            state.leave(entry.status, entry.rank(), entry.group(), &mut starts);
        }
        let waker = state.waker_if_idle();
        drop(guard);
        wake(waker);
        if let Some(entry) = removed {
            entry.job.end(JobError::Cancelled);
        }
        self.start(starts);
        true
    }

    /// Takes nothing new from now on, and ends what the policies do not keep.
    pub(crate) fn shutdown(&self) {
        // A running job is asked when its run ends. A paused job would never run, so the shutdown would never end.
        self.close(Runs::GoOn, |state, entry| {
            !state.keeps(entry.is_periodic()) || entry.status == Status::Paused
        });
    }

    /// Ends all that does not run, and cancels the tokens of what does. Returns what never runs again.
    pub(crate) fn shutdown_now(&self) -> Vec<JobInfo> {
        self.close(Runs::AreTold, |_, _| true)
    }

    /// The timer was stopped: no job would ever be due.
    pub(crate) fn end_waiting(&self) {
        self.close(Runs::GoOn, |_, entry| entry.status != Status::Admitted);
    }

    /// Ends the jobs that `should_end` picks and that do not run, and returns them. None of them begins from the moment on in which the lock is given back.
    fn close(&self, runs: Runs, should_end: impl Fn(&State, &Entry) -> bool) -> Vec<JobInfo> {
        let (mut starts, mut running): (_, Vec<Arc<dyn Job>>) = (Vec::new(), Vec::new());
        let mut guard = self.state();
        let state = &mut *guard;
        state.phase = state.phase.max(Phase::ShuttingDown);
        let picked = state
            .wheel
            .iter_all()
            .filter(|(.., entry)| should_end(state, entry));
        let keys: Vec<_> = picked.map(|(key, ..)| key).collect();
        // First all leave, and then their places in the queues: so no permit goes to one that leaves as well.
        let mut removed: Vec<Entry> = Vec::with_capacity(keys.len());
        for key in keys {
            match state.wheel.get_mut(key) {
                Some(entry) if !entry.withdraw() => {
                    if runs == Runs::AreTold {
                        // A run that is the last one in any case is no business of a shutdown.
                        entry.end_reason.get_or_insert(EndReason::Shutdown);
                        running.push(Arc::clone(&entry.job));
                    }
                }
                _ => removed.extend(state.take(key)),
            }
        }
        for entry in &removed {
            state.leave(entry.status, entry.rank(), entry.group(), &mut starts);
        }
        let waker = state.waker_if_idle();
        drop(guard);
        wake(waker);
        for job in running {
            job.mark_cancelled();
        }
        let infos = removed.iter().map(Entry::info).collect();
        for entry in removed {
            entry.job.end(JobError::Shutdown);
        }
        self.start(starts);
        infos
    }
}
