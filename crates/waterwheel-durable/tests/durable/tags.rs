//! Timers with a tag, which are cancelled together.

use waterwheel_durable::{Cancelled, Durable, Error, NewTimer, Policy, Redriven, Retry, TAG_LIMIT};

use crate::namespaces::create;
use crate::support::*;

on_both_flavors! {
    all_timers_with_a_tag_are_cancelled_and_no_others
}

/// More than are cancelled at a time.
const MANY: usize = 1_300;

async fn all_timers_with_a_tag_are_cancelled_and_no_others() {
    let place = Place::new();
    let timers = place.open().await;
    let shop = create(&timers, "shop", Policy::default()).await;
    let far = in_an_hour();
    let tagged =
        |handler: &str, tag: &str, hours: u32| NewTimer::at(handler, far + HOUR * hours).tag(tag);
    // Two handlers, in buckets of all lengths; and the same tag in another namespace.
    let batch = (0..MANY as u32).map(|it| {
        let handler = ["close", "remind"][it as usize % 2];
        tagged(handler, "order-17", [0, 5, 50, 5_000][it as usize % 4])
    });
    let mine = within(shop.insert_many(batch)).await.unwrap();
    let others = [
        tagged("shop/close", "order-1", 5),
        tagged("shop/close", "order-177", 5),
        tagged("close", "order-17", 5),
        NewTimer::at("shop/close", far),
    ];
    let others = within(timers.insert_many(others)).await.unwrap();
    // One that was moved, and that the file has by its new place.
    let moved = timers.reschedule(&mine[0], far + HOUR * 77);
    within(moved).await.unwrap();
    let timers = place.reopen(timers).await;
    let shop = timers.namespace("shop").unwrap();
    let first = within(timers.get(&mine[0])).await.unwrap().unwrap();
    assert_eq!(first.tag(), Some("order-17"));

    let cancelled = within(shop.cancel_tagged("order-17")).await.unwrap();
    assert_eq!((cancelled.done, cancelled.already_fired), (MANY as u64, 0));
    assert_eq!(shop.metrics().cancelled, MANY as u64);
    for timer in mine.iter().step_by(97) {
        assert_eq!(within(timers.get(timer)).await, Ok(None));
        let again = within(timers.cancel(timer)).await;
        assert_eq!(again, Ok(Cancelled::NotFound));
    }
    for timer in &others {
        assert!(within(timers.get(timer)).await.unwrap().is_some());
    }
    for tag in ["order-17", "order", ""] {
        let cancelled = within(shop.cancel_tagged(tag)).await.unwrap();
        assert_eq!((cancelled.done, cancelled.already_fired), (0, 0));
    }
    // That of the default namespace.
    let cancelled = within(timers.cancel_tagged("order-17")).await.unwrap();
    assert_eq!(cancelled.done, 1);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_timer_with_its_handler_is_not_cancelled_by_its_tag() {
    let (timers, _) = in_memory_by(Durable::builder().retry_delays([])).await;
    let gate = Gate::of(&timers, "close");
    let began = added(timers.at("close", soon()).tag("order")).await;
    gate.has_begun().await;
    added(timers.at("close", in_an_hour()).tag("order")).await;
    let cancelled = within(timers.cancel_tagged("order")).await.unwrap();
    assert_eq!((cancelled.done, cancelled.already_fired), (1, 1));
    gate.go_on.add_permits(1);
    until(|| timers.metrics().namespaces[0].settled == 1).await;
    assert_eq!(within(timers.get(&began)).await, Ok(None));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_tag_stays_through_retries_death_and_redrive() {
    let (_place, timers) = on_file().await;
    let mut deliveries = Deliveries::ended(&timers, "close", |delivery| {
        assert_eq!(delivery.tag(), Some("order"));
        Err(Retry::backoff("no"))
    });
    let insert = timers.at("close", soon()).tag("order");
    let timer = added(insert.retry_delays([millis(1)])).await;
    deliveries.take(2).await;
    until(|| timers.metrics().namespaces[0].dead == 1).await;
    let dead = &within(timers.dead_letters(None, 9)).await.unwrap()[0];
    assert_eq!(dead.tag(), Some("order"));
    // A dead letter is not pending.
    let cancelled = within(timers.cancel_tagged("order")).await.unwrap();
    assert_eq!(cancelled.done, 0);
    let redriven = within(timers.redrive(timer.handle().id)).await;
    assert_eq!(redriven, Ok(Redriven::Done));
    // With its own retries.
    deliveries.take(2).await;
    until(|| timers.metrics().namespaces[0].dead == 2).await;
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_wrong_tag_is_refused() {
    let (timers, shelf) = in_memory().await;
    for wrong in ["", "a\0b", &"x".repeat(TAG_LIMIT + 1)] {
        let inserted = within(timers.at("close", soon()).tag(wrong).insert()).await;
        let Err(Error::Timer { field: "tag", .. }) = inserted else {
            panic!("{inserted:?}");
        };
    }
    assert_eq!(shelf.len(), 0);
    let longest = "ü".repeat(TAG_LIMIT / 2);
    added(timers.at("close", in_an_hour()).tag(&longest)).await;
    let cancelled = within(timers.cancel_tagged(&longest)).await.unwrap();
    assert_eq!(cancelled.done, 1);
    shut_down(&timers).await;
}
