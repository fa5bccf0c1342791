//! What a handler does with an occurrence, and what it holds up.

use std::sync::Arc;

use tokio::sync::mpsc;
use waterwheel_durable::{Dead, Durable, Error, Policy, Redriven, Retry};

use super::{Clock, Occurrences, declare, hourly, text, time, until_next};
use crate::support::{HOUR, Shelf, shut_down, until, within};

#[tokio::test]
async fn a_handler_that_fails_holds_up_no_later_occurrence() {
    let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
    let timers = Durable::builder().ladder([HOUR * 48, HOUR * 48]);
    let timers = timers.shifted_clocks(Arc::clone(&clock.0));
    let timers = within(timers.open_store(shelf.clone())).await.unwrap();
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
    // An attempt later still says for which time it is.
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
    let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
    let timers = clock.open(&shelf).await;
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
    // An inserted timer is none of a calendar.
    let timer = timers.at("mail", clock.now()).insert().await.unwrap();
    let plain = within(seen.recv()).await.unwrap();
    assert_eq!(plain, (timer.handle().id, None));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_paused_namespace_files_its_occurrences() {
    let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
    let timers = clock.open(&shelf).await;
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
    // What is kept of them says which they were.
    until(|| namespace.metrics().settled == 2).await;
    let since = time("2027-07-08T00:00Z");
    let kept = namespace.delivered("mail", since, None, 10).await.unwrap();
    let kept = kept.iter().filter_map(|it| it.occurrence());
    let mut kept: Vec<_> = kept.map(text).collect();
    kept.sort();
    assert_eq!(kept, both);
    shut_down(&timers).await;
    assert!(seen.rest().await.is_empty());
}

#[tokio::test]
async fn a_full_store_refuses_inserts_and_no_occurrence() {
    let (shelf, clock) = (Shelf::default(), Clock::at("2027-07-08T10:30Z"));
    let timers = clock.open(&shelf).await;
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
