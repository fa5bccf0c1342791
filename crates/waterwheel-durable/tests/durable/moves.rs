//! Timers are moved, and their handles stay valid.

use std::time::{Duration, SystemTime};

use waterwheel_durable::{Cancelled, Durable, Handle, Rescheduled, Retry};

use crate::support::*;

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[tokio::test]
async fn a_timer_is_moved_to_earlier_from_each_distance() {
    let (_place, timers) = on_file().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    // Due in this second, and in a bucket of a second, a minute, an hour, a day, and many of them.
    for distance in [
        millis(900),
        millis(8_000),
        HOUR / 2,
        HOUR * 20,
        DAY * 40,
        DAY * 3_650,
    ] {
        let (timer, due) = loop {
            let timer = timers.after("mail", distance).key("k").bytes(*b"a");
            let timer = timer.insert().await.unwrap();
            let due = soon();
            match within(timers.reschedule(&timer, due)).await.unwrap() {
                Rescheduled::Done => break (timer, due),
                // It came up before it was moved: the disk is slow.
                late => assert!(distance < HOUR / 2, "{late:?}"),
            }
            deliveries.next().await;
            until(|| timers.metrics().in_memory == 0).await;
        };
        let seen = deliveries.next().await;
        assert_eq!((seen.id, seen.attempt), (timer.handle().id, 1));
        assert_eq!(&*seen.payload, b"a");
        assert!(seen.at >= due && seen.due >= due && seen.due < due + millis(1));
        until(|| timers.metrics().in_memory == 0).await;
        assert_eq!(timers.cancel(&timer).await, Ok(Cancelled::NotFound));
    }
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_timer_is_moved_to_later_and_not_delivered_before() {
    let (_place, timers) = on_file().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let mut lead = millis(300);
    let (moved, control, later) = loop {
        let first = SystemTime::now() + lead;
        let moved = timers.at("mail", first).insert().await.unwrap();
        let control = timers.at("mail", first).insert().await.unwrap();
        let later = first + millis(200);
        if within(timers.reschedule(&moved, later)).await == Ok(Rescheduled::Done) {
            break (moved, control, later);
        }
        // It came up before it was moved: the disk is slow.
        for _ in 0..2 {
            assert!(deliveries.next().await.at >= first);
        }
        lead *= 2;
        assert!(lead < HOUR);
    };
    assert_eq!(deliveries.next().await.id, control.handle().id);
    let seen = deliveries.next().await;
    assert!(seen.id == moved.handle().id && seen.at >= later);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_handle_survives_moves_restarts_and_its_text() {
    let (place, timers) = on_file().await;
    let timer = timers.at("mail", in_an_hour()).insert().await.unwrap();
    let text = timer.handle().to_string();
    for due in [soon() + DAY * 30, soon() + millis(3_000), soon() + DAY] {
        let moved = within(timers.reschedule(&timer, due)).await;
        assert_eq!(moved, Ok(Rescheduled::Done));
    }
    let timers = place.reopen(timers).await;
    let handle: Handle = text.parse().unwrap();
    let moved = within(timers.reschedule(&handle, in_an_hour())).await;
    assert_eq!(moved, Ok(Rescheduled::Done));
    let timers = place.reopen(timers).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let moved = within(timers.reschedule(&handle, soon())).await;
    assert_eq!(moved, Ok(Rescheduled::Done));
    assert_eq!(deliveries.next().await.id, handle.id);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_timer_that_is_tried_again_is_moved_by_its_first_handle() {
    let place = Place::new();
    let timers = place
        .open_by(Durable::builder().retry_delays([HOUR, HOUR]))
        .await;
    let failing = |_: &_| Err(Retry::backoff("later"));
    let mut deliveries = Deliveries::ended(&timers, "mail", failing);
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.attempt, 1);
    // A reschedule that arrives before the failure is written waits for that.
    let moved = within(async {
        loop {
            match timers.reschedule(&timer, soon()).await.unwrap() {
                Rescheduled::AlreadyFired => tokio::task::yield_now().await,
                other => break other,
            }
        }
    })
    .await;
    assert_eq!(moved, Rescheduled::Done);
    let second = deliveries.next().await;
    assert_eq!((second.id, second.attempt), (timer.handle().id, 2));
    shut_down(&timers).await;
    // The second failure is durable, and the handle is still valid.
    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let moved = within(timers.reschedule(&timer, soon())).await;
    assert_eq!(moved, Ok(Rescheduled::Done));
    assert_eq!(deliveries.next().await.attempt, 3);
    shut_down(&timers).await;
}
