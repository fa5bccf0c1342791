//! A cancel says what became of the timer, and keeps its word.

use std::collections::HashMap;
use std::sync::Arc;

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

/// Cancels timers about the time at which they are due. Each is cancelled or delivered, and never both.
async fn race(timers: &Durable, count: u64) -> HashMap<&'static str, usize> {
    let deliveries = Deliveries::of(timers, "race");
    let mut cancels = JoinSet::new();
    for number in 0..count {
        let timers = timers.clone();
        cancels.spawn(async move {
            // Where a sync takes long, the others are all due before they can be cancelled.
            let delay = match number % 10 {
                0 => HOUR,
                _ => millis(number * 7_919 % 200),
            };
            let timer = timers.after("race", delay).insert().await.unwrap();
            // Many at the very tick at which they are due, some before, some after.
            let wait = delay + millis(number % 5) - millis(2).min(delay);
            tokio::time::sleep(wait.min(millis(200))).await;
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
        // Without a crash nothing is delivered twice. What is due late is delivered in the next life, after a shutdown: here, all was due.
        assert_eq!(times, expected, "{id}: {cancelled:?}");
        *outcomes.entry(name).or_default() += 1;
    }
    outcomes
}

async fn a_cancelled_timer_is_not_delivered() {
    let timers = Durable::builder()
        .open_store(Shelf::default())
        .await
        .unwrap();
    let outcomes = race(&timers, 4_000).await;
    let done = outcomes.get("done").copied().unwrap_or(0);
    assert!(done > 0 && done < 4_000, "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_timer_of_a_file_is_not_delivered() {
    let place = Place::new();
    let timers = place.open().await;
    let outcomes = race(&timers, 2_000).await;
    let done = outcomes.get("done").copied().unwrap_or(0);
    assert!(done > 0 && done < 2_000, "{outcomes:?}");
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
    shelf.hold();
    let commits = shelf.commits();
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
