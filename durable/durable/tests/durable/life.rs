use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Cancelled, Drain, Durable};

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
