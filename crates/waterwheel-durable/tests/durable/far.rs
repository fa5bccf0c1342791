//! Timers at any distance, and downtimes of any length.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Cancelled, Durable, Error, NewTimer, Shift};

use crate::support::*;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Opens a file with the clock set ahead by this much.
async fn open_after(place: &Place, later: Duration) -> (Durable, Arc<Shift>) {
    let (builder, shift) = shifted();
    shift.set_wall(i64::try_from(later.as_micros()).unwrap());
    (place.open_by(builder).await, shift)
}

#[tokio::test]
async fn after_thirty_days_off_all_is_delivered() {
    const COUNT: u64 = 20_000;
    let (place, timers) = on_file().await;
    let month = 30 * 86_400_000;
    let batch = (0..COUNT).map(|at| NewTimer::after("mail", millis(at * 2_654_435_761 % month)));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    let later = timers.after("mail", DAY * 31).insert().await.unwrap();
    shut_down(&timers).await;

    let (timers, _shift) = open_after(&place, DAY * 30).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let mut left: HashSet<_> = inserted.iter().map(|it| it.handle().id).collect();
    while !left.is_empty() {
        let seen = deliveries.next().await;
        assert!(left.remove(&seen.id), "{seen:?}");
    }
    until(|| timers.metrics().in_memory == 0).await;
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());

    let (timers, _shift) = open_after(&place, DAY * 31).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(deliveries.next().await.id, later.handle().id);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_timer_ten_years_ahead_is_delivered_at_its_time() {
    let place = Place::new();
    let ten_years = DAY * 3_652;
    let timers = place.open().await;
    let due = SystemTime::now() + ten_years;
    let timer = timers.at("mail", due).bytes(*b"a").insert().await.unwrap();
    let gone = timers.at("mail", due).insert().await.unwrap();
    shut_down(&timers).await;

    // A few stops on the way.
    for years in [1, 5, 9] {
        let (timers, _) = open_after(&place, DAY * 365 * years).await;
        let deliveries = Deliveries::of(&timers, "mail");
        let control = timers.after("control", Duration::ZERO).insert();
        within(control).await.unwrap();
        let mut controls = Deliveries::of(&timers, "control");
        controls.next().await;
        shut_down(&timers).await;
        assert!(deliveries.rest().await.is_empty());
    }
    let (timers, shift) = open_after(&place, ten_years - Duration::from_secs(3)).await;
    // Without a handler it stays, even if it is due by now.
    assert_eq!(within(timers.cancel(&gone)).await, Ok(Cancelled::Done));
    let mut deliveries = Deliveries::of(&timers, "mail");
    let seen = deliveries.next().await;
    assert_eq!((seen.id, &*seen.payload), (timer.handle().id, &b"a"[..]));
    let shifted = Duration::from_micros(shift.wall().unsigned_abs());
    assert!(seen.at + shifted >= due);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_due_time_out_of_range_is_refused() {
    let (place, timers) = on_file().await;
    let beyond = Duration::from_secs(u64::MAX >> 8);
    let after = timers.after("mail", Duration::MAX).insert();
    assert_eq!(within(after).await, Err(Error::DueOutOfRange));
    let at = UNIX_EPOCH + beyond;
    let refused = within(timers.at("mail", at).insert()).await;
    assert_eq!(refused, Err(Error::DueOutOfRange));
    let timer = timers.after("mail", DAY).insert().await.unwrap();
    let moved = within(timers.reschedule(&timer, at)).await;
    assert_eq!(moved, Err(Error::DueOutOfRange));
    assert_eq!(timers.cancel(&timer).await, Ok(Cancelled::Done));
    // The last time that a file can represent.
    let last = UNIX_EPOCH + Duration::from_millis(i64::MAX as u64);
    let timer = timers.at("mail", last).insert().await.unwrap();
    let timers = place.reopen(timers).await;
    let _deliveries = Deliveries::of(&timers, "mail");
    assert_eq!(within(timers.cancel(&timer)).await, Ok(Cancelled::Done));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_longer_window_loads_earlier() {
    let ahead = Duration::from_secs(14);
    for (window, loads) in [(15, true), (2, false)] {
        let (timers, _) =
            in_memory_by(Durable::builder().window(Duration::from_secs(window))).await;
        let _deliveries = Deliveries::of(&timers, "mail");
        timers.after("mail", ahead).insert().await.unwrap();
        if loads {
            let begun = SystemTime::now();
            until(|| timers.metrics().in_memory == 1).await;
            // It is loaded because of the window, not because its time has come.
            assert!(begun.elapsed().unwrap() < Duration::from_secs(10));
        } else {
            let mut control = Deliveries::of(&timers, "control");
            timers.at("control", soon()).insert().await.unwrap();
            control.next().await;
            // The control is settled, and the other timer is not in memory.
            until(|| timers.metrics().in_memory == 0).await;
        }
        shut_down(&timers).await;
    }
}
