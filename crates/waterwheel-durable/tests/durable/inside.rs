//! A handler that uses the service that calls it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::mpsc;
use waterwheel_durable::{
    Cancelled, Dead, Durable, Error, Handle, Namespace, NewTimer, Policy, Redriven, Rescheduled,
    Retry,
};

use crate::namespaces::create;
use crate::support::*;

on_both_flavors! {
    a_handler_inserts_ten_thousand_others
    a_handler_that_acts_on_its_own_timer_is_answered
}

async fn a_handler_inserts_ten_thousand_others() {
    const COUNT: usize = 10_000;
    let (_place, timers) = on_file().await;
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
    let (timers, shelf) = in_memory().await;
    let (sender, mut answers) = mpsc::unbounded_channel();
    timers.handle("self", move |delivery| {
        let sender = sender.clone();
        async move {
            let (own, timers) = (delivery.handle(), delivery.timers());
            let cancelled = timers.cancel(&own).await?;
            let moved = timers.reschedule(&own, soon()).await?;
            let next = timers.at("mail", soon()).key("next").insert().await?;
            sender.send((own, cancelled, moved, next.is_new()))?;
            Ok(())
        }
    });
    let mut deliveries = Deliveries::of(&timers, "mail");
    let timer = timers.at("self", soon()).insert().await.unwrap();
    let (own, cancelled, moved, is_new) = within(answers.recv()).await.unwrap();
    assert_eq!(&own, timer.handle());
    assert_eq!(cancelled, Cancelled::AlreadyFired);
    assert!(moved == Rescheduled::AlreadyFired && is_new);
    deliveries.next().await;
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 0);
}

#[tokio::test]
async fn a_handler_goes_on_a_chain_of_timers() {
    let (_place, timers) = on_file().await;
    let (sender, mut steps) = mpsc::unbounded_channel();
    // Each step inserts the next one before it is settled: after a crash the chain continues, thanks to the keys.
    timers.handle("step", move |delivery| {
        let sender = sender.clone();
        async move {
            let step: u32 = delivery.json()?;
            let next = delivery.timers().at("step", soon());
            let next = next.key((step + 1).to_be_bytes()).payload(&(step + 1));
            // Sent before that, since the next step may be due by the time the insert is answered.
            sender.send(step)?;
            if step < 20 {
                next.insert().await?;
            }
            Ok(())
        }
    });
    added(timers.at("step", soon()).payload(&1)).await;
    for step in 1..=20 {
        assert_eq!(within(steps.recv()).await, Some(step));
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_handler_registers_another_one() {
    let (_place, timers) = on_file().await;
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
    let (timers, _shelf) = in_memory().await;
    let held = Arc::new(());
    let watched = Arc::downgrade(&held);
    let own = timers.clone();
    timers.handle("mail", move |_| {
        let _held = (&own, &held);
        async { Ok(()) }
    });
    timers.after("mail", HOUR).insert().await.unwrap();
    shut_down(&timers).await;
    // The closure is gone, and with it the reference cycle.
    assert!(watched.upgrade().is_none());
    // Also that of a handler that is registered late.
    let held = Arc::new(());
    let watched = Arc::downgrade(&held);
    timers.handle("late", move |_| {
        let _held = &held;
        async { Ok(()) }
    });
    assert!(watched.upgrade().is_none());
}

#[tokio::test]
async fn a_handle_of_a_delivery_or_a_dead_letter_names_the_timer() {
    let (timers, _) = in_memory_by(Durable::builder().retry_delays([HOUR])).await;
    let (sender, mut handles) = mpsc::unbounded_channel::<Handle>();
    timers.handle("mail", move |delivery| {
        let sent = sender.send(delivery.handle());
        let is_first = delivery.payload().is_empty();
        async move {
            sent?;
            match is_first {
                true => Err(Retry::backoff("later")),
                false => Err(Dead::because("no")),
            }
        }
    });
    // It is retried in an hour, and the handle from its attempt is as valid as the first one.
    let timer = added(timers.at("mail", soon())).await;
    let own = within(handles.recv()).await.unwrap();
    assert_eq!(own.id, timer.handle().id);
    until(|| timers.metrics().in_memory == 0).await;
    assert_eq!(within(timers.cancel(&own)).await, Ok(Cancelled::Done));
    assert_eq!(within(timers.cancel(&timer)).await, Ok(Cancelled::NotFound));

    // It becomes a dead letter after it was moved.
    let timer = timers.at("mail", SystemTime::now() + HOUR).bytes(*b"x");
    let timer = added(timer).await;
    let moved = within(timers.reschedule(&timer, soon())).await;
    assert_eq!(moved, Ok(Rescheduled::Done));
    within(handles.recv()).await.unwrap();
    until(|| timers.metrics().in_memory == 0).await;
    let dead_letters = within(timers.dead_letters(None, 9)).await.unwrap();
    let own = dead_letters[0].handle();
    assert_eq!((dead_letters.len(), own.id), (1, timer.handle().id));
    let default = timers.namespace("default").unwrap();
    within(default.pause()).await.unwrap();
    assert_eq!(within(timers.redrive(own.id)).await, Ok(Redriven::Done));
    assert_eq!(within(timers.cancel(&own)).await, Ok(Cancelled::Done));
    assert_eq!(within(timers.cancel(&timer)).await, Ok(Cancelled::NotFound));
    shut_down(&timers).await;
    assert_eq!(within(handles.recv()).await, None);
}

#[tokio::test]
async fn a_delivery_has_the_namespace_of_its_handler() {
    let (timers, shelf) = in_memory().await;
    let bank = create(&timers, "bank", Policy::default()).await;
    let (sender, mut namespaces) = mpsc::unbounded_channel::<Namespace>();
    for handler in ["plan", "bank/plan"] {
        let sender = sender.clone();
        timers.handle(handler, move |delivery| {
            let sender = sender.clone();
            async move {
                let own = delivery.namespace();
                own.at("mail", soon()).insert().await?;
                sender.send(own)?;
                Ok(())
            }
        });
    }
    let mut of_default = Deliveries::of(&timers, "mail");
    let mut of_bank = Deliveries::of(&timers, "bank/mail");
    added(timers.at("plan", soon())).await;
    of_default.next().await;
    let default = within(namespaces.recv()).await.unwrap();
    assert_eq!(default.name(), "default");
    added(bank.at("plan", soon())).await;
    of_bank.next().await;
    let own = within(namespaces.recv()).await.unwrap();
    assert_eq!(own.name(), "bank");
    assert!(of_default.so_far().is_empty() && of_bank.so_far().is_empty());
    // A delivery that is kept does not keep the service alive.
    let watched = shelf.watch();
    drop((timers, bank, shelf));
    until(|| watched.upgrade().is_none()).await;
    let late = within(own.at("mail", soon()).insert()).await;
    assert_eq!(late, Err(Error::ShuttingDown));
}
