//! A paused or drained namespace begins no deliveries.

use std::future::pending;

use waterwheel_durable::{Drain, Policy};

use crate::namespaces::create;
use crate::support::*;

#[tokio::test]
async fn a_paused_namespace_delivers_nothing_until_it_is_resumed() {
    let (place, timers) = on_file().await;
    let shop = create(&timers, "shop", Policy::default()).await;
    within(shop.pause()).await.unwrap();
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let mut control = Deliveries::of(&timers, "mail");
    // It accepts inserts, and cancels.
    insert(&timers, "shop/mail", 20).await;
    let cancelled = shop.at("mail", soon()).insert().await.unwrap();
    insert(&timers, "mail", 1).await;
    control.next().await;
    within(timers.cancel(&cancelled)).await.unwrap();
    until(|| shop.metrics().oldest_overdue.is_some()).await;
    assert_eq!((shop.metrics().delivered, shop.is_paused()), (0, true));
    shut_down(&timers).await;
    assert!(deliveries.so_far().is_empty());

    let timers = place.open().await;
    let shop = timers.namespace("shop").unwrap();
    assert!(shop.is_paused() && timers.metrics().namespaces[1].is_paused);
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let mut control = Deliveries::of(&timers, "mail");
    insert(&timers, "mail", 1).await;
    control.next().await;
    until(|| shop.metrics().oldest_overdue.is_some()).await;
    assert!(deliveries.so_far().is_empty());
    within(shop.resume()).await.unwrap();
    for _ in 0..20 {
        let seen = deliveries.next().await;
        // A pause uses up no attempt.
        assert!(seen.attempt == 1 && seen.id != cancelled.handle().id);
    }
    // A handler that is running when it is paused again continues to its end.
    let gate = Gate::of(&timers, "shop/slow");
    insert(&timers, "shop/slow", 1).await;
    gate.has_begun().await;
    within(shop.pause()).await.unwrap();
    gate.go_on.add_permits(1);
    until(|| shop.metrics().settled == 21).await;
    assert_eq!((gate.ended(), shop.metrics().running), (1, 0));
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_drain_waits_for_handlers_and_begins_none() {
    let (place, timers) = on_file().await;
    let shop = create(&timers, "shop", Policy::default().concurrency(2)).await;
    let gate = Gate::of(&timers, "shop/slow");
    insert(&timers, "shop/slow", 5).await;
    for _ in 0..2 {
        gate.has_begun().await;
    }
    assert_eq!(within(shop.drain(Drain::within(millis(20)))).await, 2);
    let drain = tokio::spawn({
        let shop = shop.clone();
        async move { shop.drain(Drain::within(HOUR)).await }
    });
    gate.go_on.add_permits(5);
    assert_eq!(within(drain).await.unwrap(), 0);
    // The others wait for the next process, or for a resume.
    let mut control = Deliveries::of(&timers, "mail");
    insert(&timers, "mail", 1).await;
    control.next().await;
    assert_eq!((gate.ended(), shop.metrics().delivered), (2, 2));
    assert!(!shop.is_paused() && shop.metrics().is_drained);
    within(shop.resume()).await.unwrap();
    assert!(!shop.metrics().is_drained);
    until(|| gate.ended() == 5).await;
    until(|| shop.metrics().settled == 5).await;
    assert_eq!(within(shop.drain(Drain::within(HOUR))).await, 0);
    // A timer that comes due now waits for the next process.
    insert(&timers, "shop/slow", 1).await;
    shut_down(&timers).await;
    // Once the service has ended, nothing is running, even if it was abandoned.
    assert_eq!(within(shop.drain(Drain::within(HOUR))).await, 0);

    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "shop/slow");
    deliveries.next().await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_drain_of_an_abandoned_service_ends() {
    let (timers, _) = in_memory().await;
    let shop = create(&timers, "shop", Policy::default()).await;
    shop.handle("hangs", |_| pending());
    insert(&timers, "shop/hangs", 1).await;
    until(|| shop.metrics().running == 1).await;
    let stopped = within(timers.shutdown(Drain::within(millis(1)))).await;
    assert_eq!(stopped.unwrap().abandoned, 1);
    assert_eq!(shop.metrics().running, 0);
    assert_eq!(within(shop.drain(Drain::within(HOUR))).await, 0);
    // The counts remain.
    assert_eq!((shop.metrics().inserted, shop.metrics().delivered), (1, 1));
}
