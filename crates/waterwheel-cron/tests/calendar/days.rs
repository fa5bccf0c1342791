//! The days of expressions, compared to the oracle and checked by hand.

use crate::oracle::ORACLE;
use crate::support::{schedule, utc};

#[test]
fn the_days_of_23_years_are_the_oracles() {
    let (first, end) = (utc("2015-01-01T00:00"), utc("2038-01-01T00:00"));
    assert!(ORACLE.days.len() > 12);
    for (expression, days) in &ORACLE.days {
        let schedule = schedule(expression, "UTC");
        let found = schedule.upcoming(first).take_while(|it| *it < end);
        let found: Vec<i64> = found
            .map(|it| (it.as_second() - first.as_second()) / 86_400)
            .collect();
        assert_eq!(found, *days, "{expression}");
        let back = std::iter::successors(Some(end), |it| schedule.previous_before(*it));
        let back = back.skip(1).take_while(|it| *it >= first);
        let mut back: Vec<i64> = back
            .map(|it| (it.as_second() - first.as_second()) / 86_400)
            .collect();
        back.reverse();
        assert_eq!(back, *days, "back: {expression}");
        assert!(!days.is_empty(), "{expression}");
    }
}

#[test]
fn a_weekday_of_29_february_comes_across_2100() {
    let schedule = schedule("0 0 29 2 +SUN", "UTC");
    let found = schedule.next_after(utc("2088-03-01T00:00")).unwrap();
    assert_eq!(found, utc("2128-02-29T00:00"));
    let back = schedule.previous_before(found);
    assert_eq!(back, Some(utc("2088-02-29T00:00")));
}

// Among the years from 2001 to 2028, only 2028 has a 29 February on a Tuesday.
#[test]
fn each_weekday_has_a_29_february() {
    for (weekday, next) in [
        ("SUN", "2032-02-29T00:00"),
        ("MON", "2044-02-29T00:00"),
        ("TUE", "2028-02-29T00:00"),
        ("WED", "2040-02-29T00:00"),
        ("THU", "2052-02-29T00:00"),
        ("FRI", "2036-02-29T00:00"),
        ("SAT", "2048-02-29T00:00"),
    ] {
        let schedule = schedule(&format!("0 0 29 2 +{weekday}"), "UTC");
        let found = schedule.next_after(utc("2025-01-01T00:00"));
        assert_eq!(found, Some(utc(next)), "{weekday}");
    }
}
