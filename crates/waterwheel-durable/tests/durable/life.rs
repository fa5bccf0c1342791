use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Cancelled, Dead, Drain, Durable, NewTimer};

use crate::support::{Deliveries, Shelf, in_an_hour, shut_down, soon, until, within};

#[tokio::test]
async fn a_timer_is_delivered_once_and_not_early() {
    let folder = tempfile::tempdir().unwrap();
    let timers = Durable::open(folder.path().join("timers.db"))
        .await
        .unwrap();
    let (sender, mut deliveries) = mpsc::unbounded_channel();
    timers.handle("reminder", move |delivery| {
        let sender = sender.clone();
        async move {
            let text: String = delivery.json()?;
            sender.send((text, delivery.id(), SystemTime::now()))?;
            Ok(())
        }
    });
    let due = SystemTime::now() + Duration::from_millis(50);
    let timer = timers
        .at("reminder", due)
        .payload("a mail")
        .insert()
        .await
        .unwrap();
    let (text, id, at) = deliveries.recv().await.unwrap();
    assert_eq!((text.as_str(), id), ("a mail", timer.handle().id));
    assert!(at >= due);
    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await
        .unwrap();
    assert!(deliveries.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_survive_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    let timers = Durable::open(&path).await.unwrap();
    let due = SystemTime::now() + Duration::from_millis(100);
    let kept = timers.at("reminder", due).insert().await.unwrap();
    let cancelled = timers.at("reminder", due).insert().await.unwrap();
    assert_eq!(timers.cancel(&cancelled).await, Ok(Cancelled::Done));
    assert_eq!(timers.cancel(&cancelled).await, Ok(Cancelled::NotFound));
    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await
        .unwrap();

    let timers = Durable::open(&path).await.unwrap();
    let (sender, mut deliveries) = mpsc::unbounded_channel();
    let sender = Arc::new(sender);
    timers.handle("reminder", move |delivery| {
        let sender = Arc::clone(&sender);
        async move {
            sender.send(delivery.id())?;
            Ok(())
        }
    });
    assert_eq!(deliveries.recv().await, Some(kept.handle().id));
    timers
        .shutdown(Drain::within(Duration::from_secs(5)))
        .await
        .unwrap();
    assert_eq!(deliveries.recv().await, None);
}

/// Polls a future once, and drops it.
async fn poll_once(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_dropped_harms_nothing() {
    let shelf = Shelf::default();
    let timers = Durable::builder().open_store(shelf.clone());
    let timers = within(timers).await.unwrap();
    let mut dead = Deliveries::ended(&timers, "dead", |_| Err(Dead::because("no")));
    let dead_letter = timers.at("dead", soon()).insert().await.unwrap();
    dead.next().await;
    let cancelled = timers.at("mail", in_an_hour()).insert().await.unwrap();
    let moved = timers.at("mail", in_an_hour()).insert().await.unwrap();
    until(|| timers.metrics().in_memory == 0).await;
    // None is answered before it is dropped.
    shelf.hold();
    poll_once(timers.at("mail", in_an_hour()).insert()).await;
    let batch = (0..3).map(|_| NewTimer::at("mail", in_an_hour()));
    poll_once(timers.insert_many(batch)).await;
    poll_once(timers.cancel(&cancelled)).await;
    poll_once(timers.reschedule(&moved, soon())).await;
    poll_once(timers.redrive(dead_letter.handle().id)).await;
    poll_once(timers.dead_letters(None, 1)).await;
    poll_once(timers.find("mail", "key")).await;
    shelf.go_on();
    // What was asked is done.
    dead.next().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(deliveries.next().await.id, moved.handle().id);
    assert_eq!(timers.cancel(&cancelled).await, Ok(Cancelled::NotFound));
    until(|| timers.metrics().in_memory == 0).await;
    assert_eq!(shelf.len(), 4);
    shut_down(&timers).await;
}
