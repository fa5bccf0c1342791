//! A cancel says what became of the timer, and keeps its word.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use waterwheel_durable::{Cancelled, Durable, Id};

use crate::support::{
    Deliveries, HOUR, Place, Shelf, in_an_hour, millis, shut_down, soon, until, within,
};

on_both_flavors! {
    a_cancelled_timer_is_not_delivered
    what_is_with_its_handler_has_fired
}

/// One of ten is not due while the test runs.
const FAR: u64 = 10;

/// Cancels timers about the time at which they are due. Each is cancelled or delivered, and never both.
async fn race(timers: &Durable, count: u64) -> HashMap<&'static str, u64> {
    let deliveries = Deliveries::of(timers, "race");
    let mut cancels = JoinSet::new();
    let begin = SystemTime::now() + millis(100);
    for number in 0..count {
        let timers = timers.clone();
        cancels.spawn(async move {
            let near = begin + Duration::from_micros(number * 7_919_311 % 800_000);
            let due = match number % FAR {
                0 => near + HOUR,
                _ => near,
            };
            let timer = timers.at("race", due).insert().await.unwrap();
            // From 20 ms before the due time to 4 ms after it.
            let cancelled_at = near - millis(20) + Duration::from_micros(number * 733 % 24_000);
            if let Ok(left) = cancelled_at.duration_since(SystemTime::now()) {
                tokio::time::sleep(left).await;
            }
            (timer.handle().id, timers.cancel(&timer).await.unwrap())
        });
    }
    let cancelled = within(cancels.join_all()).await;
    shut_down(timers).await;
    let mut delivered: HashMap<Id, usize> = HashMap::new();
    for seen in deliveries.rest().await {
        *delivered.entry(seen.id).or_default() += 1;
    }
    let mut outcomes = HashMap::new();
    for (id, cancelled) in cancelled {
        let times = delivered.get(&id).copied().unwrap_or(0);
        let (name, expected) = match cancelled {
            Cancelled::Done => ("done", 0),
            Cancelled::AlreadyFired => ("fired", 1),
            Cancelled::NotFound => ("settled", 1),
        };
        // Without a crash nothing is delivered twice.
        assert_eq!(times, expected, "{id}: {cancelled:?}");
        *outcomes.entry(name).or_default() += 1;
    }
    outcomes
}

/// Some were cancelled shortly before they were due, and some too late.
fn assert_raced(outcomes: &HashMap<&str, u64>, count: u64) {
    let done = outcomes.get("done").copied().unwrap_or(0);
    assert!(done > count / FAR && done < count, "{outcomes:?}");
}

async fn a_cancelled_timer_is_not_delivered() {
    let timers = Durable::builder()
        .open_store(Shelf::default())
        .await
        .unwrap();
    let outcomes = race(&timers, 4_000).await;
    assert_raced(&outcomes, 4_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_timer_of_a_file_is_not_delivered() {
    let place = Place::new();
    let timers = place.open().await;
    let outcomes = race(&timers, 2_000).await;
    assert_raced(&outcomes, 2_000);
    // Nor after a restart.
    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "race");
    let last = timers.at("race", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.id, last.handle().id);
    shut_down(&timers).await;
}

async fn what_is_with_its_handler_has_fired() {
    let shelf = Shelf::default();
    let timers = Durable::builder().open_store(shelf.clone()).await.unwrap();
    let begun = Arc::new(Semaphore::new(0));
    let go_on = Arc::new(Semaphore::new(0));
    timers.handle("mail", {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        move |_| {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            async move {
                begun.add_permits(1);
                go_on.acquire().await?.forget();
                Ok(())
            }
        }
    });
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    within(begun.acquire()).await.unwrap().forget();
    let cancelled = within(timers.cancel(&timer)).await;
    assert_eq!(cancelled, Ok(Cancelled::AlreadyFired));
    // Also while it is being settled.
    let commits = shelf.hold();
    go_on.add_permits(1);
    until(|| shelf.commits() > commits).await;
    let cancelled = within(timers.cancel(&timer)).await;
    assert_eq!(cancelled, Ok(Cancelled::AlreadyFired));
    shelf.go_on();
    until(|| timers.metrics().in_memory == 0).await;
    let cancelled = within(timers.cancel(&timer)).await;
    assert_eq!(cancelled, Ok(Cancelled::NotFound));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_timer_is_cancelled_once() {
    let place = Place::new();
    let timers = place.open().await;
    for due in [
        soon() + millis(5_000),
        in_an_hour(),
        in_an_hour() + HOUR * 48,
    ] {
        let timer = timers.at("mail", due).insert().await.unwrap();
        let mut cancels = JoinSet::new();
        for _ in 0..20 {
            let (timers, timer) = (timers.clone(), timer.clone());
            cancels.spawn(async move { timers.cancel(timer).await.unwrap() });
        }
        let all = within(cancels.join_all()).await;
        let done = all.iter().filter(|it| **it == Cancelled::Done).count();
        let none = all.iter().filter(|it| **it == Cancelled::NotFound).count();
        assert_eq!((done, none), (1, 19));
    }
    shut_down(&timers).await;
}
