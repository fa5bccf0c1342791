//! The syntax of expressions: names, nicknames, lists, steps, seconds and years.

use waterwheel_cron::ScheduleOptions;

use crate::support::{schedule, utc, with_years};

/// Expects that both have the same times, from now on and in some years.
#[track_caller]
fn same(one: &str, other: &str) {
    let (one, other) = (
        schedule(one, "Europe/Berlin"),
        schedule(other, "Europe/Berlin"),
    );
    assert_eq!(one, other);
    let start = utc("2026-02-20T10:00");
    let many = |it: &waterwheel_cron::Schedule| it.upcoming(start).take(100).collect::<Vec<_>>();
    assert_eq!(many(&one), many(&other), "{one} and {other}");
}

#[test]
fn expressions_with_one_meaning_are_equal() {
    for (one, other) in [
        // Names are numbers, in either case.
        ("0 0 * JAN,feb-Apr MON-fri", "0 0 * 1,2-4 1-5"),
        ("0 0 * * sun#2", "0 0 * * 0#2"),
        ("0 0 * * FRIL", "0 0 * * 5#L"),
        ("0 0 * * 5l", "0 0 * * FRI#L"),
        ("0 0 lw * *", "0 0 LW * *"),
        // Sunday is 0 and 7, and ends a range.
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * SAT-SUN", "0 0 * * 6,0"),
        ("0 0 * * SUN-MON", "0 0 * * 0,1"),
        // A question mark means the same as a star.
        ("0 0 ? * MON", "0 0 * * MON"),
        ("0 0 1 * ?", "0 0 1 * *"),
        // Blanks of all kinds separate fields, and zeros may lead.
        ("  0\t9  * *\nTUE ", "0 9 * * TUE"),
        ("05 09 01 02 *", "5 9 1 2 *"),
        // Nicknames.
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        (" @hourly ", "0 * * * *"),
    ] {
        same(one, other);
    }
}

// These once matched every day.
#[test]
fn a_range_from_sunday_to_sunday_is_sunday() {
    for range in ["SUN-SUN", "sun-sun", "0-SUN", "7-SUN", "SUN-0", "SUN-7"] {
        same(&format!("0 0 * * {range}"), "0 0 * * SUN");
        same(&format!("0 0 1 * +{range}"), "0 0 1 * +SUN");
        same(&format!("0 0 * * WED,{range},MON"), "0 0 * * 0,1,3");
    }
    // With numbers, it is the whole week, as in cron.
    same("0 0 * * 0-7", "0 0 * * 0-6");
    same("0 0 * * MON-SUN", "0 0 * * 0-6");
}

#[test]
fn a_step_as_large_as_its_field_is_read_where_it_is_allowed() {
    let options = ScheduleOptions::new().wide_steps(true);
    for (wide, plain) in [
        ("*/60 * * * *", "0 * * * *"),
        ("10-50/60 * * * *", "10 * * * *"),
        ("0 */24 * * *", "0 0 * * *"),
        ("0 0 */31 * *", "0 0 1 * *"),
        ("0 0 1 */12 *", "0 0 1 1 *"),
        ("0 0 * * */7", "0 0 * * 0"),
    ] {
        let wide = options.parse(wide, "UTC").unwrap();
        let (wide, plain) = (
            wide.upcoming(utc("2026-02-20T10:00")),
            schedule(plain, "UTC"),
        );
        let plain = plain.upcoming(utc("2026-02-20T10:00"));
        assert!(wide.take(30).eq(plain.take(30)));
    }
    // Everything else is as strict as before.
    assert!(options.parse("*/0 * * * *", "UTC").is_err());
    assert!(options.parse("61 * * * *", "UTC").is_err());
}

#[test]
fn six_fields_begin_with_the_second() {
    let schedule = schedule("*/30 59 23 * * *", "UTC");
    let found: Vec<_> = schedule.upcoming(utc("2026-12-31T23:59")).take(2).collect();
    assert_eq!(found, [utc("2026-12-31T23:59:30"), utc("2027-01-01T23:59")]);
}

#[test]
fn an_instant_is_never_its_own_next() {
    let schedule = schedule("0 * * * * *", "Europe/Berlin");
    let minute = utc("2026-01-01T00:01");
    assert_eq!(
        schedule.next_after(utc("2026-01-01T00:00:59.999999999")),
        Some(minute)
    );
    assert_eq!(schedule.next_after(minute), Some(utc("2026-01-01T00:02")));
    assert_eq!(
        schedule.next_after(utc("2026-01-01T00:01:00.000000001")),
        Some(utc("2026-01-01T00:02"))
    );
}

#[test]
fn listed_years_end() {
    let schedule = with_years("0 0 12 29 2 ? 2020-2030", "UTC");
    let found: Vec<_> = schedule.upcoming(utc("2021-01-01T00:00")).collect();
    assert_eq!(found, [utc("2024-02-29T12:00"), utc("2028-02-29T12:00")]);
    assert_eq!(schedule.next_after(utc("2028-02-29T12:00")), None);
}

#[test]
fn with_years_five_and_six_fields_are_read_too() {
    for expression in ["0 9 * * TUE", "0 0 9 * * TUE", "0 0 9 * * TUE *", "@hourly"] {
        let schedule = with_years(expression, "UTC");
        assert!(
            schedule.next_after(utc("9000-01-01T00:00")).is_some(),
            "{expression}"
        );
    }
}

#[test]
fn the_end_of_the_calendar_is_the_end() {
    use jiff::Timestamp;
    for zone in ["UTC", "America/New_York", "Pacific/Apia"] {
        for expression in ["* * * * * *", "0 9 * * TUE", "0 0 29 2 +MON"] {
            let schedule = schedule(expression, zone);
            assert_eq!(schedule.next_after(Timestamp::MAX), None);
            let first = schedule.next_after(Timestamp::MIN).unwrap();
            assert!(first > Timestamp::MIN);
        }
    }
}

#[test]
fn the_zone_decides_which_instant_it_is() {
    let start = utc("2026-01-01T00:00");
    for (zone, first) in [
        ("UTC", "2026-01-01T09:00"),
        ("Asia/Kolkata", "2026-01-01T03:30"),
        ("America/New_York", "2026-01-01T14:00"),
    ] {
        assert_eq!(
            schedule("0 9 * * *", zone).next_after(start),
            Some(utc(first)),
            "{zone}"
        );
    }
}
