//! Calendars that are replaced, removed, listed, ended, damaged or invalid.

use std::sync::Arc;

use waterwheel_durable::{Calendar, CalendarField, Declared, Durable, Error, Event};

use super::{Clock, Occurrences, declare, hourly, next, started, time, until_next};
use crate::support::*;

#[tokio::test]
async fn a_calendar_is_replaced_and_goes_on_or_anew() {
    let (timers, shelf, clock) = started("2027-07-08T10:30Z").await;
    declare(&timers, "h", hourly()).await;
    shut_down(&timers).await;
    clock.set("2027-07-08T13:30:00Z");
    // Occurrences missed by the old calendar still belong to it.
    let timers = clock.open(&shelf).await;
    let mut seen = Occurrences::of(&timers, "mail");
    let mut post = Occurrences::of(&timers, "post");
    until_next(&timers, "h", "2027-07-08T14:00:00Z").await;
    assert_eq!(seen.next().await, "2027-07-08T13:00:00Z");
    let with_others = hourly().handler("post").bytes(*b"a text");
    let replaced = declare(&timers, "h", with_others).await;
    assert_eq!(replaced, Declared::Replaced);
    assert_eq!(next(&timers, "h").unwrap(), "2027-07-08T14:00:00Z");
    clock.set("2027-07-08T14:00:00Z");
    assert_eq!(post.next().await, "2027-07-08T14:00:00Z");
    // Different times, some of them earlier today: it starts from now.
    let twice = Calendar::cron("0 9,17 * * *").handler("post");
    clock.set("2027-07-08T15:00:01Z");
    assert_eq!(declare(&timers, "h", twice).await, Declared::Replaced);
    until_next(&timers, "h", "2027-07-08T17:00:00Z").await;
    clock.set("2027-07-08T17:00:00Z");
    let mut both = [post.next().await, String::new()];
    if both[0] == "2027-07-08T15:00:00Z" {
        // An occurrence of the old calendar, which came before it was replaced.
        both[1] = post.next().await;
    }
    assert!(both.contains(&"2027-07-08T17:00:00Z".to_owned()));
    assert_eq!(timers.calendars().len(), 1);
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty() && post.rest().await.is_empty());
}

#[tokio::test]
async fn a_removed_calendar_leaves_what_it_has_filed() {
    let (place, clock) = (Place::new(), Clock::at("2027-07-08T10:30Z"));
    let timers = clock.open_file(place.file()).await;
    assert_eq!(within(timers.remove_calendar("h")).await, Ok(false));
    declare(&timers, "h", hourly()).await;
    clock.set("2027-07-08T11:00:00Z");
    until_next(&timers, "h", "2027-07-08T12:00:00Z").await;
    assert_eq!(within(timers.remove_calendar("h")).await, Ok(true));
    assert_eq!(within(timers.remove_calendar("h")).await, Ok(false));
    assert!(timers.calendars().is_empty());
    shut_down(&timers).await;
    clock.set("2027-07-08T13:30:00Z");
    let timers = clock.open_file(place.file()).await;
    assert!(timers.calendars().is_empty());
    let mut seen = Occurrences::of(&timers, "mail");
    assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
    // A newly created calendar has missed nothing.
    assert_eq!(declare(&timers, "h", hourly()).await, Declared::Created);
    clock.set("2027-07-08T14:00:00Z");
    assert_eq!(seen.next().await, "2027-07-08T14:00:00Z");
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_calendar_is_seen_with_its_next_and_last_time() {
    let (timers, _, clock) = started("2027-07-08T10:30Z").await;
    let nightly = Calendar::cron(" 0  3 * * *").zone("europe/berlin");
    declare(&timers, "nightly", nightly).await;
    declare(&timers, "h", hourly()).await;
    clock.set("2027-07-08T11:00:00Z");
    until_next(&timers, "h", "2027-07-08T12:00:00Z").await;
    let all = timers.calendars();
    let names: Vec<_> = all.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["h", "nightly"]);
    let (hourly, nightly) = (&all[0], &all[1]);
    assert_eq!(
        (&*hourly.expression, &*hourly.zone),
        ("0 * * * *", "Europe/Berlin")
    );
    assert_eq!((&*hourly.handler, &*nightly.handler), ("mail", "nightly"));
    assert_eq!(hourly.last, Some(time("2027-07-08T11:00Z")));
    assert_eq!((nightly.last, &*nightly.zone), (None, "Europe/Berlin"));
    assert_eq!(nightly.next, Some(time("2027-07-09T01:00Z")));
    assert_eq!((&hourly.error, &nightly.error), (&None, &None));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_calendar_that_cannot_be_read_stands_still() {
    let (timers, shelf, clock) = started("2027-07-08T10:30Z").await;
    declare(&timers, "h", hourly()).await;
    declare(&timers, "other", hourly()).await;
    shut_down(&timers).await;
    let stored = shelf.setting("calendar/h").unwrap();
    shelf.set(
        "calendar/h",
        &stored.replace("Europe/Berlin", "Europe/Atlantis"),
    );
    let (builder, mut events) = reported(Durable::builder().shifted_clocks(Arc::clone(&clock.0)));
    let timers = within(builder.store(shelf.clone()).open()).await.unwrap();
    let event = within(events.recv()).await.unwrap();
    assert!(
        matches!(&event, Event::UnreadableCalendar { calendar, error, .. } if &**calendar == "h" && error.contains("Europe/Atlantis")),
        "{event:?}"
    );
    let all = timers.calendars();
    assert!(all[0].error.as_ref().is_some_and(|it| it.contains("zone")));
    assert_eq!((all[0].next, &all[1].error), (None, &None));
    // The others continue.
    let mut seen = Occurrences::of(&timers, "mail");
    clock.set("2027-07-08T11:00:00Z");
    assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
    assert_eq!(
        shelf.setting("calendar/h").unwrap(),
        stored.replace("Berlin", "Atlantis")
    );
    // After it is declared again, it works again.
    assert_eq!(declare(&timers, "h", hourly()).await, Declared::Replaced);
    clock.set("2027-07-08T12:00:00Z");
    assert_eq!(seen.take(2).await, ["2027-07-08T12:00:00Z"; 2]);
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_wrong_calendar_is_refused_by_the_part_that_is_wrong() {
    let (timers, _, _) = started("2027-07-08T10:30Z").await;
    for (name, calendar, field) in [
        ("", hourly(), CalendarField::Name),
        ("a\0", hourly(), CalendarField::Name),
        ("c", hourly().zone("Mars/Olympus"), CalendarField::Zone),
    ] {
        let Err(Error::Calendar(error)) = timers.calendar(name, calendar).await else {
            panic!("{field} is wrong");
        };
        assert_eq!(error.field(), field, "{error}");
    }
    assert!(timers.calendars().is_empty());
    shut_down(&timers).await;
    let late = timers.calendar("c", hourly()).await;
    assert_eq!(late, Err(Error::ShuttingDown));
}

#[tokio::test]
async fn a_calendar_ends_with_its_last_time() {
    let (timers, _shelf, clock) = started("2027-07-08T10:30Z").await;
    let mut seen = Occurrences::of(&timers, "mail");
    let short = hourly().until(time("2027-07-08T11:00Z"));
    declare(&timers, "h", short.clone()).await;
    clock.set("2027-07-08T13:30:00Z");
    assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
    until(|| next(&timers, "h").is_none()).await;
    // A service that still declares it can start nevertheless.
    assert_eq!(declare(&timers, "h", short).await, Declared::Unchanged);
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}
