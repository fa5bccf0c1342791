//! A store that another process may take over.

use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use tokio::sync::Notify;
use waterwheel_durable::{Cancelled, Durable, Event};

use crate::support::*;

#[tokio::test]
async fn a_handler_is_called_only_while_the_lease_is_held() {
    let (builder, mut events) = reported(Durable::builder());
    let (timers, shelf) = in_memory_by(builder).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    added(timers.at("mail", soon())).await;
    deliveries.next().await;
    // The service has no other reason to look at the lease than the delivery itself.
    shelf.set_lease(false);
    let looks = shelf.looks();
    let first = added(timers.at("mail", soon())).await;
    until(|| shelf.looks() > looks && timers.metrics().running == 0).await;
    assert_eq!(within(events.recv()).await, Some(Event::LeaseLost));
    assert!(timers.metrics().has_lost_lease);
    // Everything else continues.
    let second = added(timers.at("mail", UNIX_EPOCH)).await;
    let cancelled = within(timers.cancel(&second)).await;
    assert_eq!(cancelled, Ok(Cancelled::Done));
    assert!(deliveries.so_far().is_empty());
    shelf.set_lease(true);
    shelf.give_hint();
    assert_eq!(within(events.recv()).await, Some(Event::LeaseHeld));
    assert!(!timers.metrics().has_lost_lease);
    let seen = deliveries.next().await;
    assert_eq!((seen.id, seen.attempt), (first.handle().id, 1));
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 0);
}

#[tokio::test]
async fn a_running_handler_can_ask_for_the_lease() {
    let (timers, shelf) = in_memory().await;
    let (begun, asks) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let answers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&answers);
    let (begins, asked) = (Arc::clone(&begun), Arc::clone(&asks));
    timers.handle("mail", move |delivery| {
        let (begins, asked, seen) = (Arc::clone(&begins), Arc::clone(&asked), Arc::clone(&seen));
        async move {
            for _ in 0..2 {
                seen.lock().unwrap().push(delivery.is_lease_held());
                begins.notify_one();
                asked.notified().await;
            }
            Ok(())
        }
    });
    added(timers.at("mail", soon())).await;
    within(begun.notified()).await;
    shelf.set_lease(false);
    asks.notify_one();
    within(begun.notified()).await;
    asks.notify_one();
    shut_down(&timers).await;
    assert_eq!(*answers.lock().unwrap(), [true, false]);
}

#[tokio::test]
async fn a_shutdown_needs_no_lease() {
    let (timers, shelf) = in_memory().await;
    let _deliveries = Deliveries::of(&timers, "mail");
    shelf.set_lease(false);
    let looks = shelf.looks();
    added(timers.at("mail", soon())).await;
    until(|| shelf.looks() > looks).await;
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 1);
}
