//! A store without space for inserts: they fail with their own error, and everything else continues.

use waterwheel_durable::{Durable, Error, Event, Inserted, NewTimer, Sqlite};

use crate::support::*;

on_both_flavors! {
    a_full_store_refuses_inserts_and_delivers
}

async fn a_full_store_refuses_inserts_and_delivers() {
    let (builder, mut events) = reported(Durable::builder());
    let (timers, shelf) = in_memory_by(builder).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let kept = timers.at("mail", in_an_hour()).key("kept").insert();
    let kept = kept.await.unwrap();
    for _ in 0..3 {
        timers.at("mail", soon()).insert().await.unwrap();
    }
    shelf.set_full(true);
    for count in 1..=2 {
        let refused = within(timers.at("mail", soon()).insert()).await;
        assert_eq!(refused, Err(Error::Full));
        assert!(Error::Full.is_definite());
        let metrics = timers.metrics();
        assert_eq!((metrics.full, metrics.is_full), (count, true));
    }
    // Existing timers are delivered, settled, moved, cancelled and found by key.
    deliveries.take(3).await;
    until(|| shelf.len() == 1).await;
    let same = within(timers.at("mail", soon()).key("kept").insert()).await;
    let same = same.unwrap();
    assert!(!same.is_new() && same.handle() == kept.handle());
    within(timers.reschedule(&kept, soon())).await.unwrap();
    assert_eq!(deliveries.next().await.id, kept.handle().id);
    let batch = (0..3).map(|_| NewTimer::at("mail", soon()));
    assert_eq!(within(timers.insert_many(batch)).await, Err(Error::Full));
    // The batch fails with its first timer, and the others may be in the next commit.
    until(|| timers.metrics().full == 5).await;
    shelf.set_full(false);
    added(timers.at("mail", soon())).await;
    deliveries.next().await;
    assert!(!timers.metrics().is_full);
    shut_down(&timers).await;
    assert_eq!(shelf.len(), 0);
    assert_eq!(events.try_recv(), Ok(Event::Full));
    assert_eq!(events.try_recv(), Ok(Event::HasSpace));
    assert!(events.try_recv().is_err());
}

/// Inserts timers until the file is full.
async fn fill(timers: &Durable) -> Vec<Inserted> {
    let mut kept = Vec::new();
    loop {
        let insert = timers.at("mail", in_an_hour()).bytes([7; 50_000]);
        match within(insert.insert()).await {
            Ok(inserted) => kept.push(inserted),
            Err(error) => {
                assert_eq!(error, Error::Full);
                return kept;
            }
        }
        assert!(kept.len() < 100, "it takes more than its limit");
    }
}

async fn open(place: &Place, limit: u64) -> Durable {
    let file = Sqlite::new(place.file()).limit(limit);
    within(Durable::builder().store(file).open()).await.unwrap()
}

#[tokio::test]
async fn a_file_at_its_limit_is_full_until_timers_have_gone() {
    const LIMIT: u64 = 2 << 20;
    let place = Place::new();
    let timers = open(&place, LIMIT).await;
    let kept = fill(&timers).await;
    assert!(kept.len() > 20, "{} fit", kept.len());
    // They are delivered, and the same service accepts new inserts.
    let mut deliveries = Deliveries::of(&timers, "mail");
    for timer in &kept {
        within(timers.reschedule(timer, soon())).await.unwrap();
    }
    deliveries.take(kept.len()).await;
    within(async {
        while let Err(error) = timers.at("mail", soon()).bytes([7; 50_000]).insert().await {
            assert_eq!(error, Error::Full);
            tokio::time::sleep(millis(1)).await;
        }
    })
    .await;
    deliveries.next().await;
    shut_down(&timers).await;
    let length = std::fs::metadata(place.file()).unwrap().len();
    assert!(length <= LIMIT, "{length} bytes");
}

#[tokio::test]
async fn the_least_limit_of_a_file_has_room_for_timers() {
    let place = Place::new();
    let timers = open(&place, 0).await;
    let kept = fill(&timers).await.len();
    assert!(kept > 5 && kept < 20, "{kept} fit");
    shut_down(&timers).await;
}
