//! Namespaces while clocks are set, forward and back, and the machine is suspended.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Backoff, Durable, Inserted, Policy, Rate, Retry, Shift};

use crate::namespaces::create;
use crate::support::*;

const SECOND: i64 = 1_000_000;

async fn open(shift: &Arc<Shift>, shelf: &Shelf) -> Durable {
    let builder = Durable::builder().shifted_clocks(Arc::clone(shift));
    within(builder.store(shelf.clone()).open()).await.unwrap()
}

#[tokio::test]
async fn each_namespace_follows_a_clock_that_is_set_both_ways() {
    let shift = Arc::new(Shift::default());
    let timers = open(&shift, &Shelf::default()).await;
    create(&timers, "free", Policy::default()).await;
    create(&timers, "paused", Policy::default()).await;
    let limited = Policy::default().rate(Rate::per_second(1_000).burst(100));
    create(&timers, "limited", limited).await;
    let names = ["free", "paused", "limited"];
    let handlers = names.map(|name| format!("{name}/mail"));
    let mut deliveries = handlers
        .each_ref()
        .map(|name| Deliveries::of(&timers, name));
    let paused = timers.namespace("paused").unwrap();
    for by in [
        3_600 * SECOND,
        -7_200 * SECOND,
        365 * 86_400 * SECOND,
        -30 * SECOND,
    ] {
        within(paused.pause()).await.unwrap();
        // After setting the clock back, future timers do not come up; after setting it forward, all passed ones do.
        let ahead = present(&shift) + HOUR * 3;
        let mut handles = Vec::new();
        for handler in &handlers {
            let timer = timers.at(handler, ahead).insert().await.unwrap();
            handles.push(timer.into_handle());
        }
        let jumps = timers.metrics().clock_jumps;
        shift.set_wall(shift.wall() + by);
        until(|| timers.metrics().clock_jumps == jumps + 1).await;
        let is_past = present(&shift) >= ahead;
        assert_eq!(is_past, by > 7_200 * SECOND);
        for (handler, deliveries) in handlers.iter().zip(&mut deliveries) {
            if handler.starts_with("paused") {
                continue;
            }
            let now = timers.at(handler, present(&shift)).insert().await.unwrap();
            let mut expected = vec![now.handle().id];
            if is_past {
                let own = handles.iter().filter(|it| *it.handler == **handler);
                expected.extend(own.map(|it| it.id));
            }
            let mut seen = Vec::new();
            for _ in &expected {
                let delivery = deliveries.next().await;
                assert!(present(&shift) >= delivery.due);
                seen.push(delivery.id);
            }
            expected.sort();
            seen.sort();
            assert_eq!(seen, expected);
        }
        assert!(deliveries[1].so_far().is_empty());
        within(paused.resume()).await.unwrap();
        match is_past {
            true => assert_eq!(deliveries[1].next().await.id, handles[1].id),
            false => {
                for handle in &handles {
                    within(timers.cancel(handle)).await.unwrap();
                }
            }
        }
    }
    shut_down(&timers).await;
    for deliveries in deliveries {
        assert!(deliveries.rest().await.is_empty());
    }
}

/// Checks that a held-up timer that is no longer due is delivered after one that is due now.
async fn is_not_early(
    held: &Inserted,
    due: SystemTime,
    timers: &Durable,
    shift: &Shift,
    deliveries: &mut Deliveries,
) {
    let now = timers.at("shop/mail", present(shift));
    let now = now.insert().await.unwrap();
    let first = deliveries.next().await;
    if first.id == held.handle().id {
        // The machine is so slow that its time has come again.
        assert!(present(shift) >= due);
        assert_eq!(deliveries.next().await.id, now.handle().id);
    } else {
        assert_eq!(first.id, now.handle().id);
        shift.set_wall(0);
        assert_eq!(deliveries.next().await.id, held.handle().id);
        assert!(present(shift) >= due);
    }
}

#[tokio::test]
async fn what_was_held_up_is_not_early_after_a_clock_is_set_back() {
    // Within the seconds that stay in memory, and beyond them.
    for back in [SECOND + SECOND / 2, 3_600 * SECOND] {
        for is_paused in [true, false] {
            let shift = Arc::new(Shift::default());
            let timers = open(&shift, &Shelf::default()).await;
            let shop = create(&timers, "shop", Policy::default().concurrency(1)).await;
            let gate = Gate::of(&timers, "shop/slow");
            let mut deliveries = Deliveries::of(&timers, "shop/mail");
            if is_paused {
                within(shop.pause()).await.unwrap();
            } else {
                // The only place is taken.
                let now = present(&shift);
                timers.at("shop/slow", now).insert().await.unwrap();
                gate.has_begun().await;
            }
            let due = present(&shift);
            let held = timers.at("shop/mail", due).insert().await.unwrap();
            until(|| shop.metrics().oldest_overdue.is_some()).await;
            shift.set_wall(-back);
            until(|| timers.metrics().clock_jumps == 1).await;
            match is_paused {
                true => within(shop.resume()).await.unwrap(),
                false => gate.go_on.add_permits(1),
            }
            is_not_early(&held, due, &timers, &shift, &mut deliveries).await;
            shut_down(&timers).await;
        }
    }
}

#[tokio::test]
async fn a_suspension_counts_in_each_namespace() {
    let shift = Arc::new(Shift::default());
    let timers = open(&shift, &Shelf::default()).await;
    let backoff = Backoff::new(Duration::from_secs(60), HOUR).max_attempts(5);
    create(&timers, "fails", Policy::default().backoff(backoff)).await;
    let by_hours = Policy::default().retry_delays([HOUR; 4]);
    create(&timers, "retry_delays", by_hours).await;
    let fails = |_: &_| Err(Retry::backoff("no"));
    let mut handlers = ["fails/mail", "retry_delays/mail"]
        .map(|name| (name, Deliveries::ended(&timers, name, fails)));
    for (name, _) in &handlers {
        timers.at(name, UNIX_EPOCH).insert().await.unwrap();
    }
    for attempt in 1..=5 {
        for (name, deliveries) in &mut handlers {
            assert_eq!(deliveries.next().await.attempt, attempt, "{name}");
        }
        let ended = |name: &str| {
            let metrics = timers.namespace(name).unwrap().metrics();
            metrics.retried + metrics.dead == u64::from(attempt)
        };
        until(|| ended("fails") && ended("retry_delays")).await;
        shift.suspend(3_600_000_000);
    }
    assert_eq!(timers.metrics().clock_jumps, 0);
    let dead = within(timers.dead_letters(None, 10)).await.unwrap();
    assert_eq!(dead.len(), 2);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_wrong_clock_at_the_first_start_loses_nothing() {
    // A machine without a battery-backed clock begins in 1970, or in 2100, until it has synchronized.
    for start in [
        UNIX_EPOCH + Duration::from_secs(30),
        UNIX_EPOCH + HOUR * 24 * 365 * 130,
    ] {
        let shift = Arc::new(Shift::default());
        let real = SystemTime::now();
        let by = match start.duration_since(real) {
            Ok(ahead) => i64::try_from(ahead.as_micros()).unwrap(),
            Err(behind) => -i64::try_from(behind.duration().as_micros()).unwrap(),
        };
        shift.set_wall(by);
        let shelf = Shelf::default();
        let timers = open(&shift, &shelf).await;
        let shop = create(&timers, "shop", Policy::default().retention(3)).await;
        let mut deliveries = Deliveries::of(&timers, "shop/mail");
        // One with a correct due time, in an hour; and one with a delay, which counts from the clock as it is.
        let due = real + HOUR;
        let right = timers.at("shop/mail", due).insert().await.unwrap();
        let delayed = shop.after("mail", millis(5)).insert().await.unwrap();
        let mut seen = vec![deliveries.next().await.id];
        let is_behind = by < 0;
        if !is_behind {
            // By that clock, it has long been due.
            seen.push(deliveries.next().await.id);
            seen.sort();
            assert_eq!(seen, [right.handle().id, delayed.handle().id]);
        } else {
            assert_eq!(seen, [delayed.handle().id]);
        }
        let later = shop.after("mail", HOUR * 5).insert().await.unwrap();
        // The clock is corrected.
        shift.set_wall(0);
        until(|| timers.metrics().clock_jumps == 1).await;
        if is_behind {
            // The timer that was set for five hours after 1970 is due.
            assert_eq!(deliveries.next().await.id, later.handle().id);
            assert!(SystemTime::now() < due);
            shift.suspend(3_601_000_000);
            assert_eq!(deliveries.next().await.id, right.handle().id);
        } else {
            // It waits for the time that was written, and can be moved.
            let soon = SystemTime::now() + millis(5);
            within(timers.reschedule(&later, soon)).await.unwrap();
            let seen = deliveries.next().await;
            assert!(seen.id == later.handle().id && seen.at >= soon);
        }
        until(|| shop.metrics().settled == 3).await;
        shut_down(&timers).await;
        // The next start continues with the correct clock.
        let timers = open(&shift, &shelf).await;
        let mut deliveries = Deliveries::of(&timers, "shop/mail");
        let now = present(&shift);
        let timer = timers.at("shop/mail", now).insert().await.unwrap();
        assert_eq!(deliveries.next().await.id, timer.handle().id);
        shut_down(&timers).await;
    }
}
