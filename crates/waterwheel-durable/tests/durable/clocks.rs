//! Due times follow the wall clock, even if it is set, and if the machine is suspended.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use waterwheel_durable::{Durable, Event, HandlerOptions, NewTimer, Shift};

use crate::support::*;

const SECOND: i64 = 1_000_000;
const YEAR: i64 = 365 * 24 * 3_600 * SECOND;

on_both_flavors! {
    a_clock_that_is_set_forward_fires_at_once
    a_clock_that_is_set_back_fires_neither_early_nor_twice
    a_suspension_counts
    what_is_on_its_way_as_the_clock_is_set_back_waits_again
}

async fn open() -> (Durable, Arc<Shift>) {
    let (builder, shift) = shifted();
    (in_memory_by(builder).await.0, shift)
}

async fn a_clock_that_is_set_forward_fires_at_once() {
    let (timers, shift) = open().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    // Nothing else is happening: an idle service notices the change.
    let mut jumps = 0;
    for (distance, micros) in [
        (Duration::from_secs(30), 40 * SECOND),
        (HOUR, 3_700 * SECOND),
        (HOUR * 24 * 300, YEAR),
    ] {
        let due = present(&shift) + distance;
        let timer = timers.at("mail", due).insert().await.unwrap();
        assert!(deliveries.so_far().is_empty());
        shift.set_wall(shift.wall() + micros);
        assert_eq!(deliveries.next().await.id, timer.handle().id);
        assert!(present(&shift) >= due);
        jumps += 1;
        assert_eq!(timers.metrics().clock_jumps, jumps);
        until(|| timers.metrics().in_memory == 0).await;
    }
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

async fn a_clock_that_is_set_back_fires_neither_early_nor_twice() {
    for back in [2 * SECOND, 10 * SECOND, 3_600 * SECOND, YEAR] {
        let mut lead = millis(400);
        let (shift, timers, mut deliveries, old, old_due) = loop {
            let (timers, shift) = open().await;
            let deliveries = Deliveries::of(&timers, "mail");
            let old_due = present(&shift) + lead;
            let old = timers.at("mail", old_due).insert().await.unwrap();
            until(|| timers.metrics().in_memory == 1 || SystemTime::now() > old_due).await;
            shift.set_wall(-back);
            until(|| timers.metrics().clock_jumps == 1).await;
            if timers.metrics().namespaces[0].delivered == 0 {
                break (shift, timers, deliveries, old, old_due);
            }
            // It came up before the clock was set, because the machine is slow.
            lead *= 2;
            assert!(lead < HOUR);
        };
        // A control that is due by the new time, later than the other timer would have been by the old time.
        let left = old_due.duration_since(SystemTime::now());
        let due = present(&shift) + left.unwrap_or_default() + millis(200);
        let control = timers.at("mail", due).insert().await.unwrap();
        let seen = deliveries.next().await;
        assert_eq!(seen.id, control.handle().id, "{back}");
        assert!(SystemTime::now() >= old_due && present(&shift) >= due);
        // Forward again.
        shift.set_wall(0);
        assert_eq!(deliveries.next().await.id, old.handle().id);
        assert_eq!(timers.metrics().clock_jumps, 2);
        shut_down(&timers).await;
        assert!(deliveries.rest().await.is_empty());
    }
}

async fn what_is_on_its_way_as_the_clock_is_set_back_waits_again() {
    const TIMERS: usize = 200;
    // All at once, and one after another, where each worker continues with the next delivery.
    for concurrency in [TIMERS, 1] {
        let (timers, shift) = open().await;
        let (sender, mut calls) = tokio::sync::mpsc::unbounded_channel();
        let (clock, is_first) = (Arc::clone(&shift), AtomicBool::new(true));
        let options = HandlerOptions::default().concurrency(concurrency);
        timers.handle_with("mail", options, move |delivery| {
            let is_early = present(&clock) < delivery.due();
            let _ = sender.send((delivery.id(), delivery.attempt(), is_early));
            // All of them are due. The first handler that is called sets the clock back.
            if is_first.swap(false, Ordering::SeqCst) {
                clock.set_wall(-3_600 * SECOND);
            }
            async { Ok(()) }
        });
        let due = present(&shift) + millis(100);
        let all = [(); TIMERS].map(|()| NewTimer::at("mail", due));
        within(timers.insert_many(all)).await.unwrap();
        let metrics = || timers.metrics().namespaces[0].clone();
        until(|| shift.wall() < 0 && metrics().running == 0).await;
        // Each thread may have read the clock just before it was set.
        let threads = Handle::current().metrics().num_workers();
        let mut seen = Vec::from_iter(std::iter::from_fn(|| calls.try_recv().ok()));
        assert!((1..=threads).contains(&seen.len()), "{seen:?}");
        assert_eq!(metrics().delivered, seen.len() as u64);
        // It is as if they had never been handed out.
        shift.set_wall(0);
        while seen.len() < TIMERS {
            let (id, attempt, is_early) = within(calls.recv()).await.unwrap();
            assert!(!is_early, "{id} in attempt {attempt}");
            seen.push((id, attempt, is_early));
        }
        until(|| metrics().settled == TIMERS as u64).await;
        let ids: HashSet<_> = seen.iter().map(|(id, ..)| *id).collect();
        assert!(ids.len() == TIMERS && seen.iter().all(|(_, attempt, _)| *attempt == 1));
        assert_eq!(metrics().delivered, TIMERS as u64);
        shut_down(&timers).await;
        assert!(calls.recv().await.is_none());
    }
}

async fn a_suspension_counts() {
    let (timers, shift) = open().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    for distance in [millis(1_500), HOUR, HOUR * 48] {
        let due = present(&shift) + distance;
        let timer = timers.at("mail", due).insert().await.unwrap();
        let micros = u64::try_from(distance.as_micros()).unwrap();
        shift.suspend(micros + 1_000);
        assert_eq!(deliveries.next().await.id, timer.handle().id);
        assert!(present(&shift) >= due);
    }
    // The clocks did not move against each other.
    assert_eq!(timers.metrics().clock_jumps, 0);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_clock_that_was_set_is_reported() {
    let shift = Arc::new(Shift::default());
    let (builder, mut events) = reported(Durable::builder().shifted_clocks(Arc::clone(&shift)));
    let (timers, _) = in_memory_by(builder).await;
    for micros in [2 * SECOND, -2 * SECOND, 0] {
        shift.set_wall(micros);
        assert_eq!(within(events.recv()).await, Some(Event::ClockJumped));
    }
    // Some time services slew by half a second: the service follows, and reports nothing.
    let mut deliveries = Deliveries::of(&timers, "mail");
    let mut tries = 0;
    loop {
        let due = present(&shift) + millis(800);
        timers.at("mail", due).insert().await.unwrap();
        shift.set_wall(SECOND / 2);
        let seen = deliveries.next().await;
        assert!(present(&shift) >= due);
        if seen.at < due {
            break;
        }
        // By the old time, it was already due, because the machine is slow.
        tries += 1;
        assert!(tries < 50);
        shift.set_wall(0);
    }
    assert!(events.try_recv().is_err() && timers.metrics().clock_jumps == 3);
    shut_down(&timers).await;
    // The counts remain, even after further requests to the service.
    assert!(timers.at("mail", present(&shift)).insert().await.is_err());
    assert_eq!(timers.metrics().clock_jumps, 3);
}

#[tokio::test]
async fn a_delay_counts_from_the_clock_at_the_insert() {
    let (builder, shift) = shifted();
    shift.set_wall(-YEAR);
    let (timers, _) = in_memory_by(builder).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let before = present(&shift);
    timers.after("mail", millis(50)).insert().await.unwrap();
    let seen = deliveries.next().await;
    assert!(seen.due >= before + millis(50) && seen.due <= present(&shift));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_delivery_knows_how_late_it_is() {
    let (timers, shift) = open().await;
    let (sender, mut lateness) = tokio::sync::mpsc::unbounded_channel();
    timers.handle("mail", move |delivery| {
        let _ = sender.send(delivery.lateness());
        async { Ok(()) }
    });
    let before = SystemTime::now();
    timers.after("mail", HOUR).insert().await.unwrap();
    shift.set_wall(3 * 3_600 * SECOND);
    let late = within(lateness.recv()).await.unwrap();
    let took = before.elapsed().unwrap();
    // The due time is rounded up to a millisecond.
    assert!(
        late + millis(1) >= HOUR * 2 && late <= HOUR * 2 + took,
        "{late:?}"
    );
    shut_down(&timers).await;
}

#[tokio::test]
async fn the_lateness_counted_is_that_of_the_call() {
    let (timers, shift) = open().await;
    let clock = Arc::clone(&shift);
    let is_first = AtomicBool::new(true);
    // Both are handed out at once. The first handler that is called sets the clock, so the other one is late.
    timers.handle("mail", move |_| {
        if is_first.swap(false, Ordering::SeqCst) {
            clock.set_wall(2 * 3_600 * SECOND);
        }
        async { Ok(()) }
    });
    let due = present(&shift) + millis(100);
    let both = [(); 2].map(|()| NewTimer::at("mail", due));
    within(timers.insert_many(both)).await.unwrap();
    let default = timers.namespace("default").unwrap();
    until(|| default.metrics().settled == 2).await;
    let lateness = default.metrics().lateness;
    assert_eq!(lateness.count(), 2);
    assert!(
        lateness.quantile(0.5).unwrap() <= HOUR && lateness.quantile(1.0).unwrap() > HOUR,
        "{lateness:?}"
    );
    shut_down(&timers).await;
}
