//! Threads that arm, reset, cancel and wait at random, with every kind of driver: no wake-up is lost, none is early, and the
//! counters add up. In real time, so that the threads race.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use waterwheel::{Duration, Instant, Timer, Waking};

use crate::support::{
    Dice, assert_settled, current_thread, multi_thread, poll_with, us, waker_on_wake,
};

const LENGTH: Duration = Duration::from_millis(1_500);
/// A wake-up that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn no_wakeup_is_lost_in_front_of_the_watchdog() {
    stress(multi_thread(2), Waking::Watched);
}

#[test]
fn no_wakeup_is_lost_behind_the_watchdog() {
    stress(multi_thread(2), Waking::Thread);
}

#[test]
fn no_wakeup_is_lost_without_the_watchdog() {
    stress(multi_thread(2), Waking::TokioOnly);
}

#[test]
fn no_wakeup_is_lost_on_one_thread() {
    for waking in [Waking::Watched, Waking::Thread] {
        stress(current_thread(), waking);
    }
}

fn stress(runtime: Runtime, waking: Waking) {
    let builder = Timer::builder().shards(4).waking(waking);
    let timer = builder.start_on(runtime.handle()).expect("it starts");
    let (stop, stopped) = oneshot::channel::<()>();
    let host = thread::spawn(move || runtime.block_on(stopped));
    let end = Instant::now() + LENGTH;
    let waits = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (1..=3)
        .map(|seed| {
            let (timer, waits) = (timer.clone(), Arc::clone(&waits));
            thread::spawn(move || {
                let mut dice = Dice(seed);
                while Instant::now() < end {
                    waits.fetch_add(u64::from(one_timer(&timer, &mut dice)), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no wake-up is lost");
    }
    assert!(
        waits.load(Ordering::Relaxed) > 100,
        "or this test shows nothing"
    );
    assert_settled(&timer);
    drop(stop);
    assert!(host.join().expect("it does not panic").is_err());
}

/// Arms a timer, maybe resets it, and cancels it or waits for it. It polls only when the waker was called. Returns whether it
/// waited.
fn one_timer(timer: &Timer, dice: &mut Dice) -> bool {
    let mut roll = |sides| dice.roll(sides);
    let mut sleep = timer.sleep(us(roll(4_000)));
    let (wake, woken) = mpsc::sync_channel(1);
    let waker = waker_on_wake(move || {
        // If the channel is full, the thread already knows of a wake.
        let _ = wake.try_send(());
    });
    if poll_with(&mut sleep, &waker).is_ready() || roll(3) == 0 {
        return false;
    }
    if roll(2) == 0 {
        sleep.set_deadline(Instant::now() + us(roll(6_000)));
    }
    loop {
        woken.recv_timeout(PATIENCE).expect("a lost wake-up");
        if poll_with(&mut sleep, &waker).is_ready() {
            assert!(Instant::now() >= sleep.deadline(), "early");
            return true;
        }
    }
}

// An interval keeps its entry from tick to tick, on whichever worker its task runs. Here the workers steal the tasks from each
// other, and the tasks reset their intervals to earlier and later.
#[test]
fn intervals_of_tasks_that_move_tick_and_the_counters_add_up() {
    let runtime = multi_thread(2);
    let timer = runtime.block_on(async { Timer::builder().start().unwrap() });
    let end = Instant::now() + LENGTH;
    let ticks = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..200_u64)
        .map(|n| {
            let (timer, ticks) = (timer.clone(), Arc::clone(&ticks));
            runtime.spawn(async move {
                let mut interval = timer.interval(us(500 + n * 10));
                for round in n.. {
                    let tick = interval.tick().await;
                    assert!(Instant::now() >= tick, "a tick came early");
                    ticks.fetch_add(1, Ordering::Relaxed);
                    match round % 7 {
                        0 => interval.reset_after(us(100)),
                        1 => interval.reset_after(us(3_000)),
                        2 => tokio::task::yield_now().await,
                        _ => {}
                    }
                    if tick > end {
                        return;
                    }
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            let ended = tokio::time::timeout(PATIENCE, task).await;
            ended.expect("no tick is lost").unwrap();
        }
    });
    assert!(ticks.load(Ordering::Relaxed) > 10_000);
    assert_eq!(assert_settled(&timer).stopped(), 0);
}
