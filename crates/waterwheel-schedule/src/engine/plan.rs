//! When a job runs next: at a fixed rate, with a fixed delay, by a calendar, or again after a failure. Pure functions of the time that
//! they are given: no clock and no lock.
//!
//! # A wall clock that is set back
//!
//! A plan keeps the next time of its calendar, and the instant at which the wall clock was to show that time when it was chosen. If it
//! turns out that the clock will show it more than a day after that instant, the clock was set back by more than a day. It was wrong
//! before, so the calendar starts again at the time that the clock shows now. If the clock was set back by less, the times up to the next
//! one have had their runs.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
#[cfg(feature = "cron")]
use waterwheel_cron::Schedule;
#[cfg(feature = "cron")]
use waterwheel_cron::jiff::Timestamp;

use crate::policy::{Backoff, Misfire, OnError};

/// The plan of a job that may run more than once. A job that runs once and is not retried has none.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) recurrence: Recurrence,
    pub(crate) misfire: Misfire,
    pub(crate) on_error: OnError,
    pub(crate) jitter: Duration,
    /// `None` if the number of runs is not limited.
    pub(crate) runs_left: Option<u64>,
    pub(crate) until: Option<Instant>,
    /// The next deadline, before jitter. A run that was triggered does not move it. For a calendar, the instant at which the wall clock was
    /// to show `next_wall` when that was chosen.
    pub(crate) next: Instant,
    /// The wall-clock time of the next run, before jitter, if it has one.
    pub(crate) next_wall: Option<SystemTime>,
    /// Whether the current run was triggered, in addition to the schedule.
    pub(crate) is_triggered: bool,
    /// The number of failures of the current run so far.
    pub(crate) failures: u32,
}

/// How the next deadline follows from a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recurrence {
    /// One period after the deadline of the previous run: t0, t0 + p, t0 + 2 p.
    FixedRate(Duration),
    /// One period after the end of the previous run.
    FixedDelay(Duration),
    /// At the next time of the calendar.
    #[cfg(feature = "cron")]
    Calendar(Schedule),
    /// Never: only a failed run is retried.
    Once,
}

/// How a run that was not aborted ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunResult {
    Succeeded,
    Failed,
}

/// The next run of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextRun {
    /// At this instant, after this many missed runs.
    At { at: Instant, missed: u64 },
    /// When the wall clock shows this time, after this many missed runs.
    #[cfg(feature = "cron")]
    AtWall { wall: SystemTime, missed: u64 },
    /// There is no next run: the job has had its last one.
    Done,
    /// There is no next run: the job ends with the error of the run.
    Failed,
}

impl Plan {
    /// Moves on after a run that ended at `now`, when the wall clock showed `wall`.
    pub(crate) fn after_run(&mut self, ran: RunResult, now: Instant, wall: SystemTime) -> NextRun {
        if ran == RunResult::Failed {
            match &self.on_error {
                OnError::End => return NextRun::Failed,
                OnError::Backoff(backoff) => return self.retry(backoff.clone(), now),
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
            // The next deadline is unchanged.
            Recurrence::FixedRate(period) if is_triggered => {
                self.misfire.next_at_or_after(self.next, *period, now)
            }
            Recurrence::FixedRate(period) => self.misfire.next(self.next, *period, now),
            Recurrence::FixedDelay(period) => (saturating_add(now, *period), 0),
            Recurrence::Once => return NextRun::Done,
            #[cfg(feature = "cron")]
            Recurrence::Calendar(schedule) => {
                // `next_wall` is `None` if the first run was set by `first_at`.
                let last = self.next_wall.filter(|_| !self.was_set_back(now, wall));
                let last = last.unwrap_or(wall);
                let next = match is_triggered && wall < last {
                    true => Some((last, 0)),
                    false => next_occurrence(schedule, self.misfire, last, is_triggered, wall),
                };
                return self.next_at_wall(next, now, wall);
            }
        };
        let _ = wall;
        self.next = at;
        self.or_done(at, missed)
    }

    /// Takes this time of the calendar as the next, at `now`, when the wall clock shows `wall`.
    #[cfg(feature = "cron")]
    fn next_at_wall(
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

    /// Checks a run for the wall-clock time `time` that is due by the wheel at `now`, when the wall clock shows `wall`. Returns whether the
    /// calendar was searched, some hundred times at worst, and the time to wait for instead, with the number of missed runs.
    #[cfg(feature = "cron")]
    pub(crate) fn check_due(
        &mut self,
        time: SystemTime,
        now: Instant,
        wall: SystemTime,
    ) -> (bool, Option<(SystemTime, u64)>) {
        let searched = self.is_late(time, wall) || self.was_set_back(now, wall);
        let instead = if time > wall {
            self.restart_if_set_back(now, wall).map(|time| (time, 0))
        } else {
            self.after_misfire(time, now, wall)
        };
        (searched, instead)
    }

    #[cfg(not(feature = "cron"))]
    pub(crate) fn check_due(
        &mut self,
        _: SystemTime,
        _: Instant,
        _: SystemTime,
    ) -> (bool, Option<(SystemTime, u64)>) {
        (false, None)
    }

    /// Applies the misfire policy to a run by the calendar that is late, if the time after it has passed as well. Otherwise the run is not
    /// missed, and begins late: `None`.
    #[cfg(feature = "cron")]
    fn after_misfire(
        &mut self,
        time: SystemTime,
        now: Instant,
        wall: SystemTime,
    ) -> Option<(SystemTime, u64)> {
        let Recurrence::Calendar(schedule) = &self.recurrence else {
            return None;
        };
        // Only late runs pay for the searches.
        let due = self.next_wall.filter(|_| self.is_late(time, wall))?;
        if first_occurrence(schedule, due)? > wall {
            return None;
        }
        let (next, missed) = next_occurrence(schedule, self.misfire, due, true, wall)?;
        if next == due {
            return None;
        }
        self.set_next_wall(next, now, wall);
        Some((next, missed))
    }

    /// Whether a run by the calendar for `time` is late enough to look for a misfire.
    #[cfg(feature = "cron")]
    fn is_late(&self, time: SystemTime, wall: SystemTime) -> bool {
        let is_late = wall
            .duration_since(time)
            .is_ok_and(|late| late >= MISFIRE_CHECK_AFTER);
        is_late && self.is_by_calendar() && self.failures == 0 && !self.is_triggered
    }

    fn retry(&mut self, backoff: Backoff, now: Instant) -> NextRun {
        self.failures = self.failures.saturating_add(1);
        let retry = backoff.delay(self.failures);
        match retry.map(|delay| self.or_done(saturating_add(now, delay), 0)) {
            Some(NextRun::At { at, missed }) => NextRun::At { at, missed },
            _ => NextRun::Failed,
        }
    }

    /// The first run after a pause of a job whose deadline was `deadline`. Runs that came due during the pause were not missed.
    ///
    /// `waits_for` is the wall-clock time that the job waited for, if it did, and the wall clock shows `wall`.
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
                let next = next.or_else(|| first_occurrence(schedule, wall));
                self.is_triggered = false;
                self.next_at_wall(next.map(|next| (next, 0)), now, wall)
            }
            // A retry has a deadline of its own.
            _ if !is_past || self.failures > 0 => self.or_done(deadline, 0),
            &Recurrence::FixedRate(period) => {
                self.is_triggered = false;
                (self.next, _) = Misfire::Skip.next_at_or_after(self.next, period, now);
                self.or_done(self.next, 0)
            }
            _ => self.or_done(deadline, 0),
        }
    }

    /// Moves the next run to `deadline`. A run by the calendar is still for the same time of the calendar.
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

    /// A paused job is triggered: skips the runs that came due during the pause, which do not count as missed.
    pub(crate) fn skip_missed(&mut self, now: Instant, wall: SystemTime) {
        match &self.recurrence {
            _ if self.failures > 0 => {}
            &Recurrence::FixedRate(period) => {
                (self.next, _) = Misfire::Skip.next_at_or_after(self.next, period, now);
            }
            #[cfg(feature = "cron")]
            Recurrence::Calendar(schedule) if self.next_wall.is_some_and(|next| next <= wall) => {
                match first_occurrence(schedule, wall) {
                    Some(next) => self.set_next_wall(next, now, wall),
                    None => self.next_wall = None,
                }
            }
            _ => {}
        }
        let _ = wall;
    }

    /// Whether a run may be due at this instant.
    pub(crate) fn allows(&self, at: Instant) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    /// A run at this instant, unless that is after the last instant of the job.
    fn or_done(&self, at: Instant, missed: u64) -> NextRun {
        match self.allows(at) {
            true => NextRun::At { at, missed },
            false => NextRun::Done,
        }
    }

    /// Delays a deadline by a random part of the jitter, but not beyond the last instant of the job.
    pub(crate) fn with_jitter(&self, at: Instant) -> Instant {
        self.delayed_within(at, saturating_add(at, random_jitter(self.jitter)))
    }

    /// The instant `later` that `at` is delayed to, but not beyond the last instant of the job.
    pub(crate) fn delayed_within(&self, at: Instant, later: Instant) -> Instant {
        self.until.map_or(later, |until| later.min(until.max(at)))
    }

    #[cfg(feature = "cron")]
    pub(crate) fn with_jitter_on_wall(&self, wall: SystemTime) -> SystemTime {
        wall.checked_add(random_jitter(self.jitter)).unwrap_or(wall)
    }
}

/// A random duration up to `most`, inclusive, and up to thirty years.
pub(crate) fn random_jitter(most: Duration) -> Duration {
    match u64::try_from(most.min(MAX_DELAY).as_nanos()).unwrap_or(u64::MAX) {
        0 => Duration::ZERO,
        nanos => Duration::from_nanos(fastrand::u64(..=nanos)),
    }
}

/// Adds a duration to an instant. A sum beyond the range of `Instant` becomes thirty years from the instant, which never comes.
pub(crate) fn saturating_add(instant: Instant, duration: Duration) -> Instant {
    instant
        .checked_add(duration)
        .or_else(|| instant.checked_add(MAX_DELAY))
        .unwrap_or(instant)
}

/// How late a run by the calendar must be to count as a possible misfire.
#[cfg(feature = "cron")]
const MISFIRE_CHECK_AFTER: Duration = Duration::from_secs(1);

/// Thirty years, the limit to which tokio clamps long sleeps.
const MAX_DELAY: Duration = Duration::from_secs(86_400 * 365 * 30);

impl Misfire {
    /// The deadline at a fixed rate that follows `last`, and how many were missed in between.
    fn next(self, last: Instant, period: Duration, now: Instant) -> (Instant, u64) {
        self.next_at_or_after(saturating_add(last, period), period, now)
    }

    /// Like `next`, but starting with the deadline `next` itself.
    fn next_at_or_after(self, next: Instant, period: Duration, now: Instant) -> (Instant, u64) {
        // The number of deadlines from `next` on that have passed.
        let late = match now.checked_duration_since(next) {
            None => return (next, 0),
            Some(late) => late.as_nanos() / period.as_nanos() + 1,
        };
        let skip = match self {
            Misfire::CatchUp => 0,
            Misfire::CatchUpTo(most) => late.saturating_sub(u128::from(most)),
            Misfire::Once => late - 1,
            Misfire::Skip => late,
        };
        (
            saturating_add(next, times(period, skip)),
            u64::try_from(skip).unwrap_or(u64::MAX),
        )
    }
}

fn times(period: Duration, count: u128) -> Duration {
    let nanos = period.as_nanos().saturating_mul(count);
    let second = 1_000_000_000;
    match u64::try_from(nanos / second) {
        Ok(seconds) => Duration::new(seconds, (nanos % second) as u32),
        Err(_) => Duration::MAX,
    }
}

/// The maximum number of missed times of a calendar that are counted, since each is a search.
#[cfg(feature = "cron")]
const MAX_COUNTED: usize = 100;

/// The first time of a calendar after `now`.
#[cfg(feature = "cron")]
pub(crate) fn first_occurrence(schedule: &Schedule, now: SystemTime) -> Option<SystemTime> {
    Some(schedule.next_after(timestamp(now)?)?.into())
}

/// The time of a calendar that follows `last`, and how many were missed in between. If `is_open`, `last` has not had its run yet, and
/// counts as the first of them.
#[cfg(feature = "cron")]
fn next_occurrence(
    schedule: &Schedule,
    misfire: Misfire,
    last: SystemTime,
    is_open: bool,
    now: SystemTime,
) -> Option<(SystemTime, u64)> {
    let (mut last, now) = (timestamp(last)?, timestamp(now)?);
    if is_open {
        // The search is for later times, and must find `last` itself.
        last = last.checked_sub(Duration::from_nanos(1)).ok()?;
    }
    let first = schedule.next_after(last)?;
    if first > now {
        return Some((first.into(), 0));
    }
    let late = || {
        schedule
            .upcoming(last)
            .take_while(|it| *it <= now)
            .take(MAX_COUNTED)
    };
    let taken = match misfire {
        Misfire::CatchUp => return Some((first.into(), 0)),
        Misfire::Skip => 0,
        Misfire::Once => 1,
        Misfire::CatchUpTo(most) => usize::try_from(most)
            .unwrap_or(MAX_COUNTED)
            .min(MAX_COUNTED),
    };
    let count = late().count();
    let skipped = count.saturating_sub(taken);
    let next = match taken {
        0 => schedule.next_after(now)?,
        _ if count < MAX_COUNTED => late().nth(skipped)?,
        // There are more than were counted, and the latest of all are wanted.
        _ => latest(schedule, taken, last, now)?,
    };
    Some((next.into(), skipped as u64))
}

/// The earliest of the last `wanted` times up to `now`. Looks back twice as far each time, until there are as many.
#[cfg(feature = "cron")]
fn latest(
    schedule: &Schedule,
    wanted: usize,
    last: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut before = Duration::from_secs(1);
    loop {
        let from = now.checked_sub(before).ok().filter(|from| *from > last);
        let from = from.unwrap_or(last);
        let found: Vec<_> = schedule
            .upcoming(from)
            .take_while(|it| *it <= now)
            .collect();
        if found.len() >= wanted {
            return Some(found[found.len() - wanted]);
        }
        if from == last {
            return found.first().copied();
        }
        before *= 2;
    }
}

#[cfg(feature = "cron")]
fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(time).ok()
}

#[cfg(feature = "cron")]
const DAY: Duration = Duration::from_secs(86_400);

#[cfg(feature = "cron")]
impl Plan {
    /// Makes `time` the next time of the calendar, at `now`, when the wall clock shows `wall`.
    fn set_next_wall(&mut self, time: SystemTime, now: Instant, wall: SystemTime) {
        self.next_wall = Some(time);
        self.next = match time.duration_since(wall) {
            Ok(left) => saturating_add(now, left),
            Err(past) => now.checked_sub(past.duration()).unwrap_or(now),
        };
    }

    /// Whether the clock was set back by more than a day since the next time was chosen, and has not reached that time.
    fn was_set_back(&self, now: Instant, wall: SystemTime) -> bool {
        let left = self
            .next_wall
            .and_then(|time| time.duration_since(wall).ok());
        left.is_some_and(|left| {
            !left.is_zero() && saturating_add(now, left) > saturating_add(self.next, DAY)
        })
    }

    /// If the clock was set back by more than a day, restarts the calendar and returns its next time, unless that is no earlier than before.
    fn restart_if_set_back(&mut self, now: Instant, wall: SystemTime) -> Option<SystemTime> {
        let Recurrence::Calendar(schedule) = &self.recurrence else {
            return None;
        };
        if !self.was_set_back(now, wall) {
            return None;
        }
        let first = first_occurrence(schedule, wall)?;
        let is_earlier = self.next_wall.is_some_and(|next| first < next);
        is_earlier.then(|| {
            self.set_next_wall(first, now, wall);
            first
        })
    }
}

#[cfg(all(test, feature = "cron"))]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const HOURLY: &str = "0 * * * *";
    const DAILY: &str = "0 10 * * *";
    // The first day of 1970.
    const WEEKLY: &str = "0 10 * * THU";

    /// A job whose run of 10:00 on the first day of 1970 has ended at once, and the instant of that.
    fn ran_at_10(expression: &str) -> (Plan, Instant) {
        let (now, wall) = (Instant::now(), hour(10));
        let mut plan = Plan {
            recurrence: Recurrence::Calendar(Schedule::parse(expression, "UTC").unwrap()),
            misfire: Misfire::Skip,
            on_error: OnError::End,
            jitter: Duration::ZERO,
            runs_left: None,
            until: None,
            next: now,
            next_wall: Some(wall),
            is_triggered: false,
            failures: 0,
        };
        plan.after_run(RunResult::Succeeded, now, wall);
        (plan, now)
    }

    fn hour(hours: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + hours * HOUR
    }

    /// Hours from the run at 10:00 to the next one.
    const PERIODS: [(&str, u32); 3] = [(HOURLY, 1), (DAILY, 24), (WEEKLY, 7 * 24)];

    #[test]
    fn a_small_set_back_gives_no_time_a_second_run() {
        for (expression, period) in PERIODS {
            for back in [1, 2, 9, 23, 24] {
                let (mut plan, ran) = ran_at_10(expression);
                let next = Some(hour(10 + period));
                assert_eq!(plan.next_wall, next);
                // The clock is set back while the job waits, which shows when it is due.
                let due = ran + period * HOUR;
                assert_eq!(
                    plan.restart_if_set_back(due, hour(10 + period) - back * HOUR),
                    None
                );
                assert_eq!(plan.next_wall, next, "{expression} by {back} h");
            }
        }
    }

    #[test]
    fn a_set_back_by_more_than_a_day_begins_anew() {
        for (expression, first) in [(HOURLY, 8), (DAILY, 10), (WEEKLY, 10)] {
            let (mut plan, ran) = ran_at_10(expression);
            // The clock was some ten years ahead, and is set right to half past seven of the first day.
            let wrong = hour(10 * 52 * 7 * 24);
            plan.set_next_wall(wrong + 10 * HOUR, ran, wrong);
            let due = ran + 10 * HOUR;
            let wall = hour(7) + HOUR / 2;
            assert_eq!(
                plan.restart_if_set_back(due, wall),
                Some(hour(first)),
                "{expression}"
            );
            assert_eq!(plan.next_wall, Some(hour(first)));
            // From here on, the clock counts as right.
            assert_eq!(plan.restart_if_set_back(due, wall), None);
        }
    }

    #[test]
    fn a_run_in_between_gives_no_time_a_second_run() {
        for (expression, period) in PERIODS {
            let (plan, ran) = ran_at_10(expression);
            let next = hour(10 + period);
            // At half past ten, a run that was triggered or rescheduled ends, and the clock goes back by two hours.
            let now = ran + HOUR / 2;
            for wall in [hour(10) + HOUR / 2, hour(8) + HOUR / 2] {
                let mut beside = plan.clone();
                beside.is_triggered = true;
                beside.after_run(RunResult::Succeeded, now, wall);
                assert_eq!(beside.next_wall, Some(next), "{expression}");
                let mut moved = plan.clone();
                moved.reschedule(now);
                moved.after_run(RunResult::Succeeded, now, wall);
                assert_eq!(moved.next_wall, Some(hour(10 + 2 * period)), "{expression}");
                let mut paused = plan.clone();
                paused.reschedule(now);
                paused.after_pause(now, None, now, wall);
                assert_eq!(paused.next_wall, Some(next), "{expression}");
            }
        }
    }

    #[test]
    fn a_pause_ends_by_a_clock_that_was_set_right() {
        for (expression, period) in PERIODS {
            let (mut plan, ran) = ran_at_10(expression);
            let waits_for = plan.next_wall;
            let day = 1_000 * 7 * 24 * HOUR;
            plan.set_next_wall(hour(10 + period) + day, ran, hour(10) + day);
            let next = plan.after_pause(
                ran + period * HOUR,
                waits_for.map(|time| time + day),
                ran + HOUR,
                hour(9),
            );
            let wall = hour(10);
            assert_eq!(next, NextRun::AtWall { wall, missed: 0 }, "{expression}");
        }
    }
}
