//! Clocks that change by law, are set, or are wrong, and time zones whose rules have changed.

use waterwheel_durable::{Calendar, Misfire};

use super::{Clock, Occurrences, declare, hourly, started, until_next};
use crate::support::*;

#[tokio::test]
async fn the_clocks_of_berlin_change_and_each_night_has_its_job() {
    for (evening, stops, expected) in [
        (
            "2027-03-27T20:00Z",
            // 2:30 is skipped: it comes at 3:00, which is 1:00 UTC.
            &[
                ("2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"),
                ("2027-03-29T00:30:00Z", "2027-03-30T00:30:00Z"),
            ][..],
            &["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
        ),
        (
            "2027-10-30T20:00Z",
            // 2:30 comes at 0:30 UTC, and again at 1:30.
            &[
                ("2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"),
                ("2027-10-31T01:30:00Z", "2027-11-01T01:30:00Z"),
                ("2027-11-01T01:30:00Z", "2027-11-02T01:30:00Z"),
            ],
            &["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"],
        ),
    ] {
        for restarts in [false, true] {
            let (place, clock) = (Place::new(), Clock::at(evening));
            let mut timers = clock.open_file(place.file()).await;
            let nightly = Calendar::cron("30 2 * * *").zone("Europe/Berlin");
            declare(&timers, "n", nightly).await;
            let mut seen = Vec::new();
            for (now, next) in stops {
                if restarts {
                    shut_down(&timers).await;
                    clock.set(now);
                    timers = clock.open_file(place.file()).await;
                } else {
                    clock.set(now);
                }
                until_next(&timers, "n", next).await;
            }
            let mut night = Occurrences::of(&timers, "n");
            seen.extend(night.take(expected.len()).await);
            until(|| timers.metrics().in_memory == 0).await;
            shut_down(&timers).await;
            seen.extend(night.rest().await);
            seen.sort();
            assert_eq!(seen, expected);
        }
    }
}

#[tokio::test]
async fn a_wrong_clock_at_the_first_start_is_forgotten() {
    for wrong in ["1970-01-01T00:30Z", "2100-01-01T00:30Z"] {
        for restarts in [false, true] {
            let (mut timers, shelf, clock) = started(wrong).await;
            let all = hourly().misfire(Misfire::CatchUpTo(10));
            declare(&timers, "h", all).await;
            if restarts {
                shut_down(&timers).await;
            }
            clock.set("2027-07-08T10:30Z");
            if restarts {
                timers = clock.open(&shelf).await;
            }
            until_next(&timers, "h", "2027-07-08T11:00:00Z").await;
            let mut seen = Occurrences::of(&timers, "mail");
            clock.set("2027-07-08T11:00:00Z");
            assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
            until_next(&timers, "h", "2027-07-08T12:00:00Z").await;
            until(|| timers.metrics().in_memory == 0).await;
            shut_down(&timers).await;
            assert!(seen.rest().await.is_empty(), "{wrong}");
        }
    }
}

#[tokio::test]
async fn new_rules_of_a_zone_bring_no_time_of_the_wall_twice() {
    let (timers, shelf, clock) = started("2027-07-08T10:20Z").await;
    let calendar = Calendar::cron("30 * * * *")
        .zone("Europe/Berlin")
        .handler("mail");
    declare(&timers, "h", calendar).await;
    clock.set("2027-07-08T10:30:00Z");
    until_next(&timers, "h", "2027-07-08T11:30:00Z").await;
    shut_down(&timers).await;
    // As written under an earlier time zone database, in which Berlin was an hour further ahead: 13:30 instead of 12:30.
    let stored = shelf.setting("calendar/h").unwrap();
    let civil = 1_815_049_800_000_i64;
    let mut parts: Vec<_> = stored.split(',').map(str::to_owned).collect();
    for part in &mut parts {
        if part.starts_with("\"civil\"") {
            assert_eq!(*part, format!("\"civil\":{civil}"));
            *part = format!("\"civil\":{}", civil + 3_600_000);
        } else if part.starts_with("\"rules\"") {
            *part = "\"rules\":1".to_owned();
        }
    }
    shelf.set("calendar/h", &parts.join(","));
    let timers = clock.open(&shelf).await;
    let mut seen = Occurrences::of(&timers, "mail");
    assert_eq!(seen.next().await, "2027-07-08T10:30:00Z");
    // 13:30 has already passed, by the old rules.
    until_next(&timers, "h", "2027-07-08T12:30:00Z").await;
    clock.set("2027-07-08T12:30:00Z");
    assert_eq!(seen.next().await, "2027-07-08T12:30:00Z");
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}
