//! Helpers for the tests of calendars, and the tests of decisions.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::Due;

use super::*;

pub(super) const HOUR: i64 = 3_600;
pub(super) const DAY: i64 = 86_400;
/// A Monday in 2027, at midnight.
pub(super) const NOW: i64 = 1_800_230_400;

pub(super) fn due(second: i64) -> Due {
    Due::from_millis(second * 1_000)
}

pub(super) fn dues(seconds: &[i64]) -> Vec<Due> {
    seconds.iter().map(|second| due(*second)).collect()
}

/// Occurrences in each second of some ranges, or once per period, in a time zone this many seconds ahead of UTC.
#[derive(Debug)]
pub(super) struct Listed {
    ranges: Vec<Range<i64>>,
    period: i64,
    ahead: i64,
    request: AtomicU64,
}

impl Listed {
    pub(super) fn new(seconds: impl IntoIterator<Item = i64>) -> Listed {
        Listed::of(seconds.into_iter().map(|it| it..it + 1))
    }

    /// Each second of a range.
    pub(super) fn within(range: Range<i64>) -> Listed {
        Listed::of(std::iter::once(range))
    }

    fn of(ranges: impl Iterator<Item = Range<i64>>) -> Listed {
        Listed {
            ranges: ranges.collect(),
            period: 1,
            ahead: 0,
            request: AtomicU64::new(0),
        }
    }

    /// Whenever a wall clock in the zone shows a multiple of the period.
    pub(super) fn each(period: i64) -> Listed {
        Listed {
            period,
            ..Listed::within(0..i64::MAX / 1_000)
        }
    }

    pub(super) fn ahead(self, seconds: i64) -> Listed {
        Listed {
            ahead: seconds,
            ..self
        }
    }

    pub(super) fn request(&self) -> u64 {
        self.request.swap(0, Ordering::Relaxed)
    }
}

impl Occurrences for Listed {
    fn next_after(&self, after: Due) -> Option<Due> {
        self.request.fetch_add(1, Ordering::Relaxed);
        let from = after.second() + 1 + self.ahead;
        let next = self.ranges.iter().find(|range| from < range.end)?;
        let from = from.max(next.start);
        let up = (from + self.period - 1).div_euclid(self.period) * self.period;
        Some(due(up - self.ahead))
    }

    fn civil(&self, at: Due) -> i64 {
        at.as_millis() + self.ahead * 1_000
    }

    fn instant(&self, civil: i64, _: Due) -> Due {
        Due::from_millis(civil - self.ahead * 1_000)
    }

    fn rules(&self, _: Due) -> u64 {
        self.ahead.cast_unsigned()
    }

    fn stored(&self, progress: &Progress) -> Arc<[u8]> {
        progress.cursor.at.to_string().into_bytes().into()
    }
}

/// A calendar, its cursor, and the clock.
struct Subject {
    plan: Plan,
    cursor: Cursor,
}

impl Subject {
    fn new(of: Listed, misfire: Misfire, at: i64) -> Subject {
        let cursor = Cursor::starting(due(at), &of);
        let plan = Plan {
            definition: "a calendar".into(),
            times: "its times".into(),
            handler: "nightly".into(),
            payload: Arc::from([]),
            misfire,
            occurrences: Arc::new(of),
        };
        Subject { plan, cursor }
    }

    /// Decides, and continues from there. Returns the seconds that are filed, and when to decide again.
    #[track_caller]
    fn at(&mut self, now: i64) -> (Vec<i64>, Option<i64>) {
        self.at_most(now, 1_000)
    }

    #[track_caller]
    fn at_most(&mut self, now: i64, limit: usize) -> (Vec<i64>, Option<i64>) {
        let decision = decide(&self.plan, self.cursor, due(now), limit);
        let Decision {
            occurrences,
            cursor,
            wakes_at,
        } = decision;
        assert_eq!(cursor.civil, self.plan.occurrences.civil(cursor.at));
        if let Some(last) = occurrences.last() {
            assert_eq!((cursor.last, cursor.at), (Some(*last), *last));
        }
        self.cursor = cursor;
        let seconds = occurrences.iter().map(|it| it.second()).collect();
        (seconds, wakes_at.map(Due::second))
    }

    /// Changes the rules of the time zone.
    fn ahead(&mut self, period: i64, seconds: i64) {
        self.plan.occurrences = Arc::new(Listed::each(period).ahead(seconds));
    }
}

const ALL: [Misfire; 4] = [
    Misfire::Once,
    Misfire::CatchUpTo(1),
    Misfire::CatchUpTo(1_000),
    Misfire::Skip,
];

#[test]
fn each_occurrence_is_filed_once_at_its_time() {
    for misfire in ALL {
        let mut it = Subject::new(Listed::each(HOUR), misfire, NOW);
        // The occurrence at the start time itself came before the calendar existed.
        assert_eq!(it.at(NOW), (vec![], Some(NOW + HOUR)));
        assert_eq!(it.at(NOW + HOUR - 1), (vec![], Some(NOW + HOUR)));
        let next = (vec![NOW + HOUR], Some(NOW + 2 * HOUR));
        assert_eq!(it.at(NOW + HOUR), next);
        assert_eq!(it.at(NOW + HOUR), (vec![], Some(NOW + 2 * HOUR)));
        assert_eq!(it.cursor.last, Some(due(NOW + HOUR)));
    }
}

#[test]
fn what_is_a_minute_late_is_in_time() {
    for misfire in ALL {
        let mut it = Subject::new(Listed::each(20), misfire, NOW);
        let all = vec![NOW + 20, NOW + 40, NOW + 60, NOW + 80];
        assert_eq!(it.at(NOW + 80), (all, Some(NOW + 100)));
    }
}

#[test]
fn of_what_was_missed_the_last_one_is_filed_once() {
    let mut it = Subject::new(Listed::each(HOUR), Misfire::Once, NOW);
    let now = NOW + 3 * DAY + 61;
    assert_eq!(it.at(now), (vec![now - 61], Some(now - 61 + HOUR)));
    assert_eq!(it.at(now), (vec![], Some(now - 61 + HOUR)));
    // Even if a few of them are not late.
    let mut it = Subject::new(Listed::each(20), Misfire::Once, NOW);
    assert_eq!(it.at(NOW + 100), (vec![NOW + 100], Some(NOW + 120)));
}

#[test]
fn of_what_was_missed_the_last_ones_are_filed() {
    let mut it = Subject::new(Listed::each(HOUR), Misfire::CatchUpTo(3), NOW);
    let now = NOW + 3 * DAY + 61;
    let last = now - 61;
    let three = vec![last - 2 * HOUR, last - HOUR, last];
    assert_eq!(it.at(now), (three, Some(last + HOUR)));
    // Fewer, if there are no more.
    let now = last + 2 * HOUR + 61;
    let two = vec![last + HOUR, last + 2 * HOUR];
    assert_eq!(it.at(now), (two, Some(last + 3 * HOUR)));
}

#[test]
fn what_was_missed_is_passed_over() {
    let mut it = Subject::new(Listed::each(HOUR), Misfire::Skip, NOW);
    let now = NOW + 3 * DAY;
    assert_eq!(it.at(now + 61), (vec![], Some(now + HOUR)));
    assert_eq!(it.cursor.last, None);
    // A minute after its time, an occurrence does not count as missed.
    let now = now + 2 * HOUR;
    assert_eq!(it.at(now + 60), (vec![now], Some(now + HOUR)));
    // A millisecond more than a minute.
    it.at(now + HOUR - 1);
    let late = Due::from_millis((now + HOUR + 60) * 1_000 + 1);
    let decision = decide(&it.plan, it.cursor, late, 9);
    assert_eq!(decision.occurrences, []);
    assert_eq!(decision.cursor.last, Some(due(now)));
}

#[test]
fn what_does_not_fit_in_a_step_comes_with_the_next() {
    let mut it = Subject::new(Listed::each(HOUR), Misfire::CatchUpTo(5), NOW);
    let now = NOW + DAY + 61;
    let last = NOW + DAY;
    let first = (last - 4 * HOUR, last - 3 * HOUR);
    let two = (vec![first.0, first.1], Some(last - 2 * HOUR));
    assert_eq!(it.at_most(now, 2), two);
    let two = (vec![last - 2 * HOUR, last - HOUR], Some(last));
    assert_eq!(it.at_most(now, 2), two);
    assert_eq!(it.at_most(now, 2), (vec![last], Some(last + HOUR)));
    for misfire in ALL {
        let mut it = Subject::new(Listed::each(20), misfire, NOW);
        let two = (vec![NOW + 20, NOW + 40], Some(NOW + 60));
        assert_eq!(it.at_most(NOW + 60, 2), two);
        assert_eq!(it.at_most(NOW + 60, 2).0, [NOW + 60]);
    }
}

#[test]
fn a_year_of_each_second_is_decided_in_few_steps() {
    let year = 365 * DAY;
    for (misfire, filed, limit) in [
        (Misfire::Once, 1, 100),
        (Misfire::CatchUpTo(1_000), 1_000, 2_200),
        (Misfire::Skip, 61, 100),
    ] {
        let of = Arc::new(Listed::each(1));
        let mut it = Subject::new(Listed::each(1), misfire, NOW);
        it.plan.occurrences = Arc::clone(&of) as _;
        let (seconds, wakes_at) = it.at(NOW + year);
        let expected: Vec<_> = (NOW + year + 1 - filed..=NOW + year).collect();
        assert_eq!((seconds, wakes_at), (expected, Some(NOW + year + 1)));
        let request = of.request();
        assert!(request < limit, "{misfire:?}: {request}");
    }
}

#[test]
fn a_calendar_that_ends_is_not_looked_at_again() {
    let mut it = Subject::new(Listed::new([NOW + 5]), Misfire::Once, NOW);
    assert_eq!(it.at(NOW + 5), (vec![NOW + 5], None));
    assert_eq!(it.at(NOW + DAY), (vec![], None));
}

#[test]
fn a_clock_that_is_set_back_a_little_is_waited_for() {
    for back in [1, HOUR, DAY - HOUR, DAY] {
        let mut it = Subject::new(Listed::each(HOUR), Misfire::Once, NOW);
        it.at(NOW + HOUR);
        let cursor = it.cursor;
        let now = NOW + HOUR - back;
        assert_eq!(it.at(now), (vec![], Some(NOW + 2 * HOUR)), "{back}");
        assert_eq!(it.cursor, cursor);
        let next = (vec![NOW + 2 * HOUR], Some(NOW + 3 * HOUR));
        assert_eq!(it.at(NOW + 2 * HOUR), next);
    }
}

#[test]
fn a_clock_that_is_set_back_by_days_is_not_waited_for() {
    let mut it = Subject::new(Listed::each(HOUR), Misfire::Once, NOW);
    it.at(NOW + HOUR);
    // A second more than a day.
    let now = NOW + HOUR - DAY - 1;
    assert_eq!(it.at(now), (vec![], Some(NOW + HOUR - DAY)));
    assert_eq!(it.cursor.at, due(now));
    let next = (vec![NOW + HOUR - DAY], Some(NOW + 2 * HOUR - DAY));
    assert_eq!(it.at(NOW + HOUR - DAY), next);
}

#[test]
fn a_clock_that_was_behind_for_a_while_brings_nothing_twice() {
    // A machine that starts in 1970, or three days ago, each time it is switched on.
    for behind in [0, NOW - 3 * DAY] {
        let mut it = Subject::new(Listed::each(DAY), Misfire::Once, NOW - 5);
        assert_eq!(it.at(NOW + 60), (vec![NOW], Some(NOW + DAY)));
        assert_eq!(it.at(behind + 5), (vec![], Some(behind + DAY)));
        assert_eq!(it.at(behind + 9), (vec![], Some(behind + DAY)));
        // The clock is set: nothing was missed. A calendar created in 1970 would have missed the last one.
        assert_eq!(it.at(NOW + HOUR), (vec![], Some(NOW + DAY)));
        assert_eq!(it.at(NOW + DAY).0, [NOW + DAY]);
        assert_eq!(it.cursor.aside, None);
    }
}

#[test]
fn what_was_put_aside_outlives_another_wrong_clock() {
    // In 2100, in 2027 and twice in 1970: the cursor of 2027 counts.
    let mut it = Subject::new(Listed::each(DAY), Misfire::Once, NOW + 73 * 365 * DAY);
    assert_eq!(it.at(NOW - 5).1, Some(NOW));
    assert_eq!(it.at(NOW).0, [NOW]);
    assert_eq!(it.at(3 * DAY + 5), (vec![], Some(4 * DAY)));
    assert_eq!(it.at(5), (vec![], Some(DAY)));
    let missed = NOW + 2 * DAY;
    assert_eq!(it.at(missed + HOUR), (vec![missed], Some(missed + DAY)));
}

#[test]
fn what_came_by_a_clock_ahead_does_not_come_again_at_its_end() {
    let mut it = Subject::new(Listed::each(DAY), Misfire::Once, NOW);
    // Three days ahead for an hour, and then right again.
    assert_eq!(it.at(NOW + 3 * DAY + 61).0, [NOW + 3 * DAY]);
    assert_eq!(it.at(NOW + HOUR), (vec![], Some(NOW + DAY)));
    assert_eq!(it.at(NOW + DAY).0, [NOW + DAY]);
    assert_eq!(it.at(NOW + 2 * DAY).0, [NOW + 2 * DAY]);
    let passed = (vec![], Some(NOW + 4 * DAY));
    assert_eq!(it.at(NOW + 3 * DAY), passed);
}

#[test]
fn a_first_start_by_a_clock_in_1970_has_missed_nothing() {
    for misfire in ALL {
        let mut it = Subject::new(Listed::each(HOUR), misfire, 7);
        assert_eq!(it.at(8), (vec![], Some(HOUR)));
        // It follows the clock as it is.
        assert_eq!(it.at(HOUR).0, [HOUR]);
        assert_eq!(it.at(NOW + 61), (vec![], Some(NOW + HOUR)));
        assert_eq!(it.at(NOW + HOUR).0, [NOW + HOUR]);
    }
}

#[test]
fn a_first_start_by_a_clock_in_2100_waits_for_no_century() {
    let wrong = NOW + 73 * 365 * DAY;
    for misfire in ALL {
        let mut it = Subject::new(Listed::each(HOUR), misfire, wrong);
        assert_eq!(it.at(wrong + HOUR).0, [wrong + HOUR]);
        assert_eq!(it.at(NOW + 1), (vec![], Some(NOW + HOUR)));
        assert_eq!(it.at(NOW + HOUR).0, [NOW + HOUR]);
        assert_eq!(it.at(NOW + 2 * HOUR).0, [NOW + 2 * HOUR]);
    }
}

#[test]
fn new_rules_of_a_zone_bring_no_time_of_the_wall_twice() {
    // The zone was an hour ahead and no longer is: its clocks are put back.
    let mut it = Subject::new(Listed::each(DAY).ahead(HOUR), Misfire::Once, NOW - 2 * HOUR);
    let midnight = NOW - HOUR;
    assert_eq!(it.at(midnight), (vec![midnight], Some(midnight + DAY)));
    it.ahead(DAY, 0);
    // Now the wall clock in the zone shows midnight of the same day again.
    assert_eq!(it.at(NOW), (vec![], Some(NOW + DAY)));
    assert_eq!(it.at(NOW + DAY).0, [NOW + DAY]);
}

#[test]
fn new_rules_of_a_zone_file_what_comes_by_them() {
    let mut it = Subject::new(Listed::each(DAY), Misfire::Once, NOW - HOUR);
    assert_eq!(it.at(NOW).1, Some(NOW + DAY));
    // Its clocks are put forward: midnight comes an hour sooner.
    it.ahead(DAY, HOUR);
    let midnight = NOW + DAY - HOUR;
    assert_eq!(it.at(NOW + 1), (vec![], Some(midnight)));
    assert_eq!(it.at(midnight), (vec![midnight], Some(midnight + DAY)));
}

#[test]
fn new_rules_of_a_zone_bring_no_instant_twice() {
    let mut it = Subject::new(Listed::each(HOUR), Misfire::Once, NOW - 1);
    assert_eq!(it.at(NOW), (vec![NOW], Some(NOW + HOUR)));
    // Its clocks were put forward, which is learned a minute later: this was one o'clock.
    it.ahead(HOUR, HOUR);
    assert_eq!(it.at(NOW + 61), (vec![], Some(NOW + HOUR)));
}

#[test]
fn a_cursor_that_makes_no_sense_stops_no_calendar() {
    for civil in [i64::MIN, 0, i64::MAX] {
        let mut it = Subject::new(Listed::each(HOUR), Misfire::Once, NOW);
        it.cursor.civil = civil;
        it.cursor.rules = 9;
        it.at(NOW + 1);
        it.at(NOW + 2);
        assert_eq!(it.at(NOW + HOUR).0, [NOW + HOUR], "{civil}");
    }
    for at in [i64::MIN, i64::MAX] {
        let mut it = Subject::new(Listed::each(HOUR), Misfire::Once, NOW);
        it.cursor.at = Due::from_millis(at);
        it.at(NOW + 1);
        assert_eq!(it.at(NOW + HOUR).0, [NOW + HOUR], "{at}");
    }
}
