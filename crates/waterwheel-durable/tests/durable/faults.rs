//! A store that refuses, fails or panics: each caller gets an answer, and nothing hangs.

use tokio::sync::mpsc::UnboundedReceiver;
use waterwheel_durable::{Cancelled, Dead, Drain, Durable, Error, Event, NewTimer};

use crate::support::*;

on_both_flavors! {
    a_store_that_fails_is_reported_and_asked_for_nothing_more
}

/// Opens a service on a store that was used before. Returns it with its events.
async fn open(shelf: &Shelf) -> (Durable, UnboundedReceiver<Event>) {
    let (builder, events) = reported(Durable::builder());
    let timers = within(builder.store(shelf.clone()).open()).await.unwrap();
    (timers, events)
}

async fn started() -> (Durable, Shelf, UnboundedReceiver<Event>) {
    let shelf = Shelf::default();
    let (timers, events) = open(&shelf).await;
    (timers, shelf, events)
}

#[tokio::test]
async fn what_is_refused_was_not_written_and_may_be_tried_again() {
    let (timers, shelf, mut events) = started().await;
    let kept = timers.at("mail", in_an_hour()).insert().await.unwrap();
    shelf.fault(Some(Fault::Refuses));
    let refused = within(timers.at("mail", in_an_hour()).insert()).await;
    let why = "the store refused the request, and nothing was written: the disk is full";
    assert_eq!(refused, Err(Error::Refused(why.into())));
    assert!(refused.unwrap_err().is_definite());
    let cancelled = within(timers.cancel(&kept)).await;
    assert_eq!(cancelled, Err(Error::Refused(why.into())));
    let moved = within(timers.reschedule(&kept, soon())).await;
    assert_eq!(moved, Err(Error::Refused(why.into())));
    let redriven = within(timers.redrive(kept.handle().id)).await;
    assert_eq!(redriven.map(drop), Err(Error::Refused(why.into())));
    shelf.fault(None);
    added(timers.at("mail", in_an_hour())).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    within(timers.reschedule(&kept, soon())).await.unwrap();
    assert_eq!(deliveries.next().await.id, kept.handle().id);
    let event = events.try_recv();
    assert!(
        matches!(&event, Ok(Event::Refused { error, .. }) if **error == *why),
        "{event:?}"
    );
    assert_eq!(events.try_recv().ok(), None, "reported once");
    assert!(!timers.metrics().has_failed && timers.metrics().refusals >= 4);
    shut_down(&timers).await;
}

async fn a_store_that_fails_is_reported_and_asked_for_nothing_more() {
    for fault in [Fault::Fails, Fault::Panics, Fault::LeavesOut] {
        let (timers, shelf, mut events) = started().await;
        timers.handle("hangs", |_| std::future::pending());
        timers.at("hangs", soon()).insert().await.unwrap();
        until(|| timers.metrics().running == 1).await;
        shelf.fault(Some(fault));
        let commits = shelf.hold();
        let insert = || {
            let timers = timers.clone();
            tokio::spawn(async move { timers.at("mail", in_an_hour()).insert().await })
        };
        let first = insert();
        until(|| shelf.commits() > commits).await;
        // It is waiting in the engine when the store fails, and so are the reads.
        let second = insert();
        let dead = tokio::spawn({
            let timers = timers.clone();
            async move { timers.dead_letters(None, 1).await }
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        shelf.go_on();
        for caller in [first, second] {
            match within(caller).await.unwrap() {
                Err(error @ Error::Unknown(_)) => assert!(!error.is_definite()),
                // The second may not have been sent before the failure.
                Err(Error::Failed(_)) => {}
                other => panic!("{fault:?}: {other:?}"),
            }
        }
        let dead = within(dead).await.unwrap();
        assert!(fault == Fault::LeavesOut || dead.is_err(), "{dead:?}");
        let failed = within(events.recv()).await.unwrap();
        assert!(matches!(failed, Event::Failed { .. }), "{failed:?}");
        assert!(timers.metrics().has_failed);
        until(|| shelf.given_up() == 1).await;
        // From now on, all callers get the failure.
        let late = within(timers.at("mail", in_an_hour()).insert()).await;
        assert!(matches!(late, Err(Error::Failed(_))), "{late:?}");
        let dead = within(timers.dead_letters(None, 1)).await;
        assert!(matches!(dead, Err(Error::Failed(_))), "{dead:?}");
        let stopped = within(timers.shutdown(Drain::within(millis(10)))).await;
        assert!(matches!(stopped, Err(Error::Failed(_))), "{stopped:?}");
        assert_eq!((shelf.asked_after(), shelf.given_up()), (0, 1), "{fault:?}");
    }
}

#[tokio::test]
async fn what_a_failed_store_has_written_is_found_again_by_its_key() {
    let (timers, shelf, _) = started().await;
    shelf.fault(Some(Fault::Fails));
    let unknown = within(timers.at("mail", in_an_hour()).key("k").insert()).await;
    assert!(matches!(unknown, Err(Error::Unknown(_))));
    let stopped = within(timers.shutdown(Drain::within(millis(10)))).await;
    assert!(stopped.is_err());
    // It was written, although that was unknown. Thanks to the key, there is one timer.
    shelf.fault(None);
    let (timers, _events) = open(&shelf).await;
    let again = timers.at("mail", in_an_hour()).key("k").insert().await;
    assert!(!again.unwrap().is_new());
    assert_eq!(shelf.len(), 1);
    shut_down(&timers).await;
}

#[tokio::test]
async fn dead_letters_that_cannot_be_read_end_the_store() {
    let (timers, shelf, mut events) = started().await;
    shelf.fault(Some(Fault::Unreadable));
    let dead = within(timers.dead_letters(None, 1)).await;
    assert!(matches!(dead, Err(Error::Failed(_))), "{dead:?}");
    let failed = within(events.recv()).await;
    assert!(matches!(failed, Some(Event::Failed { .. })));
    let late = within(timers.at("mail", in_an_hour()).insert()).await;
    assert!(matches!(late, Err(Error::Failed(_))));
    assert!(timers.shutdown(Drain::within(HOUR)).await.is_err());
    assert_eq!(shelf.asked_after(), 0);
}

#[tokio::test]
async fn a_store_that_fails_as_the_last_handle_goes_is_closed() {
    let (timers, shelf, _) = started().await;
    timers.handle("hangs", |_| std::future::pending());
    timers.at("hangs", soon()).insert().await.unwrap();
    until(|| timers.metrics().running == 1).await;
    shelf.fault(Some(Fault::Fails));
    assert!(timers.at("mail", soon()).insert().await.is_err());
    let watched = shelf.watch();
    drop((timers, shelf));
    until(|| watched.strong_count() == 0).await;
}

#[tokio::test]
async fn a_handler_may_end_though_the_store_has_failed() {
    let (timers, shelf, _) = started().await;
    let (gate, _) = Gate::begun(&timers, "mail").await;
    shelf.fault(Some(Fault::Fails));
    assert!(timers.at("other", soon()).insert().await.is_err());
    let watched = shelf.watch();
    drop(shelf);
    let mut stopping = Box::pin(timers.shutdown(Drain::within(HOUR)));
    assert!(polled(stopping.as_mut()).is_pending());
    // The service is not closing: that would be the answer otherwise.
    let dead = within(timers.dead_letters(None, 1)).await;
    assert!(matches!(dead, Err(Error::Failed(_))), "{dead:?}");
    assert!(watched.strong_count() == 1 && gate.ended() == 0);
    gate.go_on.add_permits(1);
    assert!(matches!(within(stopping).await, Err(Error::Failed(_))));
    assert!(gate.ended() == 1 && watched.strong_count() == 0);
}

#[tokio::test]
async fn what_the_store_refuses_holds_up_no_shutdown() {
    let (timers, shelf, _) = started().await;
    let gate = Gate::of(&timers, "slow");
    let mut deliveries = Deliveries::of(&timers, "mail");
    timers.at("slow", soon()).insert().await.unwrap();
    let mail = timers.at("mail", soon()).insert().await.unwrap();
    gate.has_begun().await;
    shelf.fault(Some(Fault::Refuses));
    // Only the settling of this timer is refused, if it was not written before.
    deliveries.next().await;
    let unsettled = timers.at("mail", soon()).insert().await;
    assert!(matches!(unsettled, Err(Error::Refused(_)) | Ok(_)));
    let left = shelf.len() - 1;
    let mut stopping = Box::pin(timers.shutdown(Drain::within(HOUR)));
    // The shutdown waits for the handler.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(polled(stopping.as_mut()).is_pending());
    }
    gate.go_on.add_permits(1);
    let stopped = within(stopping).await.unwrap();
    assert_eq!((stopped.abandoned, stopped.unsettled), (0, left + 1));
    // The timers are delivered again.
    shelf.fault(None);
    let (timers, _events) = open(&shelf).await;
    let mut slow = Deliveries::of(&timers, "slow");
    assert_eq!(slow.next().await.attempt, 1);
    if left == 1 {
        let mut deliveries = Deliveries::of(&timers, "mail");
        assert_eq!(deliveries.next().await.id, mail.handle().id);
    }
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 0);
}

#[tokio::test]
async fn what_the_store_refuses_holds_up_no_last_handle() {
    let (timers, shelf, _) = started().await;
    let (gate, _) = Gate::begun(&timers, "mail").await;
    shelf.fault(Some(Fault::Refuses));
    let watched = shelf.watch();
    drop((timers, shelf));
    gate.go_on.add_permits(1);
    until(|| watched.strong_count() == 0).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_harms_nothing() {
    let (timers, shelf) = in_memory().await;
    let mut dead = Deliveries::ended(&timers, "dead", |_| Err(Dead::because("no")));
    let dead_letter = timers.at("dead", soon()).insert().await.unwrap();
    dead.next().await;
    let cancelled = timers.at("mail", in_an_hour()).insert().await.unwrap();
    let moved = timers.at("mail", in_an_hour()).insert().await.unwrap();
    until(|| timers.metrics().in_memory == 0).await;
    // None is answered before the service is dropped.
    shelf.hold();
    let _ = polled(Box::pin(timers.at("mail", in_an_hour()).insert()));
    let batch = (0..3).map(|_| NewTimer::at("mail", in_an_hour()));
    let _ = polled(Box::pin(timers.insert_many(batch)));
    let _ = polled(Box::pin(timers.cancel(&cancelled)));
    let _ = polled(Box::pin(timers.reschedule(&moved, soon())));
    let _ = polled(Box::pin(timers.redrive(dead_letter.handle().id)));
    let _ = polled(Box::pin(timers.dead_letters(None, 1)));
    let _ = polled(Box::pin(timers.find("mail", "key")));
    shelf.go_on();
    // The requests were carried out.
    dead.next().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(deliveries.next().await.id, moved.handle().id);
    assert_eq!(timers.cancel(&cancelled).await, Ok(Cancelled::NotFound));
    until(|| timers.metrics().in_memory == 0).await;
    assert_eq!(shelf.len(), 4);
    shut_down(&timers).await;
}
