//! A cancel reports what happened to the timer, and its answer holds.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use waterwheel_durable::store::Command;
use waterwheel_durable::{Cancelled, Durable, Id, Rescheduled};

use crate::support::*;

on_both_flavors! {
    a_cancelled_timer_is_not_delivered
    what_has_fired_or_is_gone_is_not_cancelled_or_moved
}

/// One timer in this many is not due while the test runs.
const FAR: u64 = 10;

/// Cancels timers around the time at which they are due. Each is either cancelled or delivered, never both.
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
        // Without a crash, nothing is delivered twice.
        assert_eq!(times, expected, "{id}: {cancelled:?}");
        *outcomes.entry(name).or_default() += 1;
    }
    outcomes
}

/// Checks that some were cancelled shortly before they were due, and some too late.
fn assert_raced(outcomes: &HashMap<&str, u64>, count: u64) {
    let done = outcomes.get("done").copied().unwrap_or(0);
    assert!(done > count / FAR && done < count, "{outcomes:?}");
}

async fn a_cancelled_timer_is_not_delivered() {
    let (timers, _) = in_memory().await;
    let outcomes = race(&timers, 4_000).await;
    assert_raced(&outcomes, 4_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_timer_of_a_file_is_not_delivered() {
    let (place, timers) = on_file().await;
    let outcomes = race(&timers, 2_000).await;
    assert_raced(&outcomes, 2_000);
    // Not after a restart either.
    let timers = place.open().await;
    let mut deliveries = Deliveries::of(&timers, "race");
    let last = timers.at("race", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.id, last.handle().id);
    shut_down(&timers).await;
}

async fn what_has_fired_or_is_gone_is_not_cancelled_or_moved() {
    let (timers, shelf) = in_memory().await;
    let gate = Gate::of(&timers, "mail");
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    let gone = timers.at("mail", in_an_hour()).insert().await.unwrap();
    assert_eq!(timers.cancel(&gone).await, Ok(Cancelled::Done));
    let expect = async |timer, cancelled, moved| {
        assert_eq!(within(timers.cancel(timer)).await, Ok(cancelled));
        let found = within(timers.reschedule(timer, in_an_hour())).await;
        assert_eq!(found, Ok(moved));
    };
    gate.has_begun().await;
    let fired = (Cancelled::AlreadyFired, Rescheduled::AlreadyFired);
    expect(&timer, fired.0, fired.1).await;
    // Even while it is being settled, which is held up.
    let commits = shelf.hold();
    gate.go_on.add_permits(1);
    until(|| shelf.commits() > commits).await;
    expect(&timer, fired.0, fired.1).await;
    shelf.go_on();
    until(|| timers.metrics().in_memory == 0).await;
    for gone in [&timer, &gone] {
        expect(gone, Cancelled::NotFound, Rescheduled::NotFound).await;
    }
    shut_down(&timers).await;
    assert!(gate.ended() == 1 && shelf.len() == 0);
}

#[tokio::test]
async fn a_timer_is_cancelled_once() {
    let (_place, timers) = on_file().await;
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

#[tokio::test]
async fn a_hint_makes_a_command_wait_for_no_poll() {
    let (timers, shelf) = in_memory().await;
    for number in 1..100 {
        let timer = added(timers.at("close", in_an_hour())).await;
        shelf.send(number, Command::Cancel(timer.handle().clone()));
        until(|| shelf.len() == 0).await;
    }
    shut_down(&timers).await;
    // The service is gone.
    shelf.send(100, Command::Pause("default".into()));
}
