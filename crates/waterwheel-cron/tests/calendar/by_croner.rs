//! Random expressions: in UTC, croner's own search is a second opinion; in zones, each search must have certain properties.

use croner::Cron;
use croner::parser::{CronParser, Year};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use waterwheel_cron::{Schedule, ScheduleError};

use crate::random::{a_zone, expression, instant};

/// Parses with croner, where crontab(5)'s rule for a field that begins with `*` is an option.
fn by_croner(expression: &str) -> Cron {
    let fields: Vec<&str> = expression.split(' ').collect();
    let [.., day, _, weekday] = *fields else {
        panic!("{expression}")
    };
    let parser = CronParser::builder().year(Year::Disallowed);
    let both = day.starts_with('*') || weekday.starts_with('*');
    parser.dom_and_dow(both).build().parse(expression).unwrap()
}

/// Returns `None` if the schedule never runs, as half of the random days do not occur.
fn parse(expression: &str, zone: TimeZone) -> Option<Schedule> {
    match Schedule::parse_in(expression, zone) {
        Ok(schedule) => Some(schedule),
        Err(ScheduleError::Never) => None,
        Err(error) => panic!("{expression}: {error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn in_utc_croner_finds_the_same(expression in expression(), start in instant()) {
        let wall = TimeZone::UTC.to_datetime(start);
        // croner knows the years from 1 to 5000.
        prop_assume!((1..4900).contains(&wall.year()));
        if let Some(schedule) = parse(&expression, TimeZone::UTC) {
            let found = by_croner(&expression).find_next_occurrence(&wall, false).unwrap();
            let found = TimeZone::UTC.to_timestamp(found).unwrap();
            // croner ignores fractions of a second, so it starts at the next whole one.
            prop_assert_eq!(schedule.next_after(start), Some(found));
        }
    }

    #[test]
    fn each_search_finds_a_time_that_matches(expression in expression(), zone in a_zone(), start in instant()) {
        if let Some(found) = parse(&expression, zone.clone()).and_then(|it| it.next_after(start)) {
            prop_assert!(found > start);
            let wall = zone.to_datetime(found);
            prop_assume!((1..=5000).contains(&wall.year()));
            let before = found - SignedDuration::from_nanos(1);
            let ends_a_gap = zone.to_offset(before) < zone.to_offset(found);
            prop_assert!(by_croner(&expression).is_time_matching(&wall).unwrap() || ends_a_gap, "{}", wall);
        }
    }

    #[test]
    fn a_search_back_is_the_opposite_of_one_forward(expression in expression(), zone in a_zone(), start in instant()) {
        if let Some(schedule) = parse(&expression, zone) {
            let (next, previous) = (schedule.next_after(start), schedule.previous_before(start));
            for found in [next, previous].into_iter().flatten() {
                prop_assert!(schedule.matches(found), "{}", found);
            }
            if let Some(next) = next {
                let before = schedule.previous_before(next);
                let is_start = schedule.matches(start);
                prop_assert_eq!(before, if is_start { Some(start) } else { previous }, "before {}", next);
            }
            if let Some(previous) = previous {
                prop_assert!(previous < start, "{}", previous);
                let after = schedule.next_after(previous);
                let is_start = schedule.matches(start);
                prop_assert_eq!(after, if is_start { Some(start) } else { next }, "after {}", previous);
            }
        }
    }

    #[test]
    fn nothing_lies_between_an_instant_and_its_next(
        expression in expression(),
        zone in a_zone(),
        start in instant(),
        part in 0.0..1.0,
    ) {
        if let Some(schedule) = parse(&expression, zone) {
            let mut from = start;
            for _ in 0..4 {
                let Some(next) = schedule.next_after(from) else { break };
                let span = next.as_millisecond() - from.as_millisecond();
                let between = Timestamp::from_millisecond(from.as_millisecond() + (span as f64 * part) as i64).unwrap();
                if from < between && between < next {
                    prop_assert_eq!(schedule.next_after(between), Some(next), "from {} and from {}", from, between);
                }
                from = next;
            }
        }
    }
}
