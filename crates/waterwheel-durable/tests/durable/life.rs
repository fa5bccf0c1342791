use waterwheel_durable::{Cancelled, Dead, NewTimer};

use crate::support::*;

#[tokio::test]
async fn a_timer_is_delivered_once_and_not_early() {
    let (_place, timers) = on_file().await;
    let mut deliveries = Deliveries::of(&timers, "reminder");
    let due = soon();
    let timer = timers.at("reminder", due).payload("a mail");
    let timer = timer.insert().await.unwrap();
    let seen = deliveries.next().await;
    assert_eq!(
        (seen.id, &*seen.payload),
        (timer.handle().id, &b"\"a mail\""[..])
    );
    assert!(seen.at >= due);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
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
    // None is answered before it is dropped.
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
    // What was asked is done.
    dead.next().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(deliveries.next().await.id, moved.handle().id);
    assert_eq!(timers.cancel(&cancelled).await, Ok(Cancelled::NotFound));
    until(|| timers.metrics().in_memory == 0).await;
    assert_eq!(shelf.len(), 4);
    shut_down(&timers).await;
}
