//! Schedules as values: small, shared, comparable, printable.

use std::panic::{RefUnwindSafe, UnwindSafe};

use jiff::tz::TimeZone;
use waterwheel_cron::{Field, Schedule, ScheduleError, ScheduleOptions, Upcoming};

use crate::support::{schedule, utc, zone};

#[test]
fn the_types_are_send_sync_and_unpin() {
    fn all<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
    all::<Schedule>();
    all::<Upcoming>();
    all::<ScheduleOptions>();
    all::<ScheduleError>();
    all::<Field>();
}

#[test]
fn a_schedule_is_one_pointer() {
    assert_eq!(size_of::<Schedule>(), size_of::<usize>());
    assert_eq!(size_of::<Option<Schedule>>(), size_of::<usize>());
    assert!(size_of::<ScheduleError>() <= 48);
}

#[test]
fn display_gives_the_expression_as_it_was_written() {
    for expression in ["0 9 * * Tue", "@daily", "0  9\t* * ?"] {
        let schedule = schedule(&format!(" {expression}\n"), "Europe/Berlin");
        assert_eq!(schedule.to_string(), expression);
        assert_eq!(schedule.expression(), expression);
    }
    assert_eq!(format!("{:>8}", schedule("@daily", "UTC")), "  @daily");
}

#[test]
fn debug_gives_the_expression_and_the_zone() {
    let text = format!("{:?}", schedule("0 9 * * TUE", "Europe/Berlin"));
    assert!(
        text.contains("0 9 * * TUE") && text.contains("Europe/Berlin"),
        "{text}"
    );
}

#[test]
fn schedules_are_equal_by_what_they_mean() {
    let one = schedule("@daily", "Europe/Berlin");
    assert_eq!(one, one.clone());
    assert_eq!(one, schedule("0 0 0 * * *", "Europe/Berlin"));
    assert_ne!(one, schedule("@daily", "Europe/Paris"));
    assert_ne!(one, schedule("0 1 * * *", "Europe/Berlin"));
    assert_ne!(one, schedule("0 0 * * MON", "Europe/Berlin"));
    // The times of day are the same, but the policy differs.
    assert_ne!(
        schedule("0-59 2 * * *", "UTC"),
        schedule("* 2 * * *", "UTC")
    );
}

#[test]
fn the_zone_is_the_one_that_was_given() {
    assert_eq!(
        *schedule("@daily", "Europe/Berlin").zone(),
        zone("Europe/Berlin")
    );
    assert_eq!(schedule("@daily", "UTC").zone().iana_name(), Some("UTC"));
    assert_eq!(
        *Schedule::parse("@daily", "UTC").unwrap().zone(),
        TimeZone::UTC
    );
}

#[test]
fn upcoming_ends_and_stays_ended() {
    let schedule = crate::support::with_years("0 0 0 1 1 * 2027", "UTC");
    let mut upcoming = schedule.upcoming(utc("2026-01-01T00:00"));
    assert_eq!(upcoming.next(), Some(utc("2027-01-01T00:00")));
    assert_eq!(upcoming.next(), None);
    assert_eq!(upcoming.next(), None);
}

// The ends of the calendar, and of the listed years.
#[test]
fn a_search_back_ends_before_the_first_instant() {
    use jiff::Timestamp;
    let every_second = schedule("* * * * * *", "Europe/Berlin");
    assert_eq!(every_second.previous_before(Timestamp::MIN), None);
    assert!(!every_second.matches(Timestamp::MIN));
    let last = every_second.previous_before(Timestamp::MAX);
    assert!(last.is_some_and(|last| every_second.next_after(last).is_none()));
    let listed = crate::support::with_years("0 0 0 1 1 * 2027,2030", "UTC");
    let found = |before| listed.previous_before(utc(before));
    assert_eq!(found("2100-01-01T00:00"), Some(utc("2030-01-01T00:00")));
    assert_eq!(found("2030-01-01T00:00"), Some(utc("2027-01-01T00:00")));
    assert_eq!(found("2027-01-01T00:00"), None);
}

#[test]
fn an_error_says_what_to_do() {
    let error = Schedule::parse("60 * * * *", "UTC").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the minute \"60\" is invalid: a minute must be 0-59, as in `30`, `0,30`, `10-20`, `*/15` or `*`"
    );
    let source: &dyn std::error::Error = &error;
    assert!(source.source().is_none());
}
