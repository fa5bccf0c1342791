//! What moves a job that does not run: pause, resume, a run at once, another deadline.

use std::sync::MutexGuard;

use tokio::time::Instant;
use waterwheel::wheel::Key;

use super::entry::Status;
use super::job::AdmittedRun;
#[cfg(feature = "cron")]
use super::occurrences;
use super::plan::NextRun;
#[cfg(feature = "cron")]
use super::plan::Recurrence;
use super::table::{Phase, State, Table, wake};
#[cfg(feature = "cron")]
use crate::calendar::Schedule;

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
            // It would keep the shutdown from its end.
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
        state.leave(before, rank, group, &mut starts);
        let waker = state.waker_if_idle();
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
        // The clock may have been set meanwhile.
        let next = next.map(|at| wall.map_or(at, |wall| self.wall.instant_of(wall, &self.timer)));
        let next = next.filter(|&at| entry.plan().is_none_or(|plan| plan.allows(at)));
        let Some(at) = next else {
            // Beyond the job's last instant.
            let removed = state.wheel.cancel(key);
            state.jobs -= 1;
            state.counts.ended += 1;
            let waker = state.waker_if_idle();
            drop(guard);
            wake(waker);
            if let Some(entry) = removed {
                entry.job.end_well();
            }
            return true;
        };
        entry.deadline = at;
        entry.status = Status::Waiting;
        let tick = self.timer.tick_after(at);
        state.wheel.reset(key, tick);
        let waker = self.waker_of_new_wait(state, key, tick, wall);
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
            // The wall clock may have been set back: then the driver would file it again.
            Status::Due if !follows_wall_clock => return true,
            // Else a job that is triggered again and again would be put off, tick by tick.
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
            // A run that is tried again is none beside the schedule.
            plan.is_triggered |= plan.failures == 0;
        }
        self.file_again(state, key, now);
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
        self.file_again(state, key, deadline);
        true
    }

    /// Gives a job that repeats another calendar.
    #[cfg(feature = "cron")]
    pub(crate) fn reschedule_by_calendar(&self, key: Key, schedule: Schedule) -> bool {
        let Some(wall) = occurrences::first(&schedule, self.wall.now(&self.timer)) else {
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
            waker = self.waker_of_new_wait(state, key, tick, Some(wall));
        }
        drop(guard);
        drop(before);
        wake(waker);
        true
    }

    /// Moves a job that waits or is paused to another deadline. From here on it goes by the timer.
    fn file_again(&self, mut guard: MutexGuard<'_, State>, key: Key, deadline: Instant) {
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
            waker = state.waker_of_wait_beyond(tick);
        }
        drop(guard);
        wake(waker);
    }
}
