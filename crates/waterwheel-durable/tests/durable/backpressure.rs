//! A large overdue backlog is not all in memory at once, and is delivered.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use waterwheel_durable::{Durable, Id, NewTimer};

use crate::support::*;

on_both_flavors! {
    what_is_overdue_is_delivered_through_little_memory
}

async fn what_is_overdue_is_delivered_through_little_memory() {
    const COUNT: u32 = 50_000;
    const MAX: usize = 100;
    let (place, timers) = on_file().await;
    let past = SystemTime::now() - HOUR;
    // Thousands in one second, and seconds with few.
    let due = |at: u32| past + std::time::Duration::from_millis(u64::from(at).pow(2) / 1_000_000);
    let batch = (0..COUNT).map(|at| NewTimer::at("mail", due(at)));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    shut_down(&timers).await;

    let timers = place.open_by(Durable::builder().max_in_memory(MAX)).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<Id>();
    let (peak, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen_peak = Arc::clone(&peak);
    let counted = Arc::clone(&count);
    timers.handle("mail", move |delivery| {
        let in_memory = delivery.timers().metrics().in_memory;
        seen_peak.fetch_max(in_memory, Ordering::Relaxed);
        counted.fetch_add(1, Ordering::Relaxed);
        let _ = sender.send(Seen::of(&delivery).id);
        async { Ok(()) }
    });
    // Thousands of syncs, which may be slow: it only counts as hanging if no delivery comes.
    for part in 1..=50 {
        until(|| count.load(Ordering::Relaxed) >= COUNT as usize * part / 50).await;
    }
    shut_down(&timers).await;
    let mut delivered = HashSet::new();
    while let Some(id) = within(receiver.recv()).await {
        assert!(delivered.insert(id), "twice: {id}");
    }
    assert!(
        inserted
            .iter()
            .all(|it| delivered.contains(&it.handle().id))
    );
    let peak = peak.load(Ordering::Relaxed);
    assert!(peak > MAX / 2 && peak <= MAX, "{peak} in memory");
}

#[tokio::test]
async fn the_bytes_in_memory_are_bounded() {
    let shelf = Shelf::default();
    let builder = Durable::builder().max_bytes_in_memory(100_000);
    let timers = within(builder.store(shelf.clone()).open()).await.unwrap();
    let gate = Gate::of(&timers, "mail");
    let batch = (0..1_000).map(|_| NewTimer::at("mail", soon()).bytes([7; 10_000]));
    within(timers.insert_many(batch)).await.unwrap();
    // This many would be with the handler at a time, without the limit.
    gate.has_begun().await;
    for ended in 0..100 {
        assert!(timers.metrics().in_memory <= 12, "{ended}: {timers:?}");
        gate.go_on.add_permits(1);
        gate.has_begun().await;
    }
    gate.go_on.add_permits(1_000);
    until(|| shelf.len() == 0).await;
    shut_down(&timers).await;
}
