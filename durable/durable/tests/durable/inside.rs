//! A handler that uses the service it is called by.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use waterwheel_durable::{Cancelled, Durable, Handle, NewTimer, Rescheduled};

use crate::support::{Deliveries, HOUR, Place, Shelf, shut_down, soon, within};

on_both_flavors! {
    a_handler_inserts_ten_thousand_others
    a_handler_that_acts_on_its_own_timer_is_answered
}

async fn a_handler_inserts_ten_thousand_others() {
    const COUNT: usize = 10_000;
    let place = Place::new();
    let timers = place.open().await;
    let (sender, mut plans) = mpsc::unbounded_channel();
    timers.handle("plan", move |delivery| {
        let sender = sender.clone();
        async move {
            let batch = (0..COUNT).map(|_| NewTimer::at("mail", soon()));
            let inserted = delivery.timers().insert_many(batch).await;
            sender.send(inserted)?;
            Ok(())
        }
    });
    let mut deliveries = Deliveries::of(&timers, "mail");
    timers.at("plan", soon()).insert().await.unwrap();
    let inserted = within(plans.recv()).await.unwrap().unwrap();
    assert!(inserted.len() == COUNT && inserted.iter().all(|it| it.is_new()));
    let mut delivered = HashSet::new();
    while delivered.len() < COUNT {
        assert!(delivered.insert(deliveries.next().await.id));
    }
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

async fn a_handler_that_acts_on_its_own_timer_is_answered() {
    let shelf = Shelf::default();
    let timers = within(Durable::builder().open_store(shelf.clone()))
        .await
        .unwrap();
    let (sender, mut answers) = mpsc::unbounded_channel();
    let (own, handle) = tokio::sync::watch::channel(None::<Handle>);
    timers.handle("self", move |delivery| {
        let (sender, mut handle) = (sender.clone(), handle.clone());
        async move {
            let own = handle.wait_for(Option::is_some).await?.clone().unwrap();
            let is_own = own.id == delivery.id();
            let timers = delivery.timers();
            let cancelled = timers.cancel(&own).await?;
            let moved = timers.reschedule(&own, soon()).await?;
            let next = timers.at("mail", soon()).key("next").insert().await?;
            sender.send((is_own, cancelled, moved, next.is_new()))?;
            Ok(())
        }
    });
    let mut deliveries = Deliveries::of(&timers, "mail");
    let timer = timers.at("self", soon()).insert().await.unwrap();
    own.send(Some(timer.into_handle())).unwrap();
    let (is_own, cancelled, moved, is_new) = within(answers.recv()).await.unwrap();
    assert!(is_own);
    assert_eq!(cancelled, Cancelled::AlreadyFired);
    assert!(moved == Rescheduled::AlreadyFired && is_new);
    deliveries.next().await;
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 0);
}

#[tokio::test]
async fn a_handler_goes_on_a_chain_of_timers() {
    let place = Place::new();
    let timers = place.open().await;
    let (sender, mut steps) = mpsc::unbounded_channel();
    // Each inserts the next one before it is settled: after a crash the chain goes on, by its keys.
    timers.handle("step", move |delivery| {
        let sender = sender.clone();
        async move {
            let step: u32 = delivery.json()?;
            let next = delivery.timers().at("step", soon());
            let next = next.key((step + 1).to_be_bytes()).payload(&(step + 1));
            if step < 20 {
                next.insert().await?;
            }
            sender.send(step)?;
            Ok(())
        }
    });
    timers
        .at("step", soon())
        .payload(&1)
        .insert()
        .await
        .unwrap();
    for step in 1..=20 {
        assert_eq!(within(steps.recv()).await, Some(step));
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_handler_registers_another_one() {
    let place = Place::new();
    let timers = place.open().await;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    timers.handle("first", move |delivery| {
        let sender = sender.clone();
        async move {
            let timers = delivery.timers();
            let registered = Deliveries::of(timers, "second");
            timers.at("second", soon()).insert().await?;
            sender.send(registered).ok();
            Ok(())
        }
    });
    timers.at("first", soon()).insert().await.unwrap();
    within(receiver.recv()).await.unwrap().next().await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_handle_in_a_handler_keeps_the_service_until_a_shutdown() {
    let shelf = Shelf::default();
    let timers = within(Durable::builder().open_store(shelf.clone()))
        .await
        .unwrap();
    let held = Arc::new(());
    let watched = Arc::downgrade(&held);
    let own = timers.clone();
    timers.handle("mail", move |_| {
        let _held = (&own, &held);
        async { Ok(()) }
    });
    timers.after("mail", HOUR).insert().await.unwrap();
    shut_down(&timers).await;
    // The closure is gone, and with it the circle.
    assert!(watched.upgrade().is_none());
    // Also the one of a handler that comes late.
    let held = Arc::new(());
    let watched = Arc::downgrade(&held);
    timers.handle("late", move |_| {
        let _held = &held;
        async { Ok(()) }
    });
    assert!(watched.upgrade().is_none());
}
