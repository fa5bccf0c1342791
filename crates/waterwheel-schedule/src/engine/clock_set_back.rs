//! Was the wall clock set back so far that the calendar begins again?
//!
//! A plan keeps the next time of its calendar, and the instant at which the wall clock was to show it when that time was chosen. If the clock will
//! show it more than a day after that instant, the clock was set back by more than a day: it was wrong before, and the calendar begins again at
//! what it shows now. If the clock was set back by less, the times up to the next one have had their runs.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::occurrences;
use super::plan::{Plan, Recurrence, saturating_add};

const DAY: Duration = Duration::from_secs(86_400);

impl Plan {
    /// `time` is the next of the calendar from now on: at `now`, when the wall clock shows `wall`.
    pub(super) fn set_next_wall(&mut self, time: SystemTime, now: Instant, wall: SystemTime) {
        self.next_wall = Some(time);
        self.next = match time.duration_since(wall) {
            Ok(left) => saturating_add(now, left),
            Err(past) => now.checked_sub(past.duration()).unwrap_or(now),
        };
    }

    /// Whether the clock was set back by more than a day since the next time was chosen. Not if it has passed that time.
    pub(super) fn was_set_back(&self, now: Instant, wall: SystemTime) -> bool {
        let left = self
            .next_wall
            .and_then(|time| time.duration_since(wall).ok());
        left.is_some_and(|left| {
            !left.is_zero() && saturating_add(now, left) > saturating_add(self.next, DAY)
        })
    }

    /// A run by the calendar is due by `now`, but the wall clock shows less, `wall`: the earlier time that the run is for now, if there is one.
    pub(crate) fn restart_if_set_back(
        &mut self,
        now: Instant,
        wall: SystemTime,
    ) -> Option<SystemTime> {
        let Recurrence::Calendar(schedule) = &self.recurrence else {
            return None;
        };
        if !self.was_set_back(now, wall) {
            return None;
        }
        let first = occurrences::first(schedule, wall)?;
        let is_earlier = self.next_wall.is_some_and(|next| first < next);
        is_earlier.then(|| {
            self.set_next_wall(first, now, wall);
            first
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Schedule;
    use crate::engine::plan::{NextRun, RunResult};
    use crate::policy::{Missed, OnError};

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
            missed: Missed::Skip,
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
            // At half past ten a run beside the schedule ends, or the run that was moved. The clock goes back by two hours.
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
