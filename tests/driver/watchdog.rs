//! The watchdog thread wakes the driver from outside: a blocked worker does not hold up the timers of the
//! others. Deliberately in real time: the worker stays blocked until they have fired.
//!
//! A worker that blocks after it has *fired* a timer is in `tests/driver/faults/hostage.rs`, compared to tokio's.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use futures::future::join_all;
use tokio::sync::oneshot;
use waterwheel::{Duration, Instant, Timer, Waking, sleep};

use crate::support::{
    HOUR, alone, alone_with, assert_settled, current_thread, ms, multi_thread, own_timer,
    poll_giving, poll_with, us, waiting, waker_on_wake,
};

/// How long a worker is blocked if the other timer does not fire earlier: longer than the busiest machine
/// takes to fire it.
const BLOCKED: Duration = Duration::from_secs(10);

/// A sender that frees the blocked worker, and the function that blocks.
fn block() -> (Sender<()>, impl FnOnce() -> bool + Send + 'static) {
    let (free, freed) = channel();
    // Returns whether it was freed.
    (free, move || freed.recv_timeout(BLOCKED).is_ok())
}

/// Whether a timer fires that a task arms, as the earliest of all, before it blocks its worker
/// without coming back to the scheduler. Another worker is free.
async fn fires_beside_a_worker_that_arms_and_blocks(timer: Timer) -> bool {
    let (free, block) = block();
    let free = Mutex::new(free);
    let waker = waker_on_wake(move || {
        let _ = free.lock().expect("no poison").send(());
    });
    let blocker = tokio::spawn(async move {
        let mut sleep = timer.sleep(ms(50));
        // On a busy machine the delay may pass before the sleep is armed.
        while poll_with(&mut sleep, &waker).is_ready() {
            sleep = timer.sleep(ms(50));
        }
        block()
    });
    blocker.await.expect("it does not panic")
}

// A slow handler or one blocked worker delays everyone (netty#11724, tokio#4730). The driver is
// not in the slot of the worker that armed the timer, where no other worker could take it.
#[test]
fn a_worker_that_blocks_after_arming_does_not_hold_up_the_timer() {
    for _ in 0..3 {
        let fires = multi_thread(2).block_on(async {
            let timer = own_timer();
            // The driver is asleep, instead of not having been polled at all.
            timer.sleep(ms(5)).await;
            fires_beside_a_worker_that_arms_and_blocks(timer.clone()).await
        });
        assert!(fires, "it waited for the worker");
        // The driver has not slept towards any deadline yet.
        let fires = multi_thread(2).block_on(async {
            let timer = own_timer();
            while timer.metrics().driver_turns() == 0 {
                tokio::time::sleep(ms(1)).await;
            }
            fires_beside_a_worker_that_arms_and_blocks(timer.clone()).await
        });
        assert!(fires, "it waited for the worker");
    }
}

// The driver is spawned by the worker that uses the timer first, and must not stay with it.
#[test]
fn a_worker_that_blocks_after_first_use_does_not_hold_up_timers() {
    let own: fn() -> Timer = || own_timer().clone();
    for first_use in [own, Timer::current] {
        let fires = multi_thread(2).block_on(async {
            let (sender, receiver) = oneshot::channel();
            let (free, block) = block();
            let blocker = tokio::spawn(async move {
                assert!(sender.send(first_use()).is_ok());
                block()
            });
            let timer = receiver.await.expect("a timer");
            tokio::spawn(async move {
                timer.sleep(ms(20)).await;
                let _ = free.send(());
            });
            blocker.await.expect("it does not panic")
        });
        assert!(fires, "it waited for the worker");
    }
}

#[test]
fn a_worker_that_blocks_after_the_last_handle_delays_no_timer() {
    let fires = multi_thread(2).block_on(async {
        let (free, block) = block();
        let blocker = tokio::spawn(async move {
            let timer = own_timer();
            timer.sleep(ms(5)).await;
            // The first may be fired by the thread's nudge alone, without the driver.
            let left = [50, 100].map(|millis| timer.sleep(ms(millis)));
            tokio::spawn(async move {
                join_all(left).await;
                let _ = free.send(());
            });
            // Arms it meanwhile.
            sleep(ms(10)).await;
            drop(timer);
            block()
        });
        blocker.await.expect("it does not panic")
    });
    assert!(fires, "it waited for the worker");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_fire_without_the_watchdog() {
    let timer = Timer::builder()
        .waking(Waking::TokioOnly)
        .start()
        .expect("it starts");
    for millis in [0, 1, 5, 20] {
        let start = Instant::now();
        timer.sleep(ms(millis)).await;
        assert!(start.elapsed() >= ms(millis));
    }
    assert_settled(&timer);
    // Armed while the driver sleeps towards a later one.
    let later = tokio::spawn(timer.sleep(HOUR));
    tokio::task::yield_now().await;
    timer.sleep(ms(5)).await;
    later.abort();
}

/// The current number of watchdog threads; `None` if the system does not tell.
fn watchdogs() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    Some(
        names
            .filter(|name| name.trim() == "waterwheel-wake")
            .count(),
    )
}

#[test]
fn all_timers_share_one_watchdog() {
    alone(|| {
        let runtimes: Vec<_> = (0..3).map(|_| multi_thread(2)).collect();
        for runtime in &runtimes {
            runtime.block_on(async {
                sleep(ms(2)).await;
                own_timer().sleep(ms(2)).await;
            });
        }
        if let Some(count) = watchdogs() {
            assert_eq!(count, 1);
        }
    });
}

#[test]
fn the_watchdog_serves_each_runtime_unless_turned_off() {
    alone(|| {
        let without: fn() -> Timer = || {
            Timer::builder()
                .waking(Waking::TokioOnly)
                .start()
                .expect("it starts")
        };
        let default: fn() -> Timer = Timer::current;
        let watched_closely: fn() -> Timer = || {
            let watched_closely = Timer::builder().waking(Waking::WatchedClosely).start();
            watched_closely.expect("it starts")
        };
        // Without another worker, there is nothing to guard.
        for (runtime, timer) in [
            (current_thread(), without),
            (multi_thread(2), without),
            (current_thread(), default),
            (multi_thread(1), default),
            (current_thread(), watched_closely),
            (multi_thread(1), watched_closely),
        ] {
            runtime.block_on(async {
                let timer = timer();
                timer.sleep(ms(5)).await;
                let _later = waiting(timer.sleep(HOUR));
                timer.sleep(ms(5)).await;
                if let Some(count) = watchdogs() {
                    assert_eq!(count, 0);
                }
            });
        }
        let by_thread: fn() -> Timer = || {
            let by_thread = Timer::builder().waking(Waking::Thread).start();
            by_thread.expect("it starts")
        };
        for (runtime, timer) in [
            (multi_thread(2), default),
            (multi_thread(2), watched_closely),
            (current_thread(), by_thread),
            (multi_thread(1), by_thread),
        ] {
            runtime.block_on(async {
                let timer = timer();
                let _later = waiting(timer.sleep(HOUR));
                // The driver must run first. This process has a minute for it.
                while watchdogs() == Some(0) {
                    tokio::time::sleep(ms(1)).await;
                }
                assert!(watchdogs().is_none_or(|count| count == 1));
            });
            drop(runtime);
            while watchdogs().is_some_and(|count| count > 0) {
                thread::sleep(ms(1));
            }
        }
    });
}

// With ten ticks to each of tokio's milliseconds, tokio has often turned its clock in the one that a nudge falls
// into; then the nudge fires on the watchdog thread.
#[test]
fn the_watchdog_runs_no_wakers() {
    let here = Arc::new(Mutex::new(Vec::new()));
    multi_thread(2).block_on(async {
        let timer = Timer::builder().waking(Waking::Thread).resolution(us(100));
        let timer = timer.start().expect("it starts");
        let start = Instant::now();
        let mut naps: Vec<_> = (1..=2_000)
            .map(|n| timer.sleep_until(start + ms(50) + us(100) * n))
            .collect();
        for nap in &mut naps {
            let here = Arc::clone(&here);
            let waker = waker_on_wake(move || {
                let name = thread::current().name().map(String::from);
                here.lock().expect("no poison").push(name);
            });
            let _ = poll_giving(nap, waker);
        }
        timer.sleep_until(start + ms(300)).await;
    });
    let here = here.lock().expect("no poison");
    assert!(!here.is_empty(), "or this test shows nothing");
    let on_it = here
        .iter()
        .filter(|name| name.as_deref() == Some("waterwheel-wake"));
    assert_eq!(on_it.count(), 0);
}

// 2^62 bytes of stack for each thread with no explicit size: more than a process can address.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn timers_fire_where_the_watchdog_cannot_be_started() {
    alone_with([("RUST_MIN_STACK", "4611686018427387904")], || {
        let thread = thread::Builder::new().spawn(|| ());
        assert!(thread.is_err(), "or this test shows nothing");
        let workers = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(1 << 21)
            .enable_time()
            .build()
            .expect("a runtime");
        for runtime in [workers, current_thread()] {
            runtime.block_on(async {
                let timer = own_timer();
                let later = tokio::spawn(timer.sleep(HOUR));
                for millis in [1, 5, 20] {
                    let start = Instant::now();
                    timer.sleep(ms(millis)).await;
                    assert!(start.elapsed() >= ms(millis));
                }
                later.abort();
            });
        }
        assert_eq!(watchdogs(), Some(0));
    });
}
