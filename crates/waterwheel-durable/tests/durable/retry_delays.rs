//! Each namespace retries by its own policy, and has its own dead letters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use waterwheel_durable::{Backoff, Durable, Error, Event, HandlerOptions, Policy, Redriven, Retry};

use crate::namespaces::create;
use crate::support::*;

#[tokio::test]
async fn each_namespace_has_its_own_retry_delays_and_dead_letters() {
    let (builder, mut events) = reported(Durable::builder().retry_delays([millis(1)]));
    let (timers, _) = in_memory_by(builder).await;
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
        let timer = added(timers.at(handler, soon())).await;
        let id = timer.handle().id;
        // Once more after it is redriven, with the same number of attempts.
        for _ in 0..2 {
            for attempt in 1..=attempts {
                let seen = deliveries.next().await;
                assert_eq!((seen.id, seen.attempt), (id, attempt), "{handler}");
            }
            for failed in 1..attempts {
                let event = within(events.recv()).await.unwrap();
                let is_it = matches!(&event, Event::AttemptFailed { id: of, handler: its, attempt, error, .. }
                    if (*of, &**its, *attempt, &**error) == (id, handler, failed, "no"));
                assert!(is_it, "{event:?}");
            }
            // The last failure is reported only as a dead letter.
            let event = within(events.recv()).await.unwrap();
            let is_it = matches!(&event, Event::Dead { id: of, handler: its, error, .. }
                if (*of, &**its, &**error) == (id, handler, "no"));
            assert!(is_it, "{event:?}");
            // The dead letter was durable before the event.
            let dead = within(timers.dead_letters(None, 9)).await.unwrap();
            assert_eq!((dead.len(), dead[0].id()), (1, id));
            assert_eq!((dead[0].handler(), dead[0].attempts()), (handler, attempts));
            assert_eq!(within(timers.redrive(id)).await.unwrap(), Redriven::Done);
        }
        // It now waits for its handler, which fails for the rest of the test.
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
    assert_eq!(timers.metrics().failed_attempts, 3 * 13);
    shut_down(&timers).await;
    assert!(events.recv().await.is_none());
}

#[tokio::test]
async fn a_timer_and_a_handler_may_have_retries_of_their_own() {
    let place = Place::new();
    let builder = || Durable::builder().retry_delays([millis(1)]);
    let timers = place.open_by(builder()).await;
    let policy = Policy::default().retry_delays([millis(1); 2]);
    create(&timers, "shop", policy).await;
    let backoff = Backoff::new(millis(1), millis(2)).max_attempts(6);
    // These wait until the file is opened again.
    let mut expected = Vec::new();
    for (handler, attempts) in [("mail", 2), ("shop/mail", 3), ("shop/close", 5)] {
        let plain = added(timers.at(handler, soon())).await;
        let delays = added(timers.at(handler, soon()).retry_delays([millis(1); 3])).await;
        let never = added(timers.at(handler, soon()).retry_delays([])).await;
        let own = added(timers.at(handler, soon()).backoff(backoff.clone())).await;
        for (timer, attempts) in [(plain, attempts), (delays, 4), (never, 1), (own, 6)] {
            expected.push((timer.handle().id, attempts));
        }
    }
    shut_down(&timers).await;
    let timers = place.open_by(builder()).await;
    let fails = |_| async { Err(Retry::backoff("no")) };
    timers.handle("mail", fails);
    timers.handle("shop/mail", fails);
    let options = HandlerOptions::default().retry_delays([millis(1); 4]);
    timers.handle_with("shop/close", options, fails);
    let namespaces = || timers.metrics().namespaces;
    until(|| namespaces().iter().map(|it| it.dead).sum::<u64>() == 12).await;
    let dead = within(timers.dead_letters(None, 99)).await.unwrap();
    let attempts: Vec<_> = dead.iter().map(|it| (it.id(), it.attempts())).collect();
    assert_eq!(attempts, expected);
    shut_down(&timers).await;
}

#[tokio::test]
async fn wrong_retries_of_a_timer_or_a_handler_are_refused() {
    let (timers, shelf) = in_memory().await;
    let wrong_backoff = || Backoff::new(HOUR, millis(1));
    let delays = timers.at("mail", soon()).retry_delays([Duration::MAX]);
    let backoff = timers.at("mail", soon()).backoff(wrong_backoff());
    for (insert, expected) in [(delays, "retry_delays"), (backoff, "backoff")] {
        let error = within(insert.insert()).await.unwrap_err();
        let Error::Timer { field, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*field, expected);
        let begins = format!("the timer's `{expected}` is invalid: ");
        assert!(error.to_string().starts_with(&begins), "{error}");
    }
    let options = HandlerOptions::default;
    for (options, expected) in [
        (options().retry_delays(vec![HOUR; 1_001]), "retry_delays"),
        (options().backoff(wrong_backoff()), "backoff"),
    ] {
        let handled = || timers.handle_with("mail", options, |_| async { Ok(()) });
        let panic = catch_unwind(AssertUnwindSafe(handled)).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        let begins = format!("the `{expected}` of the handler \"mail\" is invalid: ");
        assert!(text.starts_with(&begins), "{text}");
    }
    assert_eq!((shelf.len(), shelf.commits()), (0, 0));
    shut_down(&timers).await;
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

#[tokio::test]
async fn other_retry_delays_hold_for_timers_that_wait() {
    let (_place, timers) = on_file().await;
    let short = Policy::default().retry_delays([millis(1), Duration::from_secs(3_600)]);
    let shop = create(&timers, "shop", short).await;
    let mut deliveries = Deliveries::ended(&timers, "shop/mail", |_| Err(Retry::backoff("no")));
    let timer = added(shop.at("mail", soon())).await;
    deliveries.take(2).await;
    // It waits for an hour. The written delay stays, and a reschedule makes it come sooner.
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
