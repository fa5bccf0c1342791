//! Names without a handler, and payloads that no handler can read yet: nothing is lost.

use std::sync::Arc;

use waterwheel_durable::{Durable, Event, Retry, Shift, Sqlite};

use crate::support::*;

#[tokio::test]
async fn a_timer_without_a_handler_is_reported_and_waits() {
    let shelf = Shelf::default();
    let (builder, mut events) = reported(Durable::builder());
    let timers = within(builder.store(shelf.clone()).open()).await.unwrap();
    let first = timers.at("mail", soon()).insert().await.unwrap();
    match within(events.recv()).await.unwrap() {
        Event::Unhandled { handler, .. } => assert_eq!(&*handler, "mail"),
        other => panic!("{other:?}"),
    }
    assert_eq!(timers.metrics().unhandled, ["mail".into()]);
    // It is reported once, and none of its timers is in memory.
    let second = timers.at("mail", soon()).insert().await.unwrap();
    let mut others = Deliveries::of(&timers, "other");
    added(timers.at("other", soon() + millis(20))).await;
    others.next().await;
    until(|| timers.metrics().in_memory == 0).await;
    assert!(events.try_recv().is_err() && shelf.len() == 2);

    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(timers.metrics().unhandled, []);
    let mut ids = [deliveries.next().await.id, deliveries.next().await.id];
    ids.sort();
    assert_eq!(ids, [first.handle().id, second.handle().id]);
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 0);
}

#[tokio::test]
async fn a_name_whose_timers_were_cancelled_is_not_missed() {
    let timers = Durable::builder().store(Shelf::default()).open();
    let timers = within(timers).await.unwrap();
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    until(|| timers.metrics().unhandled.len() == 1).await;
    timers.cancel(timer.handle()).await.unwrap();
    until(|| timers.metrics().unhandled.is_empty()).await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_timer_waits_for_its_handler_across_restarts() {
    let (place, timers) = on_file().await;
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    until(|| timers.metrics().unhandled.len() == 1).await;
    shut_down(&timers).await;

    // It is reported again.
    let timers = place.open().await;
    until(|| timers.metrics().unhandled.len() == 1).await;
    let timers = place.reopen(timers).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(deliveries.next().await.id, timer.handle().id);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_handler_that_comes_with_the_report_is_not_missed() {
    let shift = Arc::new(Shift::default());
    let (builder, mut events) = reported(Durable::builder().shifted_clocks(Arc::clone(&shift)));
    let (timers, _) = in_memory_by(builder).await;
    // Near enough that it is in a bucket of a second.
    let timer = timers.after("mail", millis(10_000));
    timer.insert().await.unwrap();
    until(|| timers.metrics().in_memory == 0).await;
    // By then, the store has answered all earlier requests.
    within(timers.dead_letters(None, 1)).await.unwrap();
    // The driver has no turn in between, because it runs on this thread.
    shift.suspend(20_000_000);
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(timers.metrics().unhandled, []);
    deliveries.next().await;
    assert!(events.try_recv().is_err());
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_payload_that_does_not_parse_waits_for_a_later_handler() {
    let place = Place::new();
    let open = || {
        Durable::builder()
            .retry_delays([millis(20); 100])
            .store(Sqlite::new(place.file()))
            .open()
    };
    let timers = within(open()).await.unwrap();
    // This version of the service knows payloads that are numbers.
    let mut old = Deliveries::ended(&timers, "mail", |delivery| {
        let _: u32 = delivery.json()?;
        Ok(())
    });
    let timer = timers.at("mail", soon()).payload("a text").insert();
    let timer = within(timer).await.unwrap();
    for attempt in 1..=3 {
        assert_eq!(old.next().await.attempt, attempt);
    }
    shut_down(&timers).await;
    let last = 3 + u32::try_from(old.rest().await.len()).unwrap();

    let timers = within(open()).await.unwrap();
    let mut new = Deliveries::ended(&timers, "mail", |delivery| {
        let text: String = delivery.json()?;
        match text == "a text" {
            true => Ok(()),
            false => Err(Retry::backoff(text)),
        }
    });
    let seen = new.next().await;
    assert_eq!((seen.id, seen.attempt), (timer.handle().id, last + 1));
    shut_down(&timers).await;
    assert!(new.rest().await.is_empty());
    let timers = place.open().await;
    assert_eq!(timers.dead_letters(None, 10).await, Ok(Vec::new()));
    shut_down(&timers).await;
}
