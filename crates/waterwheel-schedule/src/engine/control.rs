//! Operations on jobs, via handles, controls and the scheduler: inspect, pause, resume, trigger, reschedule, cancel, and shut down.

use std::sync::{Arc, MutexGuard};
use std::thread::yield_now;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use waterwheel::wheel::Key;

#[cfg(feature = "cron")]
use super::plan::first_occurrence;
use super::plan::{NextRun, Plan, Recurrence};
use super::table::{AdmittedRun, EndReason, Entry, Job, Phase, State, Status, Table, wake};
use crate::error::JobError;
use crate::info::{JobInfo, JobStatus};
#[cfg(feature = "cron")]
use waterwheel_cron::Schedule;

/// How many places of the wheel's slab are read while the lock is held, for about 10 µs.
const BATCH: usize = 128;

/// Inspecting jobs. A job that has ended has nothing to inspect.
impl Table {
    /// Reads the jobs, in no particular order. A job that exists during the whole call is read exactly once.
    pub(crate) fn list<R>(&self, mut read: impl FnMut(Key, &Entry) -> Option<R>) -> Vec<R> {
        let (mut list, mut first) = (Vec::new(), 0);
        loop {
            // Reserved without the lock, since it may copy the list to a larger allocation.
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
            // Otherwise this thread would take the lock again before a waiting thread wakes up.
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

    /// When the next run is due, if that is known.
    pub(crate) fn next_run(&self, key: Key) -> Option<Instant> {
        self.with_entry(key, |entry| match entry.status {
            Status::Paused => None,
            _ if entry.is_running() => None,
            _ => Some(entry.deadline),
        })?
    }

    pub(crate) fn name_of(&self, key: Key) -> Option<Arc<str>> {
        self.with_entry(key, |entry| entry.name().cloned())?
    }

    /// The wall-clock time that the run of this number is for. `None` once it has ended.
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
            // A job without a plan ends with its first run, so the locks of a million such jobs need not be taken.
            last_error: plan.and_then(|_| self.job.last_error()),
        }
    }

    /// The wall-clock time that the current run, or else the next, is for.
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

/// Moving jobs that are not running.
impl Table {
    pub(crate) fn pause(&self, key: Key) -> bool {
        let mut starts: Vec<AdmittedRun> = Vec::new();
        let mut guard = self.state();
        let state = &mut *guard;
        let is_closing = state.phase != Phase::Running;
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        match entry.status {
            // A paused job would keep the shutdown from ending.
            _ if is_closing => return false,
            Status::Paused => return false,
            Status::Admitted => {
                let goes_on = entry.plan().is_some() && entry.end_reason.is_none();
                return goes_on && !std::mem::replace(&mut entry.pause_requested, true);
            }
            Status::Waiting | Status::Due | Status::Queued | Status::QueuedInGroup => {}
        }
        let before = std::mem::replace(&mut entry.status, Status::Paused);
        let (rank, group) = (entry.rank(), entry.group());
        entry.pause_requested = false;
        state.wheel.disarm(key);
        state.leave_limits(before, rank, group, &mut starts);
        let waker = state.driver_waker_if_idle();
        drop(guard);
        wake(waker);
        self.start(starts);
        true
    }

    pub(crate) fn resume(&self, key: Key) -> bool {
        let now = self.timer.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        if entry.status != Status::Paused {
            return std::mem::replace(&mut entry.pause_requested, false);
        }
        let (deadline, waits_for) = (entry.deadline, entry.wall());
        let wall_now = self.wall.now(&self.timer);
        let next = match entry.plan_mut() {
            Some(plan) => plan.after_pause(deadline, waits_for, now, wall_now),
            None => NextRun::At {
                at: deadline,
                missed: 0,
            },
        };
        let (next, wall) = match next {
            #[cfg(feature = "cron")]
            NextRun::AtWall { wall, .. } => {
                if let Some(extras) = &mut entry.extras {
                    extras.wall = Some(wall);
                }
                (Some(deadline), Some(wall))
            }
            NextRun::At { at, .. } => (Some(at), waits_for),
            _ => (None, waits_for),
        };
        // The wall clock may have been set meanwhile.
        let next = next.map(|at| wall.map_or(at, |wall| self.wall.instant_of(wall, &self.timer)));
        let next = next.filter(|&at| entry.plan().is_none_or(|plan| plan.allows(at)));
        let Some(at) = next else {
            // The next run would be after the last instant of the job.
            let removed = state.wheel.cancel(key);
            state.jobs -= 1;
            state.counts.ended += 1;
            let waker = state.driver_waker_if_idle();
            drop(guard);
            wake(waker);
            if let Some(entry) = removed {
                entry.job.end_ok();
            }
            return true;
        };
        entry.deadline = at;
        entry.status = Status::Waiting;
        let tick = self.timer.tick_after(at);
        state.wheel.reset(key, tick);
        let waker = self.driver_waker_for(state, key, tick, wall);
        drop(guard);
        wake(waker);
        true
    }

    pub(crate) fn trigger_now(&self, key: Key) -> bool {
        let now = self.timer.now();
        let mut state = self.state();
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        let follows_wall_clock = entry.wall().is_some();
        match entry.status {
            Status::Admitted => return !entry.job.has_begun(),
            Status::Queued | Status::QueuedInGroup => return true,
            // Not if the job follows the wall clock: that may have been set back, and the driver would file the job again.
            Status::Due if !follows_wall_clock => return true,
            // Filing it again would postpone a job that is triggered again and again, tick by tick.
            Status::Waiting if !follows_wall_clock && entry.deadline <= now => return true,
            Status::Due | Status::Waiting | Status::Paused => {}
        }
        if !entry.plan().is_none_or(|plan| plan.allows(now)) {
            return false;
        }
        let was_paused = entry.status == Status::Paused;
        entry.pause_requested |= was_paused;
        entry.status = Status::Waiting;
        if let Some(plan) = entry.plan_mut() {
            if was_paused {
                plan.skip_missed(now, self.wall.now(&self.timer));
            }
            // A retry that is triggered still belongs to the schedule.
            plan.is_triggered |= plan.failures == 0;
        }
        self.move_to(state, key, now);
        true
    }

    pub(crate) fn reschedule(&self, key: Key, deadline: Instant) -> bool {
        let mut state = self.state();
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        let is_there = matches!(entry.status, Status::Waiting | Status::Paused);
        if !is_there || !entry.plan().is_none_or(|plan| plan.allows(deadline)) {
            return false;
        }
        if let Some(plan) = entry.plan_mut() {
            plan.reschedule(deadline);
        }
        self.move_to(state, key, deadline);
        true
    }

    /// Makes a repeating job follow another calendar.
    #[cfg(feature = "cron")]
    pub(crate) fn reschedule_by_calendar(&self, key: Key, schedule: Schedule) -> bool {
        let Some(wall) = first_occurrence(&schedule, self.wall.now(&self.timer)) else {
            return false;
        };
        let deadline = self.wall.instant_of(wall, &self.timer);
        let tick = self.timer.tick_after(deadline);
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        let is_there = matches!(entry.status, Status::Waiting | Status::Paused);
        let plan = entry.plan().filter(|_| is_there);
        if !plan.is_some_and(|plan| plan.recurrence != Recurrence::Once && plan.allows(deadline)) {
            return false;
        }
        let is_waiting = entry.status == Status::Waiting;
        entry.deadline = deadline;
        if let Some(extras) = &mut entry.extras {
            extras.wall = Some(wall);
        }
        let mut before = None;
        if let Some(plan) = entry.plan_mut() {
            before = Some(std::mem::replace(
                &mut plan.recurrence,
                Recurrence::Calendar(schedule),
            ));
            plan.next_wall = Some(wall);
            plan.next = deadline;
            plan.is_triggered = false;
            plan.failures = 0;
        }
        let mut waker = None;
        if is_waiting {
            state.wheel.reset(key, tick);
            waker = self.driver_waker_for(state, key, tick, Some(wall));
        }
        drop(guard);
        drop(before);
        wake(waker);
        true
    }

    /// Moves a job that is waiting or paused to another deadline. It no longer follows the wall clock.
    fn move_to(&self, mut guard: MutexGuard<'_, State>, key: Key, deadline: Instant) {
        let state = &mut *guard;
        let Some(entry) = state.wheel.get_mut(key) else {
            return;
        };
        entry.deadline = deadline;
        if let Some(extras) = &mut entry.extras {
            extras.wall = None;
        }
        let mut waker = None;
        if entry.status == Status::Waiting {
            let tick = self.timer.tick_after(deadline);
            state.wheel.reset(key, tick);
            waker = state.driver_waker_if_after(tick);
        }
        drop(guard);
        wake(waker);
    }
}

/// Whether the runs in progress of the jobs that end are cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunsInProgress {
    Continue,
    /// Their tokens are cancelled, and no further runs follow.
    Cancel,
}

/// Ending jobs.
impl Table {
    /// Cancels a job, and lets a run in progress finish. Returns whether this changed anything.
    pub(crate) fn cancel(&self, key: Key) -> bool {
        self.cancel_or_abort(key, false)
    }

    /// Cancels a job, and ends a run in progress at its next poll.
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
        let removed = state.remove_cancelled(key);
        if let Some(entry) = &removed {
            state.leave_limits(entry.status, entry.rank(), entry.group(), &mut starts);
        }
        let waker = state.driver_waker_if_idle();
        drop(guard);
        wake(waker);
        if let Some(entry) = removed {
            entry.job.end(JobError::Cancelled);
        }
        self.start(starts);
        true
    }

    /// Accepts no more jobs, and ends those that do not survive a shutdown.
    pub(crate) fn shutdown(&self) {
        // `completion` decides the same for running jobs when their runs end. Paused jobs would keep the shutdown from ending.
        self.close(RunsInProgress::Continue, |state, entry| {
            !state.survives_shutdown(entry.is_periodic()) || entry.status == Status::Paused
        });
    }

    /// Ends all jobs that are not running and returns them, and cancels the tokens of those that are.
    pub(crate) fn shutdown_now(&self) -> Vec<JobInfo> {
        self.close(RunsInProgress::Cancel, |_, _| true)
    }

    /// Ends all jobs that are not running, because the timer was stopped and no job would ever be due.
    pub(crate) fn end_waiting_jobs(&self) {
        self.close(RunsInProgress::Continue, |_, entry| {
            entry.status != Status::Admitted
        });
    }

    /// Ends and returns the jobs that `should_end` selects and that are not running. None of them begins once the lock is released.
    fn close(
        &self,
        runs: RunsInProgress,
        should_end: impl Fn(&State, &Entry) -> bool,
    ) -> Vec<JobInfo> {
        let (mut starts, mut running): (_, Vec<Arc<dyn Job>>) = (Vec::new(), Vec::new());
        let mut guard = self.state();
        let state = &mut *guard;
        state.phase = state.phase.max(Phase::ShuttingDown);
        let picked = state
            .wheel
            .iter_all()
            .filter(|(.., entry)| should_end(state, entry));
        let keys: Vec<_> = picked.map(|(key, ..)| key).collect();
        // First all are removed, and then they leave the queues, so that no permit goes to a job that is about to be removed.
        let mut removed: Vec<Entry> = Vec::with_capacity(keys.len());
        for key in keys {
            match state.wheel.get_mut(key) {
                Some(entry) if !entry.withdraw() => {
                    if runs == RunsInProgress::Cancel {
                        // A job that was already cancelled keeps that reason.
                        entry.end_reason.get_or_insert(EndReason::Shutdown);
                        running.push(Arc::clone(&entry.job));
                    }
                }
                _ => removed.extend(state.remove_cancelled(key)),
            }
        }
        for entry in &removed {
            state.leave_limits(entry.status, entry.rank(), entry.group(), &mut starts);
        }
        let waker = state.driver_waker_if_idle();
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
