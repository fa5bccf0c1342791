//! A namespace does not delay another one, and can be changed, paused and drained while the others continue.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use waterwheel_durable::{
    Delivery, Drain, Durable, Error, Event, HandlerOptions, Namespace, NewTimer, Policy, Rate,
    Retry,
};

use crate::support::*;

on_both_flavors! {
    a_namespace_that_hangs_delays_no_other
    a_slow_namespace_leaves_the_others_their_places
}

pub(crate) async fn create(timers: &Durable, name: &str, policy: Policy) -> Namespace {
    within(timers.create_namespace(name, policy)).await.unwrap()
}

async fn a_namespace_that_hangs_delays_no_other() {
    let (timers, _) = in_memory().await;
    for name in ["shop", "bank"] {
        create(&timers, name, Policy::default()).await;
    }
    timers.handle("shop/hangs", |_| pending());
    let mut other = Deliveries::of(&timers, "shop/mail");
    let mut bank = Deliveries::of(&timers, "bank/mail");
    // More than can be with the handler at a time.
    insert(&timers, "shop/hangs", 200).await;
    until(|| timers.metrics().running == 64).await;
    for _ in 0..50 {
        for (handler, deliveries) in [("bank/mail", &mut bank), ("shop/mail", &mut other)] {
            let timer = timers.at(handler, soon()).insert().await.unwrap();
            assert_eq!(deliveries.next().await.id, timer.handle().id);
        }
    }
    // It still hangs, and the metrics show that.
    let of = |name: &str| timers.namespace(name).unwrap().metrics();
    until(|| of("shop").settled == 50).await;
    assert_eq!((of("shop").running, of("shop").delivered), (64, 114));
    assert!(of("shop").oldest_overdue.is_some());
    until(|| of("bank").running == 0).await;
    assert_eq!(
        (of("bank").delivered, of("bank").oldest_overdue),
        (50, None)
    );
    let stopped = within(timers.shutdown(Drain::within(millis(10)))).await;
    assert_eq!(stopped.unwrap().abandoned, 64);
}

async fn a_slow_namespace_leaves_the_others_their_places() {
    let (timers, _) = in_memory_by(Durable::builder().concurrency(4)).await;
    create(&timers, "shop", Policy::default().concurrency(3)).await;
    create(&timers, "bank", Policy::default()).await;
    let gate = Gate::of(&timers, "shop/slow");
    let mut bank = Deliveries::of(&timers, "bank/mail");
    insert(&timers, "shop/slow", 20).await;
    for _ in 0..3 {
        gate.has_begun().await;
    }
    // The fourth place is left to the others, for as long as this takes.
    for _ in 0..50 {
        insert(&timers, "bank/mail", 2).await;
        bank.take(2).await;
        assert_eq!(timers.namespace("shop").unwrap().metrics().running, 3);
    }
    gate.go_on.add_permits(20);
    until(|| gate.ended() == 20).await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn an_outage_of_an_hour_delays_no_other_and_drains_at_the_limit() {
    const MINUTES: usize = 60;
    const PARTNERS: usize = 40;
    const MAX: usize = 128;
    let (builder, shift) = shifted();
    let builder = builder.max_in_memory(MAX);
    let (timers, _) = in_memory_by(builder).await;
    // The service that its handler calls is down: most attempts fail, and some hang until their limit.
    let policy = Policy::default()
        .retry_delays([15, 60, 180, 600, 600, 600, 600, 600, 600, 600].map(Duration::from_secs));
    let rate = Rate::per_second(20).burst(10);
    let partner = create(&timers, "partner", policy.concurrency(8).rate(rate)).await;
    create(&timers, "bank", Policy::default()).await;
    let is_down = Arc::new(AtomicBool::new(true));
    let attempts = Arc::new(AtomicUsize::new(0));
    let (down, count) = (Arc::clone(&is_down), Arc::clone(&attempts));
    let options = HandlerOptions::default().attempt_limit(millis(20));
    partner.handle_with("notify", options, move |_| {
        let hangs = count.fetch_add(1, Ordering::SeqCst).is_multiple_of(16);
        let is_down = down.load(Ordering::SeqCst);
        async move {
            match is_down {
                true if hangs => pending().await,
                true => Err(Retry::backoff("connection refused")),
                false => Ok(()),
            }
        }
    });
    let mut bank = Deliveries::of(&timers, "bank/mail");
    let now = || SystemTime::now() + Duration::from_micros(shift.wall().unsigned_abs());
    for _ in 0..MINUTES {
        let batch = (0..PARTNERS).map(|_| NewTimer::at("partner/notify", now()));
        within(timers.insert_many(batch)).await.unwrap();
        let due = now() + Duration::from_secs(60);
        let batch = (0..10).map(|_| NewTimer::at("bank/mail", due));
        within(timers.insert_many(batch)).await.unwrap();
        // The timers of the bank come with the clock, whatever the partner does.
        assert!(bank.so_far().is_empty());
        shift.suspend(60_000_000);
        bank.take(10).await;
        let in_memory = timers.metrics().in_memory;
        assert!(in_memory <= 2 * MAX, "{in_memory} timers are in memory");
    }
    let during = partner.metrics();
    assert!(
        during.retried > 100 && (during.settled, during.dead) == (0, 0),
        "{during:?}"
    );
    let overdue = now()
        .duration_since(during.oldest_overdue.unwrap())
        .unwrap();
    assert!(overdue > Duration::from_secs(300), "{overdue:?}");

    // The partner is up again: the backlog drains, within the limit.
    is_down.store(false, Ordering::SeqCst);
    let from = (partner.metrics().delivered, now());
    let mut last = (0, Instant::now());
    while partner.metrics().settled < (PARTNERS * MINUTES) as u64 {
        let settled = partner.metrics().settled;
        if settled > last.0 {
            last = (settled, Instant::now());
        }
        assert!(
            last.1.elapsed() < PATIENCE,
            "{settled} are settled, and no more"
        );
        let at = partner.metrics().delivered;
        let limit = 10.0 + 20.0 * now().duration_since(from.1).unwrap().as_secs_f64();
        assert!((at - from.0) as f64 <= limit + 1.0, "{at} of {limit}");
        // In steps that the burst covers.
        shift.suspend(400_000);
        tokio::time::sleep(millis(1)).await;
        let in_memory = timers.metrics().in_memory;
        assert!(in_memory <= 2 * MAX, "{in_memory} timers are in memory");
    }
    assert_eq!(partner.metrics().dead, 0);
    let bank = timers.namespace("bank").unwrap().metrics();
    assert_eq!(bank.settled, 10 * MINUTES as u64);
    let latest = bank.lateness.quantile(1.0).unwrap();
    assert!(latest <= Duration::from_secs(30), "{latest:?} of an hour");
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_policy_changes_without_a_restart_and_outlives_one() {
    let (place, timers) = on_file().await;
    let shop = create(&timers, "shop", Policy::default().concurrency(1)).await;
    let gate = Gate::of(&timers, "shop/mail");
    insert(&timers, "shop/mail", 10).await;
    gate.has_begun().await;
    until(|| timers.metrics().in_memory == 10).await;
    assert_eq!(shop.metrics().running, 1);
    for running in [4, 7] {
        let policy = Policy::default().concurrency(running);
        within(shop.set_policy(policy)).await.unwrap();
        until(|| shop.metrics().running == running).await;
    }
    // Another handle of the namespace sees the same, and so does the next process.
    let policy = Policy::default()
        .retry_delays([millis(1)])
        .priority(7)
        .concurrency(10);
    within(shop.set_policy(policy.clone())).await.unwrap();
    assert_eq!(timers.namespace("shop").unwrap().policy().unwrap(), policy);
    gate.go_on.add_permits(10);
    until(|| gate.ended() == 10).await;
    let timers = place.reopen(timers).await;
    assert_eq!(timers.namespace("shop").unwrap().policy().unwrap(), policy);
    // Created again, it keeps its settings.
    let shop = create(&timers, "shop", Policy::default()).await;
    assert_eq!(shop.policy().unwrap(), policy);
    let mut deliveries = Deliveries::ended(&timers, "shop/mail", |_| Err(Retry::backoff("no")));
    insert(&timers, "shop/mail", 1).await;
    for attempt in 1..=2 {
        assert_eq!(deliveries.next().await.attempt, attempt);
    }
    until(|| shop.metrics().dead == 1).await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_closes_no_other_namespace() {
    let (timers, shelf) = in_memory().await;
    create(&timers, "shop", Policy::default().retention(9)).await;
    shut_down(&timers).await;
    shelf.set("namespace/shop", "{\"retention\":\"long\"}");
    let (builder, mut events) = reported(Durable::builder());
    let timers = within(builder.store(shelf.clone()).open()).await.unwrap();
    let event = within(events.recv()).await.unwrap();
    let shop = timers.namespace("shop").unwrap();
    assert!(
        matches!(&event, Event::UnreadablePolicy { namespace, .. } if **namespace == *shop.name()),
        "{event:?}"
    );
    assert!(shop.is_paused() && shop.metrics().is_paused);
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let mut control = Deliveries::of(&timers, "mail");
    let waiting = added(shop.at("mail", soon())).await;
    insert(&timers, "mail", 1).await;
    control.next().await;
    assert!(deliveries.so_far().is_empty());
    // Another policy cannot be derived from it, since that would lack the retention.
    let unreadable = shop.policy().unwrap_err();
    let text = unreadable.to_string();
    assert!(matches!(unreadable, Error::UnreadablePolicy { namespace } if &*namespace == "shop"));
    assert!(
        text.contains("\"shop\"") && text.contains("set a complete policy"),
        "{text}"
    );
    // Not by a service that creates its namespaces at startup either.
    create(&timers, "shop", Policy::default()).await;
    assert!(shop.policy().is_err() && timers.namespace("default").unwrap().policy().is_ok());
    assert!(deliveries.so_far().is_empty());
    let whole = Policy::default().retention(9);
    within(shop.set_policy(whole.clone())).await.unwrap();
    assert_eq!(shop.policy(), Ok(whole));
    assert_eq!(deliveries.next().await.id, waiting.handle().id);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_handler_changes_its_own_namespace() {
    let (timers, _) = in_memory().await;
    let shop = create(&timers, "shop", Policy::default().concurrency(1)).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    shop.handle("mail", move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            let own = delivery.timers().namespace("shop")?;
            // The drain waits for its own handler, which is counted as running.
            let running = own.drain(Drain::within(millis(5))).await;
            own.pause().await?;
            own.set_policy(Policy::default().priority(2)).await?;
            sender.send(running)?;
            Ok(())
        }
    });
    insert(&timers, "shop/mail", 2).await;
    assert_eq!(within(receiver.recv()).await, Some(1));
    until(|| shop.metrics().settled == 1).await;
    assert_eq!(shop.policy(), Ok(Policy::default().priority(2)));
    assert!(shop.is_paused());
    within(shop.resume()).await.unwrap();
    assert_eq!(within(receiver.recv()).await, Some(1));
    until(|| shop.metrics().settled == 2).await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn the_default_namespace_is_one_like_the_others() {
    let (timers, _) = in_memory().await;
    let default = timers.namespace("default").unwrap();
    assert_eq!(
        (default.name(), default.full_name("mail")),
        ("default", "mail".into())
    );
    let mut deliveries = Deliveries::of(&timers, "mail");
    within(default.pause()).await.unwrap();
    let timer = added(default.at("mail", soon())).await;
    until(|| default.metrics().oldest_overdue.is_some()).await;
    assert!(deliveries.so_far().is_empty());
    within(default.resume()).await.unwrap();
    assert_eq!(deliveries.next().await.id, timer.handle().id);
    // The first call with its name sets its policy, and the next one keeps it.
    for _ in 0..2 {
        create(&timers, "default", Policy::default().priority(3)).await;
        assert_eq!(default.policy(), Ok(Policy::default().priority(3)));
    }
    create(&timers, "default", Policy::default()).await;
    assert_eq!(default.policy(), Ok(Policy::default().priority(3)));
    shut_down(&timers).await;
}
