//! Jobs by the wall clock, which may be set.
//!
//! Such a job waits on the dials as every other, at the instant at which the wall clock will show its time if it is not set meanwhile. Two
//! things make up for a clock that is set:
//!
//! - When the job is due on the dials, the driver looks at the wall clock. If that shows less, the job is filed again.
//! - The driver waits for the earliest of these times by the [wall clock itself](waterwheel::clocks::sleep_until_wall). If that comes first, since the
//!   clock was set forward or the machine was suspended, the job is due at once.

use std::time::SystemTime;

use tokio::time::Instant;
use waterwheel::wheel::{Key, Wheel};

use super::due::{BATCH, BATCHES_PER_POLL};
use super::entry::{Entry, Status};
#[cfg(feature = "cron")]
use super::plan::NextRun;
use super::table::{State, Table};
use crate::info::Event;

impl State {
    /// Remembers that a job waits for the machine's wall clock. The caller files it.
    pub(crate) fn add_wall_deadline(&mut self, key: Key, wall: SystemTime) {
        let wheel = &self.wheel;
        self.wall_deadlines
            .insert(key, wall, self.jobs, |key, wall| waits(wheel, key, wall));
    }

    /// The earliest time of day that a job waits for, and the job.
    pub(crate) fn next_wall_deadline(&mut self) -> Option<(SystemTime, Key)> {
        let wheel = &self.wheel;
        self.wall_deadlines
            .first(|key, wall| waits(wheel, key, wall))
    }
}

impl Table {
    /// The wall clock shows the earliest deadline: what it shows is due now. `false` if there is more of it than one poll may take.
    pub(crate) fn advance_to_wall_clock(&self) -> bool {
        let (wall, now) = (self.wall.now(&self.timer), self.timer.now());
        let tick = self.timer.tick_after(now);
        for _ in 0..BATCHES_PER_POLL {
            // Given back after each batch: others submit and cancel in between.
            let mut state = self.state();
            for _ in 0..BATCH {
                let next = state.next_wall_deadline();
                let Some((time, key)) = next.filter(|&(time, _)| time <= wall) else {
                    return true;
                };
                state.wall_deadlines.remove(key, time);
                if let Some(entry) = state.wheel.get_mut(key) {
                    entry.deadline = entry.deadline.min(now);
                    state.wheel.reset(key, tick);
                }
            }
        }
        false
    }

    /// Looks at the wall clock for a job that is due on the dials. If the job is not due by that or by its calendar, it is filed again, or it ends:
    /// what `until` does not admit has no run.
    pub(super) fn check_wall_clock(&self, state: &mut State, key: Key) -> WallCheck {
        let waiting = state.wheel.get_mut(key);
        let Some((time, entry)) = waiting.and_then(|entry| Some((entry.wall()?, entry))) else {
            return WallCheck::due(None);
        };
        let (now, wall) = (self.timer.now(), self.wall.now(&self.timer));
        let searches = entry.searches(time, now, wall);
        let (time, missed) = match time.duration_since(wall) {
            Ok(left) if !left.is_zero() => {
                (entry.restart_if_set_back(now, wall).unwrap_or(time), 0)
            }
            _ => match entry.after_misfire(time, now, wall) {
                Some(instead) => instead,
                None => return WallCheck::due(searches.then(Deferred::default)),
            },
        };
        let Some((time, deadline)) = self.admitted(entry, time) else {
            state.jobs -= 1;
            state.counts.ended += 1;
            return WallCheck::ended(state.wheel.cancel(key));
        };
        if let Some(extras) = &mut entry.extras {
            extras.wall = Some(time);
        }
        entry.deadline = deadline;
        entry.status = Status::Waiting;
        let tick = self.timer.tick_after(deadline);
        let id = entry.id;
        let name = self.hook.as_ref().and_then(|_| entry.name().cloned());
        state.counts.missed += missed;
        state.wheel.reset(key, tick);
        if self.wall.can_be_set() {
            state.add_wall_deadline(key, time);
        }
        let runs = missed;
        let missed = (runs > 0).then_some(Event::Missed { id, name, runs });
        WallCheck::not_due(searches.then_some(Deferred { missed, over: None }))
    }

    /// The time that a job waits for, and its instant, if it may run then. What is too late by its jitter alone loses that.
    fn admitted(&self, entry: &Entry, time: SystemTime) -> Option<(SystemTime, Instant)> {
        let mut times = [Some(time), entry.without_jitter()].into_iter().flatten();
        times.find_map(|time| {
            let at = self.wall.instant_of(time, &self.timer);
            let is_admitted = entry.plan().is_none_or(|plan| plan.allows(at));
            is_admitted.then_some((time, at))
        })
    }
}

/// What becomes of a job that is due on the dials.
pub(super) struct WallCheck {
    pub(super) is_due: bool,
    /// With it, the caller gives the lock back: a calendar was searched, which takes long, or there is something to do without the lock.
    pub(super) deferred: Option<Deferred>,
}

/// What is left to do once the lock is given back.
#[derive(Default)]
pub(super) struct Deferred {
    /// Runs that were missed, for the hook.
    missed: Option<Event>,
    /// A job that has had its last run.
    over: Option<Entry>,
}

impl WallCheck {
    fn due(deferred: Option<Deferred>) -> WallCheck {
        WallCheck {
            is_due: true,
            deferred,
        }
    }

    fn not_due(deferred: Option<Deferred>) -> WallCheck {
        WallCheck {
            is_due: false,
            deferred,
        }
    }

    fn ended(over: Option<Entry>) -> WallCheck {
        WallCheck {
            is_due: false,
            deferred: Some(Deferred { missed: None, over }),
        }
    }
}

impl Deferred {
    /// Without the lock: the hook, and what the end of a job calls, are foreign code.
    pub(super) fn finish(self, table: &Table) {
        if let Some(missed) = self.missed {
            table.report(|| missed);
        }
        if let Some(entry) = self.over {
            entry.job.end_well();
        }
    }
}

impl Entry {
    #[cfg(feature = "cron")]
    fn restart_if_set_back(&mut self, now: Instant, wall: SystemTime) -> Option<SystemTime> {
        self.plan_mut()?.restart_if_set_back(now, wall)
    }

    #[cfg(feature = "cron")]
    fn after_misfire(
        &mut self,
        time: SystemTime,
        now: Instant,
        wall: SystemTime,
    ) -> Option<(SystemTime, u64)> {
        match self.plan_mut()?.after_misfire(time, now, wall)? {
            NextRun::AtWall { wall, missed } => Some((wall, missed)),
            _ => None,
        }
    }

    /// Whether its calendar is searched now: some hundred times, at worst.
    #[cfg(feature = "cron")]
    fn searches(&self, time: SystemTime, now: Instant, wall: SystemTime) -> bool {
        let plan = self.plan();
        plan.is_some_and(|plan| plan.is_late(time, wall) || plan.was_set_back(now, wall))
    }

    #[cfg(not(feature = "cron"))]
    fn searches(&self, _: SystemTime, _: Instant, _: SystemTime) -> bool {
        false
    }

    /// The time of the calendar that the job waits for.
    #[cfg(feature = "cron")]
    fn without_jitter(&self) -> Option<SystemTime> {
        self.plan()?.next_wall
    }

    #[cfg(not(feature = "cron"))]
    fn without_jitter(&self) -> Option<SystemTime> {
        None
    }

    #[cfg(not(feature = "cron"))]
    fn restart_if_set_back(&mut self, _: Instant, _: SystemTime) -> Option<SystemTime> {
        None
    }

    #[cfg(not(feature = "cron"))]
    fn after_misfire(
        &mut self,
        _: SystemTime,
        _: Instant,
        _: SystemTime,
    ) -> Option<(SystemTime, u64)> {
        None
    }
}

/// Whether a job still waits for this time of day.
fn waits(wheel: &Wheel<Entry>, key: Key, wall: SystemTime) -> bool {
    let entry = wheel.get(key);
    entry.is_some_and(|it| it.status == Status::Waiting && it.wall() == Some(wall))
}
