//! A shutdown waits, gives up handlers that are too slow, and frees the file.

use std::sync::Arc;

use tokio::task::JoinSet;
use waterwheel_durable::{Drain, Durable, Error};

use crate::support::*;

on_both_flavors! {
    a_shutdown_waits_for_a_handler_and_settles_its_timer
    what_is_too_slow_is_delivered_again
    a_shutdown_that_is_dropped_closes_the_file_later
    a_shutdown_from_inside_a_handler_ends_both
}

/// Checks that the file is free at once, and holds no timer.
async fn assert_free_and_empty(place: &Place) {
    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let control = timers.at("mail", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.id, control.handle().id);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

async fn a_shutdown_waits_for_a_handler_and_settles_its_timer() {
    let (place, timers) = on_file().await;
    let (gate, _) = Gate::begun(&timers, "mail").await;
    let stopping = tokio::spawn({
        let timers = timers.clone();
        async move { timers.shutdown(Drain::within(HOUR)).await }
    });
    // It accepts no new calls, including those that write nothing.
    let handle = timers.at("mail", in_an_hour()).insert();
    let refused = within(async {
        loop {
            // Until the other task has begun.
            match timers.at("mail", in_an_hour()).insert().await {
                Ok(timer) => drop(timers.cancel(&timer).await),
                Err(error) => break error,
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(refused, Error::ShuttingDown);
    assert_eq!(within(handle).await, Err(Error::ShuttingDown));
    let nothing: waterwheel_durable::Handle = "7@0@none".parse().unwrap();
    let cancelled = within(timers.cancel(&nothing)).await;
    assert_eq!(cancelled, Err(Error::ShuttingDown));
    assert!(!stopping.is_finished());
    gate.go_on.add_permits(1);
    let stopped = within(stopping).await.unwrap();
    assert_eq!(stopped.map(|it| it.abandoned), Ok(0));
    let after = within(timers.dead_letters(None, 1)).await;
    assert_eq!(after, Err(Error::ShuttingDown));
    assert_free_and_empty(&place).await;
}

async fn what_is_too_slow_is_delivered_again() {
    let (place, timers) = on_file().await;
    let (gate, timer) = Gate::begun(&timers, "mail").await;
    let stopped = within(timers.shutdown(Drain::within(millis(5)))).await;
    assert_eq!(stopped.unwrap().abandoned, 1);
    // The handler was dropped, with everything it had captured.
    until(|| Arc::strong_count(&gate.go_on) == 1).await;
    // A further call returns the same result.
    let again = within(timers.shutdown(Drain::within(HOUR))).await;
    assert_eq!(again.unwrap().abandoned, 1);

    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let seen = deliveries.next().await;
    assert_eq!((seen.id, seen.attempt), (timer.handle().id, 1));
    shut_down(&timers).await;
    assert_free_and_empty(&place).await;
}

async fn a_shutdown_that_is_dropped_closes_the_file_later() {
    let (place, timers) = on_file().await;
    let (gate, _) = Gate::begun(&timers, "mail").await;
    {
        let mut stopping = std::pin::pin!(timers.shutdown(Drain::within(HOUR)));
        assert!(polled(stopping.as_mut()).is_pending());
    }
    let refused = within(timers.at("mail", soon()).insert()).await;
    assert_eq!(refused, Err(Error::ShuttingDown));
    // The file is still held.
    assert!(Durable::open(place.file()).await.is_err());
    gate.go_on.add_permits(1);
    opens(&place).await;
    assert_free_and_empty(&place).await;
}

/// Waits until the file can be opened, and closes it again.
async fn opens(place: &Place) {
    let timers = within(async {
        loop {
            match Durable::open(place.file()).await {
                Ok(timers) => break timers,
                Err(_) => tokio::time::sleep(millis(1)).await,
            }
        }
    });
    shut_down(&timers.await).await;
}

#[tokio::test]
async fn a_shutdown_that_is_dropped_after_its_limit_closes_the_file() {
    let (place, timers) = on_file().await;
    let (_gate, timer) = Gate::begun(&timers, "mail").await;
    {
        let mut stopping = std::pin::pin!(timers.shutdown(Drain::within(millis(1))));
        assert!(polled(stopping.as_mut()).is_pending());
        // Its limit has passed, so it drops the handler, usually before it knows that the file is closed.
        std::thread::sleep(millis(20));
        let _ = polled(stopping.as_mut());
    }
    opens(&place).await;
    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(deliveries.next().await.id, timer.handle().id);
    shut_down(&timers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_shutdowns_at_once_all_resolve() {
    for _ in 0..20 {
        let (place, timers) = on_file().await;
        let _deliveries = Deliveries::of(&timers, "mail");
        for _ in 0..10 {
            timers.at("mail", soon()).insert().await.unwrap();
        }
        let mut all = JoinSet::new();
        for number in 0..8 {
            let timers = timers.clone();
            let drain = Drain::within(HOUR * number);
            all.spawn(async move { timers.shutdown(drain).await.map(drop) });
        }
        assert!(within(all.join_all()).await.iter().all(Result::is_ok));
        // The lock was released.
        shut_down(&place.open().await).await;
    }
}

async fn a_shutdown_from_inside_a_handler_ends_both() {
    let (place, timers) = on_file().await;
    // The handler waits for itself, until the limit.
    timers.handle("stop", |delivery| async move {
        delivery
            .timers()
            .shutdown(Drain::within(millis(50)))
            .await?;
        Ok(())
    });
    let timer = timers.at("stop", soon()).insert().await.unwrap();
    let stopped = within(async {
        loop {
            match timers.at("mail", soon()).insert().await {
                Ok(_) => tokio::time::sleep(millis(1)).await,
                Err(error) => break error,
            }
        }
    })
    .await;
    assert_eq!(stopped, Error::ShuttingDown);
    let abandoned = within(timers.shutdown(Drain::within(HOUR))).await.unwrap();
    assert_eq!(abandoned.abandoned, 1);
    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "stop");
    assert_eq!(deliveries.next().await.id, timer.handle().id);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_shutdown_within_any_time_is_possible() {
    for limit in [std::time::Duration::MAX, std::time::Duration::ZERO] {
        let (_place, timers) = on_file().await;
        let stopped = within(timers.shutdown(Drain::within(limit))).await;
        assert_eq!(stopped.unwrap().abandoned, 0);
    }
}

#[tokio::test]
async fn an_insert_before_a_shutdown_is_answered() {
    let (timers, shelf) = in_memory().await;
    shelf.hold();
    let insert = |timers: &Durable| {
        let timers = timers.clone();
        tokio::spawn(async move { timers.at("mail", in_an_hour()).insert().await })
    };
    let first = insert(&timers);
    until(|| shelf.commits() == 1).await;
    let others: Vec<_> = (0..20).map(|_| insert(&timers)).collect();
    tokio::task::yield_now().await;
    let stopping = tokio::spawn({
        let timers = timers.clone();
        async move { timers.shutdown(Drain::within(HOUR)).await.map(drop) }
    });
    tokio::task::yield_now().await;
    shelf.go_on();
    assert!(within(first).await.unwrap().is_ok());
    let mut ok = 1;
    for other in others {
        match within(other).await.unwrap() {
            Ok(_) => ok += 1,
            Err(error) => assert_eq!(error, Error::ShuttingDown),
        }
    }
    assert_eq!(within(stopping).await.unwrap(), Ok(()));
    // All acknowledged timers are there.
    assert!(shelf.len() >= ok && ok == 21, "{ok} of {}", shelf.len());
}
