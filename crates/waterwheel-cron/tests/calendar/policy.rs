//! Clock changes forward and back, case by case as in the docs. In 2026, Berlin's clock goes from 2:00 to 3:00 on 29 March, and
//! from 3:00 to 2:00 on 25 October.

use crate::support::{on_the_wall, runs, schedule, utc};

/// An expression, a zone, a day, and the times at which it runs from midnight of that day on, by the wall clock.
const RUNS: &str = "
# a fixed time in a gap runs at its end
30 2 * * * | Europe/Berlin | 2026-03-28 | 03-28 02:30:00 +01:00, 03-29 03:00:00 +02:00, 03-30 02:30:00 +02:00
# fixed times in one gap run once
0,30 2 * * * | Europe/Berlin | 2026-03-29 | 03-29 03:00:00 +02:00, 03-30 02:00:00 +02:00
*/20 15,45 2 * * * | Europe/Berlin | 2026-03-29 | 03-29 03:00:00 +02:00, 03-30 02:15:00 +02:00
# the end of a gap that is a fixed time runs once
0,30 2-3 * * * | Europe/Berlin | 2026-03-29 | 03-29 03:00:00 +02:00, 03-29 03:30:00 +02:00, 03-30 02:00:00 +02:00
# a fixed time in an overlap runs the first time
30 2 * * * | Europe/Berlin | 2026-10-25 | 10-25 02:30:00 +02:00, 10-26 02:30:00 +01:00
0,30 2 * * * | Europe/Berlin | 2026-10-25 | 10-25 02:00:00 +02:00, 10-25 02:30:00 +02:00, 10-26 02:00:00 +01:00
# a wildcard does not run in a gap
*/30 2 * * * | Europe/Berlin | 2026-03-29 | 03-30 02:00:00 +02:00
*/30 1-3 * * * | Europe/Berlin | 2026-03-29 | 03-29 01:00:00 +01:00, 03-29 01:30:00 +01:00, 03-29 03:00:00 +02:00, 03-29 03:30:00 +02:00
# a wildcard runs in both halves of an overlap
*/30 2 * * * | Europe/Berlin | 2026-10-25 | 10-25 02:00:00 +02:00, 10-25 02:30:00 +02:00, 10-25 02:00:00 +01:00, 10-25 02:30:00 +01:00, 10-26 02:00:00 +01:00
# a range of hours is fixed and a step is not
30 2-4 * * * | Europe/Berlin | 2026-03-29 | 03-29 03:00:00 +02:00, 03-29 03:30:00 +02:00, 03-29 04:30:00 +02:00, 03-30 02:30:00 +02:00
30 2-4/1 * * * | Europe/Berlin | 2026-03-29 | 03-29 03:30:00 +02:00
# a midnight that comes twice runs once
# On 4 April, 24:00 is put back to 23:00: the day has no second midnight, and its last hour comes twice.
0 0,23 * * * | America/Santiago | 2026-04-04 | 04-04 23:00:00 -03:00, 04-05 00:00:00 -04:00, 04-05 23:00:00 -04:00
# a gap of half an hour is no longer than that
10,40 2 * * * | Australia/Lord_Howe | 2026-10-04 | 10-04 02:30:00 +11:00, 10-04 02:40:00 +11:00, 10-05 02:10:00 +11:00
# a gap across midnight ends on the next day
# Nuuk's clock goes from 23:00 on 30 March 2024, a Saturday, to 0:00.
30 23 * * SAT | America/Nuuk | 2024-03-29 | 03-31 00:00:00 -01:00, 04-06 23:30:00 -01:00
# a day without midnight begins at 1
@daily | America/Santiago | 2026-09-05 | 09-06 01:00:00 -03:00, 09-07 00:00:00 -03:00
*/20 0 * * * | America/Sao_Paulo | 2018-11-03 | 11-03 00:20:00 -03:00, 11-03 00:40:00 -03:00, 11-05 00:00:00 -02:00, 11-05 00:20:00 -02:00, 11-05 00:40:00 -02:00
# a day that a zone leaves out runs at its end
0 9 30 * * | Pacific/Apia | 2011-12-01 | 12-31 00:00:00 +14:00, 01-30 09:00:00 +14:00
# a day matches either restricted field
0 0 13 * FRI | UTC | 2026-02-10 | 02-13 00:00:00 +00:00, 02-20 00:00:00 +00:00, 02-27 00:00:00 +00:00
0 0 12 * FRI | UTC | 2026-02-10 | 02-12 00:00:00 +00:00, 02-13 00:00:00 +00:00
# beside a starred field a day matches both
0 0 */2 * MON | UTC | 2026-06-01 | 06-15 00:00:00 +00:00, 06-29 00:00:00 +00:00, 07-13 00:00:00 +00:00
# a plus asks for both days
0 0 13 * +FRI | UTC | 2026-01-01 | 02-13 00:00:00 +00:00, 03-13 00:00:00 +00:00, 11-13 00:00:00 +00:00
# every Tuesday at 9, and every 12th at 9
0 9 * * TUE | Europe/Berlin | 2026-03-23 | 03-24 09:00:00 +01:00, 03-31 09:00:00 +02:00
0 9 12 * * | America/New_York | 2026-02-20 | 03-12 09:00:00 -04:00, 04-12 09:00:00 -04:00
# a step begins anew with each hour
*/45 * * * * | UTC | 2026-01-01 | 01-01 00:45:00 +00:00, 01-01 01:00:00 +00:00, 01-01 01:45:00 +00:00
";

#[test]
fn expressions_run_at_the_listed_times() {
    for row in RUNS
        .lines()
        .filter(|it| !it.starts_with('#') && !it.is_empty())
    {
        let [expression, zone, day, expected] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let expected: Vec<_> = expected.split(", ").collect();
        assert_eq!(
            runs(expression, zone, day, expected.len()),
            expected,
            "{row}"
        );
    }
}

#[test]
fn a_search_from_the_second_half_finds_no_fixed_time_of_it() {
    let schedule = schedule("0-59 2 * * *", "Europe/Berlin");
    for (from, first) in [
        ("2026-10-25T00:58", "10-25 02:59:00 +02:00"),
        ("2026-10-25T00:59", "10-26 02:00:00 +01:00"),
        ("2026-10-25T01:00", "10-26 02:00:00 +01:00"),
        ("2026-10-25T01:30", "10-26 02:00:00 +01:00"),
    ] {
        assert_eq!(on_the_wall(&schedule, utc(from), 1), [first], "{from}");
    }
}

#[test]
fn the_last_wildcard_of_all_runs_in_the_second_half_too() {
    let schedule = crate::support::with_years("0 */15 2 25 10 * 2026", "Europe/Berlin");
    let found = schedule.upcoming(utc("2026-10-25T00:40"));
    assert_eq!(found.count(), 5);
}

#[test]
fn every_15_minutes_is_15_minutes_through_a_change() {
    for day in ["2026-03-29", "2026-10-25"] {
        let schedule = schedule("*/15 * * * *", "Europe/Berlin");
        let start = utc(&format!("{day}T00:00"));
        let found: Vec<i64> = schedule
            .upcoming(start)
            .take(12)
            .map(|it| it.as_second())
            .collect();
        let steps = found.windows(2).all(|it| it[1] - it[0] == 900);
        assert!(
            steps && found[0] - start.as_second() == 900,
            "{day}: {found:?}"
        );
    }
}

#[test]
fn an_hourly_wildcard_runs_as_often_as_the_day_has_hours() {
    for (day, end, count) in [
        ("2026-03-28T23:00", "2026-03-29T22:00", 23),
        ("2026-10-24T22:00", "2026-10-25T23:00", 25),
    ] {
        let found = schedule("30 * * * *", "Europe/Berlin").upcoming(utc(day));
        assert_eq!(
            found.take_while(|it| *it < utc(end)).count(),
            count,
            "{day}"
        );
    }
}

#[test]
fn a_wildcard_passes_over_a_day_that_a_zone_leaves_out() {
    let found = runs("* * * * *", "Pacific/Apia", "2011-12-29", 24 * 60);
    assert_eq!(found.last().unwrap(), "12-31 00:00:00 +14:00");
}

// The last run before a change, in it, and after it.
#[test]
fn the_previous_time_is_the_one_that_ran_last() {
    for (expression, before, previous) in [
        // A fixed time in a gap ran at the end of the gap, but not before that instant.
        ("30 2 * * *", "2026-03-29T01:00", "2026-03-28T01:30"),
        ("30 2 * * *", "2026-03-29T01:00:01", "2026-03-29T01:00"),
        // A wildcard did not run in the gap.
        ("*/30 2 * * *", "2026-03-29T12:00", "2026-03-28T01:30"),
        // A fixed time in an overlap ran in the first half, a wildcard in both.
        ("30 2 * * *", "2026-10-25T12:00", "2026-10-25T00:30"),
        ("30 2 * * *", "2026-10-25T01:30", "2026-10-25T00:30"),
        ("*/30 2 * * *", "2026-10-25T12:00", "2026-10-25T01:30"),
        ("*/30 2 * * *", "2026-10-25T01:30", "2026-10-25T01:00"),
        ("*/30 2 * * *", "2026-10-25T01:00", "2026-10-25T00:30"),
    ] {
        let schedule = schedule(expression, "Europe/Berlin");
        let (before, previous) = (utc(before), utc(previous));
        let found = schedule.previous_before(before);
        assert_eq!(found, Some(previous), "{expression} before {before}");
        assert!(schedule.matches(previous), "{expression} at {previous}");
    }
}

#[test]
fn a_schedule_matches_its_own_instants_alone() {
    let fixed = schedule("30 2 * * *", "Europe/Berlin");
    for (instant, matches) in [
        ("2026-03-28T01:30", true),
        ("2026-03-28T01:30:00.000000001", false),
        ("2026-03-28T01:29:59.999999999", false),
        // The end of the gap, and half past three.
        ("2026-03-29T01:00", true),
        ("2026-03-29T01:30", false),
        // The first half of the overlap, and the second.
        ("2026-10-25T00:30", true),
        ("2026-10-25T01:30", false),
    ] {
        assert_eq!(fixed.matches(utc(instant)), matches, "{instant}");
    }
    assert!(schedule("*/30 2 * * *", "Europe/Berlin").matches(utc("2026-10-25T01:30")));
}

#[test]
fn wildcards_that_fall_into_gaps_alone_give_none() {
    let schedule = schedule("*/30 2 8-14 3 +SUN", "America/New_York");
    // Until 2006 the clock was put forward in April.
    assert!(schedule.next_after(utc("2000-01-01T00:00")).is_some());
    assert_eq!(schedule.next_after(utc("2026-01-01T00:00")), None);
    let last = schedule.previous_before(utc("2026-01-01T00:00"));
    assert_eq!(last, Some(utc("2006-03-12T07:30")));
    // The search skips 40 of them, like a search forward.
    assert_eq!(schedule.previous_before(utc("2060-01-01T00:00")), None);
}

// The clock was put forward at midnight on the third Sunday of October in each year from 2010 to 2017, and in November of 2018.
#[test]
fn a_wildcard_is_found_after_eight_gaps_in_a_row() {
    let schedule = schedule("*/20 0 15-21 10 +SUN", "America/Sao_Paulo");
    let found = schedule.next_after(utc("2010-01-01T00:00"));
    assert_eq!(found, Some(utc("2018-10-21T03:00")));
    let back = schedule.previous_before(utc("2018-01-01T00:00"));
    assert_eq!(back, Some(utc("2007-10-21T02:40")));
}
