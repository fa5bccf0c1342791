//! Each namespace tries again by its own policy, and has its dead letters.

use std::time::Duration;

use tokio::sync::mpsc;
use waterwheel_durable::{Backoff, Durable, Event, Policy, Redriven, Retry};

use crate::namespaces::create;
use crate::support::{Deliveries, Place, Shelf, millis, shut_down, soon, until, within};

#[tokio::test]
async fn each_namespace_has_its_own_retry_delays_and_dead_letters() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let builder = Durable::builder().retry_delays([millis(1)]);
    let builder = builder.on_event(move |event| drop(sender.send(event.clone())));
    let timers = within(builder.open_store(Shelf::default())).await.unwrap();
    let backoff = Backoff::new(millis(1), millis(2)).max_attempts(3);
    for (name, policy) in [
        (
            "retry_delays",
            Policy::default().retry_delays([millis(1); 4]),
        ),
        ("backoff", Policy::default().backoff(backoff)),
        ("once", Policy::default().retry_delays([])),
        ("as-the-service", Policy::default()),
    ] {
        create(&timers, name, policy).await;
    }
    let fails = |_: &_| Err(Retry::backoff("no"));
    for (handler, attempts) in [
        ("retry_delays/mail", 5),
        ("backoff/mail", 3),
        ("once/mail", 1),
        ("as-the-service/mail", 2),
        ("mail", 2),
    ] {
        let mut deliveries = Deliveries::ended(&timers, handler, fails);
        let timer = within(timers.at(handler, soon()).insert()).await.unwrap();
        let id = timer.handle().id;
        // Again as it is redriven, with as many attempts.
        for _ in 0..2 {
            for attempt in 1..=attempts {
                let seen = deliveries.next().await;
                assert_eq!((seen.id, seen.attempt), (id, attempt), "{handler}");
            }
            for failed in 1..attempts {
                let event = within(events.recv()).await.unwrap();
                let Event::AttemptFailed {
                    attempt,
                    handler: of,
                    ..
                } = event
                else {
                    panic!("{event:?}");
                };
                assert_eq!((attempt, &*of), (failed, handler));
            }
            let event = within(events.recv()).await.unwrap();
            assert!(
                matches!(&event, Event::Dead { handler: of, .. } if **of == *handler),
                "{event:?}"
            );
            let dead = within(timers.dead_letters(None, 9)).await.unwrap();
            assert_eq!(
                (dead.len(), dead[0].id(), dead[0].attempts()),
                (1, id, attempts)
            );
            assert_eq!(dead[0].handler(), handler);
            assert_eq!(within(timers.redrive(id)).await.unwrap(), Redriven::Done);
        }
        // It waits for its handler now, which fails for the rest of its life.
        until(|| timers.metrics().running == 0).await;
        let name = handler.split_once('/').map_or("default", |(name, _)| name);
        let shop = timers.namespace(name).unwrap();
        until(|| shop.metrics().dead == 3).await;
        while within(events.recv())
            .await
            .is_some_and(|it| !matches!(it, Event::Dead { .. }))
        {}
        let dead = within(timers.dead_letters(None, 9)).await.unwrap();
        assert!(within(timers.discard(dead[0].id())).await.unwrap());
        assert_eq!((shop.metrics().redriven, shop.metrics().settled), (2, 0));
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_policy_that_changes_holds_for_timers_that_wait() {
    let place = Place::new();
    let timers = place.open().await;
    let hour = Duration::from_secs(3_600);
    let shop = create(
        &timers,
        "shop",
        Policy::default().retry_delays([millis(1), hour]),
    )
    .await;
    let fails = |_: &_| Err(Retry::backoff("no"));
    let mut deliveries = Deliveries::ended(&timers, "shop/mail", fails);
    let timer = within(shop.at("mail", soon()).insert()).await.unwrap();
    for attempt in 1..=2 {
        assert_eq!(deliveries.next().await.attempt, attempt);
    }
    // It waits for an hour by the old retry delay. The delay that was written stays, and a move makes it come sooner.
    until(|| shop.metrics().retried == 2).await;
    let longer = Policy::default().retry_delays([millis(1); 5]);
    within(shop.set_policy(longer)).await.unwrap();
    within(timers.reschedule(&timer, soon())).await.unwrap();
    for attempt in 3..=6 {
        assert_eq!(deliveries.next().await.attempt, attempt);
    }
    until(|| shop.metrics().dead == 1).await;
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[test]
fn a_backoff_is_that_of_the_scheduler() {
    let hour = Duration::from_secs(3_600);
    for (first, max) in [(millis(1), millis(1)), (millis(3), hour), (hour, hour * 9)] {
        let ours = Backoff::new(first, max);
        let theirs = waterwheel_schedule::Backoff::new(first, max);
        for failures in [0, 1, 2, 19, 20, 21] {
            assert_eq!(ours.delay(failures), theirs.delay(failures), "{failures}");
        }
        let (ours, theirs) = (ours.max_attempts(99), theirs.max_attempts(99));
        for failures in 0..=100 {
            assert_eq!(ours.delay(failures), theirs.delay(failures), "{failures}");
        }
    }
}
