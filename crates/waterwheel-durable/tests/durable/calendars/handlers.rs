//! The handlers of occurrences, and the things that they may delay.

use std::sync::Arc;

use tokio::sync::mpsc;
use waterwheel_durable::{
    Calendar, CalendarField, CalendarInfo, Dead, Durable, Error, Policy, Redriven, Retry,
};

use super::{Clock, Occurrences, declare, hourly, started, text, time, until_next};
use crate::support::*;

#[tokio::test]
async fn a_handler_that_fails_holds_up_no_later_occurrence() {
    let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
    let timers = Durable::builder().retry_delays([HOUR * 48, HOUR * 48]);
    let timers = timers.shifted_clocks(Arc::clone(&clock.0));
    let timers = within(timers.store(shelf.clone()).open()).await.unwrap();
    let (sender, mut seen) = mpsc::unbounded_channel();
    timers.handle("mail", move |delivery| {
        let occurrence = delivery.occurrence().unwrap();
        let _ = sender.send((
            text(occurrence),
            delivery.attempt(),
            delivery.due() == occurrence,
        ));
        async { Err(Retry::backoff("no")) }
    });
    declare(&timers, "h", hourly()).await;
    for hour in 11..15 {
        let now = format!("2027-07-08T{hour}:00:00Z");
        clock.set(&now);
        let first = within(seen.recv()).await.unwrap();
        assert_eq!(first, (now, 1, true));
    }
    // A later attempt still has the time of the occurrence.
    until(|| timers.metrics().in_memory == 0).await;
    clock.set("2027-07-10T11:59:00Z");
    let mut second = within(seen.recv()).await.unwrap();
    if second.1 == 1 {
        assert_eq!(second.0, "2027-07-10T11:00:00Z");
        second = within(seen.recv()).await.unwrap();
    }
    assert_eq!(second, ("2027-07-08T11:00:00Z".to_owned(), 2, false));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_dead_occurrence_is_redriven_as_what_it_was() {
    let (timers, _, clock) = started("2027-07-08T10:30Z").await;
    let (sender, mut seen) = mpsc::unbounded_channel();
    timers.handle("mail", move |delivery| {
        let _ = sender.send((delivery.id(), delivery.occurrence()));
        async { Err(Dead::because("no")) }
    });
    declare(&timers, "h", hourly()).await;
    clock.set("2027-07-08T11:00:00Z");
    let first = within(seen.recv()).await.unwrap();
    assert_eq!(first.1, Some(time("2027-07-08T11:00:00Z")));
    until(|| timers.metrics().in_memory == 0).await;
    let dead = timers.dead_letters(None, 10).await.unwrap();
    assert_eq!((dead[0].id(), dead[0].occurrence()), first);
    clock.set("2027-07-08T11:30:00Z");
    assert_eq!(timers.redrive(first.0).await, Ok(Redriven::Done));
    assert_eq!(within(seen.recv()).await.unwrap(), first);
    // An inserted timer is not an occurrence.
    let timer = timers.at("mail", clock.now()).insert().await.unwrap();
    let plain = within(seen.recv()).await.unwrap();
    assert_eq!(plain, (timer.handle().id, None));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_paused_namespace_files_its_occurrences() {
    let (timers, shelf, clock) = started("2027-07-08T10:30Z").await;
    let calendar = hourly().handler("biz/mail");
    let unknown = within(timers.calendar("h", calendar.clone())).await;
    let name = Arc::from("biz");
    assert_eq!(unknown, Err(Error::UnknownNamespace { name }));
    let created = timers.create_namespace("biz", Policy::default().retention(7));
    let namespace = within(created).await.unwrap();
    let mut seen = Occurrences::of(&timers, "biz/mail");
    declare(&timers, "h", calendar).await;
    within(namespace.pause()).await.unwrap();
    for (now, next) in [("11:00:00", "12:00:00"), ("12:00:00", "13:00:00")] {
        clock.set(&format!("2027-07-08T{now}Z"));
        until_next(&timers, "h", &format!("2027-07-08T{next}Z")).await;
    }
    assert_eq!((shelf.len(), namespace.metrics().inserted), (2, 2));
    assert_eq!(namespace.metrics().delivered, 0);
    within(namespace.resume()).await.unwrap();
    let mut both = seen.take(2).await;
    both.sort();
    assert_eq!(both, ["2027-07-08T11:00:00Z", "2027-07-08T12:00:00Z"]);
    // The archived records contain the times of the occurrences.
    until(|| namespace.metrics().settled == 2).await;
    let since = time("2027-07-08T00:00Z");
    let archived = namespace.archived("mail", since, None, 10).await.unwrap();
    let archived = archived.iter().filter_map(|it| it.occurrence());
    let mut archived: Vec<_> = archived.map(text).collect();
    archived.sort();
    assert_eq!(archived, both);
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_full_store_refuses_inserts_and_no_occurrence() {
    let (timers, shelf, clock) = started("2027-07-08T10:30Z").await;
    let mut seen = Occurrences::of(&timers, "mail");
    declare(&timers, "h", hourly()).await;
    shelf.set_full(true);
    let refused = within(timers.at("mail", clock.now()).insert()).await;
    assert_eq!(refused, Err(Error::Full));
    clock.set("2027-07-08T11:00:00Z");
    assert_eq!(seen.next().await, "2027-07-08T11:00:00Z");
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_calendar_of_a_namespace_is_for_its_own_handlers() {
    let (timers, _, clock) = started("2027-07-08T10:30Z").await;
    let biz = within(timers.create_namespace("biz", Policy::default()));
    let biz = biz.await.unwrap();
    let mut own = Occurrences::of(&timers, "biz/mail");
    let mut default = Occurrences::of(&timers, "mail");
    let calendar = Calendar::cron("0 * * * *");
    let of_mail = || calendar.clone().handler("mail");
    within(biz.calendar("mail", calendar.clone()))
        .await
        .unwrap();
    // With another name than its handler's, and one in the default namespace.
    within(biz.calendar("h", of_mail())).await.unwrap();
    let of_default = timers.namespace("default").unwrap();
    within(of_default.calendar("h", of_mail())).await.unwrap();
    let calendars = timers.calendars();
    let names = calendars.iter().map(|it| (&*it.name, &*it.handler));
    assert_eq!(
        Vec::from_iter(names),
        [
            ("biz/h", "biz/mail"),
            ("biz/mail", "biz/mail"),
            ("h", "mail")
        ]
    );
    let names = |calendars: Vec<CalendarInfo>| -> Vec<String> {
        calendars.iter().map(|it| it.name.to_string()).collect()
    };
    assert_eq!(names(biz.calendars()), ["biz/h", "biz/mail"]);
    assert_eq!(names(of_default.calendars()), ["h"]);
    clock.set("2027-07-08T11:00:00Z");
    for seen in [own.next().await, own.next().await, default.next().await] {
        assert_eq!(seen, "2027-07-08T11:00:00Z");
    }
    let elsewhere = within(biz.calendar("x", calendar.handler("bank/mail"))).await;
    let Err(Error::Calendar(error)) = elsewhere else {
        panic!("{elsewhere:?}");
    };
    assert_eq!(error.field(), CalendarField::Handler);
    assert_eq!(within(biz.remove_calendar("h")).await, Ok(true));
    assert_eq!(within(biz.remove_calendar("h")).await, Ok(false));
    assert_eq!(names(biz.calendars()), ["biz/mail"]);
    // A calendar belongs to the namespace in its own name, whatever its handler is.
    let other = timers.calendar("biz/other", Calendar::cron("0 * 1 1 *").handler("mail"));
    within(other).await.unwrap();
    assert_eq!(names(biz.calendars()), ["biz/mail", "biz/other"]);
    assert_eq!(within(biz.remove_calendar("other")).await, Ok(true));
    assert_eq!(timers.calendars().len(), 2);
    shut_down(&timers).await;
    assert!(own.rest().await.is_empty() && default.rest().await.is_empty());
}
