//! A service that is off, ends in the middle, or starts twice at once.

use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Calendar, Declared, Durable, Misfire};

use super::{Clock, Occurrences, declare, hourly, next, until_next};
use crate::support::{Fault, Place, Shelf, shut_down, until, within};

on_both_flavors! {
    each_occurrence_is_delivered_once_and_not_early
    of_two_starts_at_once_one_has_the_calendar
}

async fn each_occurrence_is_delivered_once_and_not_early() {
    let place = Place::new();
    let timers = place.open().await;
    let (sender, mut seen) = mpsc::unbounded_channel();
    timers.handle("tick", move |delivery| {
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
        // The machine may be slow. It is no minute slow, so each second comes.
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
    // Off over an occurrence, and on again in time.
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
    // The commit is done, and its reply is lost with the process; or it is not done.
    for fault in [Fault::Fails, Fault::Panics] {
        let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
        let timers = clock.open(&shelf).await;
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
        ("one", Misfire::All(1), &["2027-07-08"]),
        ("two", Misfire::All(2), &["2027-07-07", "2027-07-08"]),
        (
            "all",
            Misfire::All(100),
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
    // The next one is each calendar's again.
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
    let (place, clock) = (Place::new(), Clock::at("2027-07-08T10:30Z"));
    let timers = clock.open_file(place.file()).await;
    // Another start on the file is refused, so there is one that files.
    let other = Durable::open(place.file()).await;
    assert!(other.is_err_and(|it| it.is_held()));
    // A hundred parts of the service declare it.
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let timers = timers.clone();
        tasks.spawn(async move { timers.calendar("h", hourly()).await.unwrap() });
    }
    let all = within(tasks.join_all()).await;
    let created = all.iter().filter(|it| **it == Declared::Created).count();
    let unchanged = all.iter().filter(|it| **it == Declared::Unchanged).count();
    assert_eq!((created, unchanged), (1, 99));
    assert_eq!(timers.calendars().len(), 1);
    let mut seen = Occurrences::of(&timers, "mail");
    clock.set("2027-07-08T11:00:00Z");
    assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
    until_next(&timers, "h", "2027-07-08T12:00:00Z").await;
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_store_that_refuses_for_hours_is_a_misfire() {
    for (misfire, expected) in [
        (Misfire::Once, &["2027-07-08T14:00:00Z"][..]),
        (
            Misfire::All(2),
            &["2027-07-08T13:00:00Z", "2027-07-08T14:00:00Z"],
        ),
        (Misfire::Skip, &[]),
    ] {
        let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
        let timers = clock.open(&shelf).await;
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
