//! When a job runs next. No clock, no lock: every function is handed the time.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

#[cfg(feature = "cron")]
use super::occurrences;
#[cfg(feature = "cron")]
use crate::calendar::Schedule;
use crate::policy::{BackOff, Missed, OnError};

/// The plan of a job that runs more than once.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) recurrence: Recurrence,
    pub(crate) missed: Missed,
    pub(crate) on_error: OnError,
    pub(crate) jitter: Duration,
    /// The number of runs that are left; `None` for no bound.
    pub(crate) runs_left: Option<u64>,
    pub(crate) until: Option<Instant>,
    /// The place on the grid of the next run, before jitter; what a run that was triggered does not move. By the calendar, the instant at which the
    /// wall clock shows `next_wall`, as it went when that was chosen.
    pub(crate) next: Instant,
    /// The same on the calendar, if the recurrence is one.
    #[cfg(feature = "cron")]
    pub(crate) next_wall: Option<SystemTime>,
    /// The present run was triggered, beside the schedule.
    pub(crate) is_triggered: bool,
    /// How often the present run has failed so far.
    pub(crate) failures: u32,
}

/// What the next deadline is counted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recurrence {
    /// From the deadline before: t0, t0 + p, t0 + 2 p.
    FixedRate(Duration),
    /// From the end of the run before.
    FixedDelay(Duration),
    /// From the calendar.
    #[cfg(feature = "cron")]
    Calendar(Schedule),
    /// No second run: only a failed run is tried again.
    Once,
}

/// How a run ended, as far as the plan is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunResult {
    Succeeded,
    Failed,
}

/// What follows a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextRun {
    /// The job runs at this instant. So many runs were missed.
    At { at: Instant, missed: u64 },
    /// The job runs when the wall clock shows this time.
    #[cfg(feature = "cron")]
    AtWall { wall: SystemTime, missed: u64 },
    /// The job has had its last run.
    Done,
    /// The job ends with the error of the run.
    Failed,
}

impl Plan {
    /// What follows a run that ended at `now`, when the wall clock showed `wall`.
    pub(crate) fn after_run(&mut self, ran: RunResult, now: Instant, wall: SystemTime) -> NextRun {
        if ran == RunResult::Failed {
            match &self.on_error {
                OnError::End => return NextRun::Failed,
                OnError::BackOff(back_off) => return self.retry(back_off.clone(), now),
                OnError::Continue => {}
            }
        }
        self.failures = 0;
        if let Some(left) = &mut self.runs_left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return NextRun::Done;
            }
        }
        let is_triggered = std::mem::take(&mut self.is_triggered);
        let (at, missed) = match &self.recurrence {
            // What was next is still next.
            Recurrence::FixedRate(period) if is_triggered => {
                self.missed.next_at_or_after(self.next, *period, now)
            }
            Recurrence::FixedRate(period) => self.missed.next(self.next, *period, now),
            Recurrence::FixedDelay(period) => (saturating_add(now, *period), 0),
            Recurrence::Once => return NextRun::Done,
            #[cfg(feature = "cron")]
            Recurrence::Calendar(schedule) => {
                // It has none if its first run was at an instant.
                let last = self.next_wall.filter(|_| !self.was_set_back(now, wall));
                let last = last.unwrap_or(wall);
                let next = match is_triggered && wall < last {
                    true => Some((last, 0)),
                    false => occurrences::next(schedule, self.missed, last, is_triggered, wall),
                };
                return self.at_wall_time(next, now, wall);
            }
        };
        let _ = wall;
        self.next = at;
        self.within_range(at, missed)
    }

    /// The next time of the calendar, chosen at `now`, when the wall clock shows `wall`.
    #[cfg(feature = "cron")]
    fn at_wall_time(
        &mut self,
        next: Option<(SystemTime, u64)>,
        now: Instant,
        wall: SystemTime,
    ) -> NextRun {
        let Some((time, missed)) = next else {
            self.next_wall = None;
            return NextRun::Done;
        };
        self.set_next_wall(time, now, wall);
        NextRun::AtWall { wall: time, missed }
    }

    /// What becomes of a run by the calendar that comes up at `wall`, when the time after it is past as well; `None` if it is not, so that the run
    /// begins, late as it may be.
    #[cfg(feature = "cron")]
    pub(crate) fn after_misfire(
        &mut self,
        time: SystemTime,
        now: Instant,
        wall: SystemTime,
    ) -> Option<NextRun> {
        let Recurrence::Calendar(schedule) = &self.recurrence else {
            return None;
        };
        // The searches are for the few that are late.
        let due = self.next_wall.filter(|_| self.is_late(time, wall))?;
        // One that is late is not missed as long as the time after it is to come.
        if occurrences::first(schedule, due)? > wall {
            return None;
        }
        let (next, missed) = occurrences::next(schedule, self.missed, due, true, wall)?;
        if next == due {
            return None;
        }
        Some(self.at_wall_time(Some((next, missed)), now, wall))
    }

    /// Whether a run by the calendar for `time` comes up so late that the times after it are looked at.
    #[cfg(feature = "cron")]
    pub(crate) fn is_late(&self, time: SystemTime, wall: SystemTime) -> bool {
        let is_late = wall
            .duration_since(time)
            .is_ok_and(|late| late >= MISFIRE_THRESHOLD);
        is_late && self.is_by_calendar() && self.failures == 0 && !self.is_triggered
    }

    fn retry(&mut self, back_off: BackOff, now: Instant) -> NextRun {
        self.failures = self.failures.saturating_add(1);
        let retry = back_off.delay(self.failures);
        match retry.map(|delay| self.within_range(saturating_add(now, delay), 0)) {
            Some(NextRun::At { at, missed }) => NextRun::At { at, missed },
            _ => NextRun::Failed,
        }
    }

    /// The first deadline after a pause, of a job that was to run at `deadline`. What came due meanwhile is not missed: nothing was to run.
    ///
    /// `waits_for` is the time of day that it waited for, if it did, and the wall clock shows `wall`.
    pub(crate) fn after_pause(
        &mut self,
        deadline: Instant,
        waits_for: Option<SystemTime>,
        now: Instant,
        wall: SystemTime,
    ) -> NextRun {
        let is_past = waits_for.map_or(deadline <= now, |time| time <= wall);
        match &self.recurrence {
            #[cfg(feature = "cron")]
            Recurrence::Calendar(schedule)
                if self.failures == 0
                    && (is_past || waits_for.is_some() && self.was_set_back(now, wall)) =>
            {
                let is_ahead = |&next: &SystemTime| next > wall && !self.was_set_back(now, wall);
                let next = self.next_wall.filter(is_ahead);
                let next = next.or_else(|| occurrences::first(schedule, wall));
                self.is_triggered = false;
                self.at_wall_time(next.map(|next| (next, 0)), now, wall)
            }
            // A run that is tried again is not of the grid.
            _ if !is_past || self.failures > 0 => self.within_range(deadline, 0),
            &Recurrence::FixedRate(period) => {
                self.is_triggered = false;
                (self.next, _) = Missed::Skip.next_at_or_after(self.next, period, now);
                self.within_range(self.next, 0)
            }
            _ => self.within_range(deadline, 0),
        }
    }

    /// The next run is at `deadline` instead. By the calendar, it is still for the time that it was for.
    pub(crate) fn reschedule(&mut self, deadline: Instant) {
        if !self.is_by_calendar() {
            self.next = deadline;
        }
        self.is_triggered = false;
    }

    fn is_by_calendar(&self) -> bool {
        #[cfg(feature = "cron")]
        return matches!(self.recurrence, Recurrence::Calendar(_));
        #[cfg(not(feature = "cron"))]
        return false;
    }

    /// A job that is paused is triggered: what came due in the pause was not missed.
    pub(crate) fn skip_missed(&mut self, now: Instant, wall: SystemTime) {
        match &self.recurrence {
            _ if self.failures > 0 => {}
            &Recurrence::FixedRate(period) => {
                (self.next, _) = Missed::Skip.next_at_or_after(self.next, period, now);
            }
            #[cfg(feature = "cron")]
            Recurrence::Calendar(schedule) if self.next_wall.is_some_and(|next| next <= wall) => {
                match occurrences::first(schedule, wall) {
                    Some(next) => self.set_next_wall(next, now, wall),
                    None => self.next_wall = None,
                }
            }
            _ => {}
        }
        let _ = wall;
    }

    /// Whether a run may be due then.
    pub(crate) fn allows(&self, at: Instant) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    fn within_range(&self, at: Instant, missed: u64) -> NextRun {
        match self.allows(at) {
            true => NextRun::At { at, missed },
            false => NextRun::Done,
        }
    }

    /// A deadline, moved by the plan's jitter: later by a random part of it, and no later than the last instant.
    pub(crate) fn with_jitter(&self, at: Instant) -> Instant {
        self.within(at, saturating_add(at, random_jitter(self.jitter)))
    }

    /// An instant to which `at` is moved, but no later than the last instant of the job.
    pub(crate) fn within(&self, at: Instant, later: Instant) -> Instant {
        self.until.map_or(later, |until| later.min(until.max(at)))
    }

    #[cfg(feature = "cron")]
    pub(crate) fn with_jitter_on_wall(&self, wall: SystemTime) -> SystemTime {
        wall.checked_add(random_jitter(self.jitter)).unwrap_or(wall)
    }
}

/// A random part of `most`, `most` included, at most some thirty years.
pub(crate) fn random_jitter(most: Duration) -> Duration {
    match u64::try_from(most.min(MAX_DELAY).as_nanos()).unwrap_or(u64::MAX) {
        0 => Duration::ZERO,
        nanos => Duration::from_nanos(fastrand::u64(..=nanos)),
    }
}

/// An instant later by a duration, at most some thirty years: what is further away never comes.
pub(crate) fn saturating_add(instant: Instant, duration: Duration) -> Instant {
    instant
        .checked_add(duration)
        .or_else(|| instant.checked_add(MAX_DELAY))
        .unwrap_or(instant)
}

/// A time of the calendar is looked at once more if it comes up so late.
#[cfg(feature = "cron")]
const MISFIRE_THRESHOLD: Duration = Duration::from_secs(1);

/// As far as tokio's clamp of long sleeps.
const MAX_DELAY: Duration = Duration::from_secs(86_400 * 365 * 30);
