//! Changes of the clock, forward and back, case by case as the docs list them. 2026: Berlin's clock goes from 2:00 to 3:00 on
//! 29 March, and from 3:00 to 2:00 on 25 October.

use crate::support::{on_the_wall, runs, schedule, utc};

const SPRING: &str = "2026-03-28";
const AUTUMN: &str = "2026-10-25";

#[test]
fn a_fixed_time_in_a_gap_runs_at_its_end() {
    let found = runs("30 2 * * *", "Europe/Berlin", SPRING, 3);
    assert_eq!(
        found,
        [
            "03-28 02:30:00 +01:00",
            "03-29 03:00:00 +02:00",
            "03-30 02:30:00 +02:00"
        ]
    );
}

#[test]
fn fixed_times_in_one_gap_run_once() {
    let found = runs("0,30 2 * * *", "Europe/Berlin", "2026-03-29", 2);
    assert_eq!(found, ["03-29 03:00:00 +02:00", "03-30 02:00:00 +02:00"]);
    let found = runs("*/20 15,45 2 * * *", "Europe/Berlin", "2026-03-29", 2);
    assert_eq!(found, ["03-29 03:00:00 +02:00", "03-30 02:15:00 +02:00"]);
}

#[test]
fn a_gaps_end_that_is_a_fixed_time_runs_once() {
    let found = runs("0,30 2-3 * * *", "Europe/Berlin", "2026-03-29", 3);
    assert_eq!(
        found,
        [
            "03-29 03:00:00 +02:00",
            "03-29 03:30:00 +02:00",
            "03-30 02:00:00 +02:00"
        ]
    );
}

#[test]
fn a_fixed_time_in_an_overlap_runs_the_first_time() {
    let found = runs("30 2 * * *", "Europe/Berlin", AUTUMN, 2);
    assert_eq!(found, ["10-25 02:30:00 +02:00", "10-26 02:30:00 +01:00"]);
    let found = runs("0,30 2 * * *", "Europe/Berlin", AUTUMN, 3);
    assert_eq!(
        found,
        [
            "10-25 02:00:00 +02:00",
            "10-25 02:30:00 +02:00",
            "10-26 02:00:00 +01:00"
        ]
    );
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
fn a_wildcard_does_not_run_in_a_gap() {
    let found = runs("*/30 2 * * *", "Europe/Berlin", "2026-03-29", 1);
    assert_eq!(found, ["03-30 02:00:00 +02:00"]);
    let found = runs("*/30 1-3 * * *", "Europe/Berlin", "2026-03-29", 4);
    assert_eq!(
        found,
        [
            "03-29 01:00:00 +01:00",
            "03-29 01:30:00 +01:00",
            "03-29 03:00:00 +02:00",
            "03-29 03:30:00 +02:00"
        ]
    );
}

#[test]
fn a_wildcard_runs_in_both_halves_of_an_overlap() {
    let found = runs("*/30 2 * * *", "Europe/Berlin", AUTUMN, 5);
    assert_eq!(
        found,
        [
            "10-25 02:00:00 +02:00",
            "10-25 02:30:00 +02:00",
            "10-25 02:00:00 +01:00",
            "10-25 02:30:00 +01:00",
            "10-26 02:00:00 +01:00"
        ]
    );
}

#[test]
fn the_last_wildcard_of_all_runs_in_the_second_half_too() {
    let schedule = crate::support::with_years("0 */15 2 25 10 * 2026", "Europe/Berlin");
    let found = schedule.upcoming(utc("2026-10-25T00:40"));
    assert_eq!(found.count(), 5);
}

#[test]
fn every_15_minutes_is_15_minutes_through_a_change() {
    for day in ["2026-03-29", AUTUMN] {
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
fn a_range_of_hours_is_fixed_and_a_step_is_not() {
    let found = runs("30 2-4 * * *", "Europe/Berlin", "2026-03-29", 4);
    assert_eq!(
        found,
        [
            "03-29 03:00:00 +02:00",
            "03-29 03:30:00 +02:00",
            "03-29 04:30:00 +02:00",
            "03-30 02:30:00 +02:00"
        ]
    );
    let found = runs("30 2-4/1 * * *", "Europe/Berlin", "2026-03-29", 1);
    assert_eq!(found, ["03-29 03:30:00 +02:00"]);
}

#[test]
fn a_day_without_midnight_begins_at_1() {
    let found = runs("@daily", "America/Santiago", "2026-09-05", 2);
    assert_eq!(found, ["09-06 01:00:00 -03:00", "09-07 00:00:00 -03:00"]);
    let found = runs("*/20 0 * * *", "America/Sao_Paulo", "2018-11-03", 5);
    assert_eq!(
        found[2..],
        [
            "11-05 00:00:00 -02:00",
            "11-05 00:20:00 -02:00",
            "11-05 00:40:00 -02:00"
        ]
    );
}

#[test]
fn a_midnight_that_comes_twice_runs_once() {
    // On 4 April, 24:00 is put back to 23:00: the day has no second midnight, and its last hour comes twice.
    let found = runs("0 0,23 * * *", "America/Santiago", "2026-04-04", 3);
    assert_eq!(
        found,
        [
            "04-04 23:00:00 -03:00",
            "04-05 00:00:00 -04:00",
            "04-05 23:00:00 -04:00"
        ]
    );
}

#[test]
fn a_gap_of_half_an_hour_is_no_longer_than_that() {
    let found = runs("10,40 2 * * *", "Australia/Lord_Howe", "2026-10-04", 3);
    assert_eq!(
        found,
        [
            "10-04 02:30:00 +11:00",
            "10-04 02:40:00 +11:00",
            "10-05 02:10:00 +11:00"
        ]
    );
}

#[test]
fn a_gap_across_midnight_ends_on_the_next_day() {
    // Nuuk's clock goes from 23:00 on 30 March 2024, a Saturday, to 0:00.
    let found = runs("30 23 * * SAT", "America/Nuuk", "2024-03-29", 2);
    assert_eq!(found, ["03-31 00:00:00 -01:00", "04-06 23:30:00 -01:00"]);
}

#[test]
fn a_day_that_a_zone_leaves_out_runs_at_its_end() {
    let found = runs("0 9 30 * *", "Pacific/Apia", "2011-12-01", 2);
    assert_eq!(found, ["12-31 00:00:00 +14:00", "01-30 09:00:00 +14:00"]);
    let found = runs("* * * * *", "Pacific/Apia", "2011-12-29", 24 * 60);
    assert_eq!(found.last().unwrap(), "12-31 00:00:00 +14:00");
}

// Before a change, in it, and after it: what ran last.
#[test]
fn the_previous_time_is_the_one_that_ran_last() {
    for (expression, before, previous) in [
        // A fixed time in a gap ran at its end, and did not yet at that instant itself.
        ("30 2 * * *", "2026-03-29T01:00", "2026-03-28T01:30"),
        ("30 2 * * *", "2026-03-29T01:00:01", "2026-03-29T01:00"),
        // A wildcard did not run in it.
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
    // It looks at 40 of them, as a search forward does.
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
