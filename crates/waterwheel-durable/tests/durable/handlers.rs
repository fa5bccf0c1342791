//! A handler that hangs or blocks delays no other one.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use tokio::runtime::Runtime;
use waterwheel_durable::{Durable, Handle, HandlerOptions, NewTimer, Shift};

use crate::support::*;

on_both_flavors! {
    so_many_deliveries_are_with_a_handler_as_it_allows
}

/// Longer than everything else in a test.
const LONG: Duration = Duration::from_secs(60);

async fn so_many_deliveries_are_with_a_handler_as_it_allows() {
    let (timers, _) = in_memory().await;
    let options = HandlerOptions::default().concurrency(3);
    let gate = Gate::with(&timers, "mail", options);
    insert(&timers, "mail", 10).await;
    for _ in 0..3 {
        gate.has_begun().await;
    }
    // All are due and in memory before the next one continues.
    until(|| timers.metrics().in_memory == 10).await;
    tokio::time::sleep(millis(50)).await;
    assert_eq!((timers.metrics().running, gate.begun_more()), (3, 0));
    for left in (0..7).rev() {
        gate.go_on.add_permits(1);
        gate.has_begun().await;
        until(|| timers.metrics().in_memory == left + 3).await;
        assert_eq!(timers.metrics().running, 3);
    }
    gate.go_on.add_permits(3);
    shut_down(&timers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_delays_no_other() {
    let (timers, _) = in_memory().await;
    let (go_on, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let one = HandlerOptions::default().concurrency(1);
    timers.handle_with("blocks", one, move |_| {
        let _ = begun.send(());
        // Without `spawn_blocking`, so a worker of the runtime is blocked.
        let _ = wait.lock().unwrap().recv_timeout(LONG);
        async { Ok(()) }
    });
    let mut deliveries = Deliveries::of(&timers, "mail");
    timers.at("blocks", soon()).insert().await.unwrap();
    within(begins.recv()).await.unwrap();
    for _ in 0..100 {
        let timer = timers.at("mail", soon()).insert().await.unwrap();
        assert_eq!(deliveries.next().await.id, timer.handle().id);
    }
    until(|| timers.metrics().running == 1).await;
    go_on.send(()).unwrap();
    shut_down(&timers).await;
}

/// Polls a cancel of a nonexistent timer, which turns the engine here, on this worker.
fn turn(timers: &Durable) {
    // After this, the engine's time is older than a millisecond.
    std::thread::sleep(millis(5));
    let nothing: Handle = "7@0@none".parse().unwrap();
    let _ = polled(Box::pin(timers.cancel(&nothing)));
}

fn two_workers() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Tasks that a blocked worker has spawned or woken must not stay where no other worker can take them.
fn a_blocked_worker_holds_nothing(
    due: Duration,
    act: impl Fn(&Durable, &Shift) + Send + Sync + 'static,
) {
    let runtime = two_workers();
    let (builder, shift) = shifted();
    let (timers, _) = runtime.block_on(in_memory_by(builder));
    let mut deliveries = Deliveries::of(&timers, "mail");
    let (go_on, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (ended, ends) = mpsc::channel();
    timers.handle("blocks", move |delivery| {
        act(delivery.timers(), &shift);
        let went_on = wait.lock().unwrap().recv_timeout(LONG / 3);
        let _ = ended.send(went_on.is_ok());
        async { Ok(()) }
    });
    runtime.block_on(async {
        timers.after("mail", due).insert().await.unwrap();
        // On a slow machine it may already be gone.
        let is_there = || timers.metrics().in_memory == 1;
        until(|| is_there() || timers.metrics().namespaces[0].settled == 1).await;
        timers.after("blocks", millis(10)).insert().await.unwrap();
    });
    // Only this thread waits for the delivery: a task might free what is stuck.
    block_on(deliveries.next_untimed());
    let _ = go_on.send(());
    assert!(
        ends.recv_timeout(LONG).unwrap(),
        "the delivery waited for the handler"
    );
    runtime.block_on(shut_down(&timers));
}

#[test]
fn a_handler_that_blocks_does_not_hold_the_driver_that_it_woke() {
    a_blocked_worker_holds_nothing(millis(1_500), |timers, shift| {
        shift.set_wall(2_000_000);
        // It finds that the driver would sleep too long.
        turn(timers);
    });
}

#[test]
fn a_handler_that_blocks_does_not_hold_what_it_delivered() {
    let due = millis(500);
    a_blocked_worker_holds_nothing(due, move |timers, _| {
        // The other worker is blocked until this one has found a due timer.
        let (begun, begins) = mpsc::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        tokio::spawn(async move {
            begun.send(()).unwrap();
            let _ = wait.recv();
        });
        tokio::spawn(async {});
        begins.recv_timeout(LONG).unwrap();
        std::thread::sleep(due);
        turn(timers);
        drop(go_on);
    });
}

/// After a turn that leaves timers due, the driver yields to the tasks that it has spawned.
#[test]
fn a_handler_that_blocks_does_not_hold_the_driver_that_gave_way() {
    for _ in 0..5 {
        let runtime = two_workers();
        let (timers, _) = runtime.block_on(in_memory());
        let mut later = Deliveries::of(&timers, "later");
        let _herd = Deliveries::of(&timers, "herd");
        let (go_on, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let (ended, ends) = mpsc::channel();
        // The last handler to be registered: its delivery is spawned last by a turn, and so runs first.
        timers.handle("blocks", move |_| {
            let went_on = wait.lock().unwrap().recv_timeout(LONG / 3);
            let _ = ended.send(went_on.is_ok());
            async { Ok(()) }
        });
        let due = std::time::SystemTime::now() + millis(400);
        // More timers than one turn takes, all due in the same millisecond.
        let herd = (0..9_000).map(|_| NewTimer::at("herd", due));
        let blocks = [
            NewTimer::at("blocks", due),
            NewTimer::at("later", due + millis(800)),
        ];
        runtime
            .block_on(timers.insert_many(blocks.into_iter().chain(herd)))
            .unwrap();
        block_on(later.next_untimed());
        let _ = go_on.send(());
        assert!(
            ends.recv_timeout(LONG).unwrap(),
            "the driver waited for the handler"
        );
        runtime.block_on(shut_down(&timers));
    }
}
