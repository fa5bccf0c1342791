//! A business key: one timer of a handler has it at a time.

use std::time::SystemTime;

use tokio::task::JoinSet;
use waterwheel_durable::{Cancelled, Dead, Durable, Handle, Inserted};

use crate::support::{Deliveries, Place, Shelf, in_an_hour, shut_down, soon, until, within};

on_both_flavors! {
    of_a_hundred_inserts_at_once_one_creates_the_timer
}

async fn keyed(timers: &Durable, key: &str, due: SystemTime) -> Inserted {
    let insert = timers.at("mail", due).key(key);
    within(insert.insert()).await.unwrap()
}

async fn of_a_hundred_inserts_at_once_one_creates_the_timer() {
    let place = Place::new();
    let timers = place.open().await;
    for round in 0..10 {
        let key = format!("order-{round}");
        let mut inserts = JoinSet::new();
        for _ in 0..100 {
            let (timers, key) = (timers.clone(), key.clone());
            inserts.spawn(async move { keyed(&timers, &key, in_an_hour()).await });
        }
        let all = within(inserts.join_all()).await;
        let mut handles: Vec<Handle> = all.iter().map(|it| it.handle().clone()).collect();
        handles.dedup();
        assert_eq!(handles.len(), 1);
        assert_eq!(all.iter().filter(|it| it.is_new()).count(), 1);
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_kept_by_a_file_and_free_after_a_cancel() {
    let place = Place::new();
    let timers = place.open().await;
    let first = keyed(&timers, "order", in_an_hour()).await;
    shut_down(&timers).await;

    let timers = place.open().await;
    let again = keyed(&timers, "order", in_an_hour()).await;
    assert_eq!(again, Inserted::Existing(first.handle().clone()));
    let cancelled = within(timers.cancel(&again)).await;
    assert_eq!(cancelled, Ok(Cancelled::Done));
    assert!(keyed(&timers, "order", in_an_hour()).await.is_new());
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_free_after_its_timer_was_settled() {
    let shelf = Shelf::default();
    let timers = Durable::builder().open_store(shelf.clone()).await.unwrap();
    let mut deliveries = Deliveries::of(&timers, "mail");
    let first = keyed(&timers, "order", soon()).await;
    assert_eq!(deliveries.next().await.id, first.handle().id);
    until(|| shelf.len() == 0).await;
    assert!(keyed(&timers, "order", in_an_hour()).await.is_new());
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_held_while_a_timer_is_tried_again() {
    let timers = Durable::builder()
        .ladder([crate::support::HOUR])
        .open_store(Shelf::default())
        .await
        .unwrap();
    let failure = |_: &_| Err(waterwheel_durable::Retry::backoff("later"));
    let mut deliveries = Deliveries::ended(&timers, "mail", failure);
    let first = keyed(&timers, "order", soon()).await.into_handle();
    deliveries.next().await;
    until(|| timers.metrics().in_memory == 0).await;
    let again = keyed(&timers, "order", in_an_hour()).await;
    assert_eq!(again, Inserted::Existing(first.clone()));
    // And the handle that names it is good.
    assert_eq!(timers.cancel(again).await, Ok(Cancelled::Done));
    assert_eq!(timers.cancel(first).await, Ok(Cancelled::NotFound));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_free_after_a_death() {
    let timers = Durable::builder()
        .open_store(Shelf::default())
        .await
        .unwrap();
    let mut deliveries =
        Deliveries::ended(&timers, "mail", |_| Err(Dead::because("no such order")));
    let first = keyed(&timers, "order", soon()).await;
    assert_eq!(deliveries.next().await.id, first.handle().id);
    until(|| timers.metrics().in_memory == 0).await;
    assert!(keyed(&timers, "order", in_an_hour()).await.is_new());
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_the_handlers_own() {
    let place = Place::new();
    let timers = place.open().await;
    let one = keyed(&timers, "order", in_an_hour()).await;
    let other = timers.at("call", in_an_hour()).key("order").insert();
    let other = within(other).await.unwrap();
    assert!(one.is_new() && other.is_new());
    let plain = timers.at("mail", in_an_hour()).insert().await.unwrap();
    assert!(plain.is_new());
    shut_down(&timers).await;
}
