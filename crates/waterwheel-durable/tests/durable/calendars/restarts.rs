//! A service that is off, ends in the middle of its work, or is started twice at once.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Calendar, Declared, Durable, HandlerOptions, Misfire, OpenError, Sqlite};

use super::{Clock, Occurrences, declare, hourly, next, started, text, time, until_next};
use crate::support::*;

on_both_flavors! {
    each_occurrence_is_delivered_once_and_not_early
    of_two_starts_at_once_one_has_the_calendar
}

async fn each_occurrence_is_delivered_once_and_not_early() {
    let (_place, timers) = on_file().await;
    let (sender, mut seen) = mpsc::unbounded_channel();
    // One at a time, because two are due at once after a stall.
    let one = HandlerOptions::default().concurrency(1);
    timers.handle_with("tick", one, move |delivery| {
        let payload: String = delivery.json().unwrap();
        let now = SystemTime::now();
        let _ = sender.send((delivery.occurrence(), delivery.due(), payload, now));
        async { Ok(()) }
    });
    let calendar = Calendar::cron("* * * * * *").payload("a second");
    assert_eq!(declare(&timers, "tick", calendar).await, Declared::Created);
    let mut last = None;
    for _ in 0..3 {
        let (occurrence, due, payload, now) = within(seen.recv()).await.unwrap();
        assert_eq!((occurrence, payload.as_str()), (Some(due), "a second"));
        assert!(due <= now);
        // The machine may be slow, but not by a minute, so each second comes.
        let follows = last.is_none_or(|last| due == last + Duration::from_secs(1));
        assert!(follows, "{last:?} {due:?}");
        last = Some(due);
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_restart_in_the_middle_loses_and_doubles_nothing() {
    let (place, clock) = (Place::new(), Clock::at("2027-07-08T10:30Z"));
    let timers = clock.open_file(place.file()).await;
    let mut seen = Occurrences::of(&timers, "mail");
    assert_eq!(declare(&timers, "h", hourly()).await, Declared::Created);
    assert_eq!(next(&timers, "h").unwrap(), "2027-07-08T11:00:00Z");
    clock.set("2027-07-08T11:00:01Z");
    assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
    // Off during an occurrence, and on again in time.
    clock.set("2027-07-08T12:00:30Z");
    let timers = clock.open_file(place.file()).await;
    let mut seen = Occurrences::of(&timers, "mail");
    assert_eq!(seen.next().await, "2027-07-08T12:00:00Z");
    assert_eq!(declare(&timers, "h", hourly()).await, Declared::Unchanged);
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
    clock.set("2027-07-08T12:30:00Z");
    let timers = clock.open_file(place.file()).await;
    let mut seen = Occurrences::of(&timers, "mail");
    until_next(&timers, "h", "2027-07-08T13:00:00Z").await;
    clock.set("2027-07-08T13:00:00Z");
    assert_eq!(seen.next().await, "2027-07-08T13:00:00Z");
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_crash_about_the_commit_leaves_each_occurrence_once() {
    // Either the commit is done and its reply is lost with the process, or it is not done.
    for fault in [Fault::Fails, Fault::Panics] {
        let (timers, shelf, clock) = started("2027-07-08T10:30Z").await;
        declare(&timers, "h", hourly()).await;
        shelf.fault(Some(fault));
        clock.set("2027-07-08T11:00:00Z");
        until(|| timers.metrics().has_failed).await;
        drop(timers);
        shelf.fault(None);
        let timers = clock.open(&shelf).await;
        let mut seen = Occurrences::of(&timers, "mail");
        assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
        until_next(&timers, "h", "2027-07-08T12:00:00Z").await;
        until(|| timers.metrics().in_memory == 0).await;
        shut_down(&timers).await;
        assert!(seen.rest().await.is_empty(), "{fault:?}");
        assert_eq!(shelf.len(), 0);
    }
}

#[tokio::test]
async fn after_days_off_each_policy_has_its_share() {
    let (place, clock) = (Place::new(), Clock::at("2027-07-05T12:00Z"));
    let policies = [
        ("once", Misfire::Once, &["2027-07-08"][..]),
        ("one", Misfire::CatchUpTo(1), &["2027-07-08"]),
        ("two", Misfire::CatchUpTo(2), &["2027-07-07", "2027-07-08"]),
        (
            "all",
            Misfire::CatchUpTo(100),
            &["2027-07-06", "2027-07-07", "2027-07-08"],
        ),
        ("none", Misfire::Skip, &[]),
    ];
    let timers = clock.open_file(place.file()).await;
    for (name, misfire, _) in policies {
        let nightly = Calendar::cron("0 3 * * *").zone("Europe/Berlin");
        declare(&timers, name, nightly.misfire(misfire)).await;
    }
    shut_down(&timers).await;
    clock.set("2027-07-08T12:00Z");
    let timers = clock.open_file(place.file()).await;
    let seen = policies.map(|(name, ..)| Occurrences::of(&timers, name));
    for (name, ..) in policies {
        until_next(&timers, name, "2027-07-09T01:00:00Z").await;
    }
    let share: u64 = policies.iter().map(|(.., days)| days.len() as u64).sum();
    until(|| timers.metrics().namespaces[0].settled == share).await;
    // The next occurrence belongs to its own calendar again.
    clock.set("2027-07-09T01:00:00Z");
    for (name, ..) in policies {
        until_next(&timers, name, "2027-07-10T01:00:00Z").await;
    }
    let share = share + policies.len() as u64;
    until(|| timers.metrics().namespaces[0].settled == share).await;
    shut_down(&timers).await;
    for (seen, (name, _, days)) in seen.into_iter().zip(policies) {
        let days = days.iter().chain(&["2027-07-09"]);
        let expected: Vec<_> = days.map(|day| format!("{day}T01:00:00Z")).collect();
        assert_eq!(seen.rest().await, expected, "{name}");
    }
}

async fn of_two_starts_at_once_one_has_the_calendar() {
    const FILES: usize = 8;
    for _ in 0..FILES {
        let place = Place::new();
        let mut hour = time("2027-07-08T11:00:00Z");
        let clock = Clock::at("2027-07-08T10:30:00Z");
        let mut delivered = Vec::new();
        // The first two find no file, and the others find one that a service has left.
        for _ in 0..4 {
            let [one, other] = [&clock, &clock].map(|clock| tokio::spawn(start(clock, &place)));
            let both = (within(one).await.unwrap(), within(other).await.unwrap());
            let (timers, refused) = match both {
                (Ok(timers), Err(refused)) | (Err(refused), Ok(timers)) => (timers, refused),
                (Ok(_), Ok(_)) => panic!("two services have one file"),
                (Err(one), Err(other)) => panic!("no service has the file: {one}; {other}"),
            };
            assert!(refused.is_held(), "{refused}");
            // The other service keeps trying until this one has ended.
            let next = tokio::spawn(start_until_free(&clock, &place));
            delivered.extend(has_an_hour(timers, &clock, hour).await);
            hour += HOUR;
            let timers = within(next).await.unwrap();
            delivered.extend(has_an_hour(timers, &clock, hour).await);
            hour += HOUR;
        }
        let first = time("2027-07-08T11:00:00Z");
        let expected = (0..8).map(|hours| text(first + HOUR * hours));
        assert_eq!(delivered, expected.collect::<Vec<_>>());
    }
}

/// Starts a service once, in its own task.
fn start(
    clock: &Clock,
    place: &Place,
) -> impl Future<Output = Result<Durable, OpenError>> + Send + use<> {
    let builder = Durable::builder().shifted_clocks(Arc::clone(&clock.0));
    let file = place.file();
    async move { builder.store(Sqlite::new(file)).open().await }
}

/// Tries to start a service until the file is free.
fn start_until_free(clock: &Clock, place: &Place) -> impl Future<Output = Durable> + Send + use<> {
    let (clock, file) = (Arc::clone(&clock.0), place.file());
    async move {
        loop {
            let builder = Durable::builder().shifted_clocks(Arc::clone(&clock));
            match builder.store(Sqlite::new(&file)).open().await {
                Ok(timers) => return timers,
                Err(error) => assert!(error.is_held(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A hundred parts of a service declare the calendar, and it fires once. Returns what was delivered until the service has ended.
async fn has_an_hour(timers: Durable, clock: &Clock, hour: SystemTime) -> Vec<String> {
    let was_there = !timers.calendars().is_empty();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let timers = timers.clone();
        tasks.spawn(async move { timers.calendar("h", hourly()).await.unwrap() });
    }
    let all = within(tasks.join_all()).await;
    let created = all.iter().filter(|it| **it == Declared::Created).count();
    let unchanged = all.iter().filter(|it| **it == Declared::Unchanged).count();
    let expected = if was_there { (0, 100) } else { (1, 99) };
    assert_eq!((created, unchanged), expected);
    assert_eq!(timers.calendars().len(), 1);
    let mut seen = Occurrences::of(&timers, "mail");
    until_next(&timers, "h", &text(hour)).await;
    clock.set(&text(hour));
    let mut delivered = vec![seen.next().await];
    until_next(&timers, "h", &text(hour + HOUR)).await;
    shut_down(&timers).await;
    drop(timers);
    delivered.extend(seen.rest().await);
    delivered
}

#[tokio::test]
async fn a_store_that_refuses_for_hours_is_a_misfire() {
    for (misfire, expected) in [
        (Misfire::Once, &["2027-07-08T14:00:00Z"][..]),
        (
            Misfire::CatchUpTo(2),
            &["2027-07-08T13:00:00Z", "2027-07-08T14:00:00Z"],
        ),
        (Misfire::Skip, &[]),
    ] {
        let (timers, shelf, clock) = started("2027-07-08T10:30Z").await;
        let mut seen = Occurrences::of(&timers, "mail");
        declare(&timers, "h", hourly().misfire(misfire)).await;
        shelf.fault(Some(Fault::Refuses));
        for hour in 11..15 {
            let before = timers.metrics().refusals;
            clock.set(&format!("2027-07-08T{hour}:00:00Z"));
            until(|| timers.metrics().refusals > before + 1).await;
        }
        clock.set("2027-07-08T14:30:00Z");
        let before = timers.metrics().refusals;
        until(|| timers.metrics().refusals > before + 1).await;
        shelf.fault(None);
        until_next(&timers, "h", "2027-07-08T15:00:00Z").await;
        assert_eq!(seen.take(expected.len()).await, expected);
        shut_down(&timers).await;
        assert!(seen.rest().await.is_empty());
    }
}
