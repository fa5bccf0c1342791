//! The bell wakes the driver from outside: a blocked worker does not hold up the timers of the
//! others. In real time, which is the point, with generous bounds.
//!
//! A worker that blocks after it has *fired* a timer is in `tests/faults/hostage.rs`, beside tokio's.

mod support;

use std::sync::{Arc, Mutex};
use std::thread;

use futures::future::join_all;
use support::{
    alone, alone_with, assert_settled, current_thread, eventually, ms, multi_thread, own_timer,
    poll_giving, poll_once, waker_on_wake,
};
use tokio::sync::oneshot;
use waterwheel::{Duration, Instant, Timer, sleep};

const BLOCKED: Duration = Duration::from_millis(600);
/// What the scheduler may take on a busy machine; far from [`BLOCKED`].
const PROMPT: Duration = Duration::from_millis(200);

/// How late a timer is that is armed, as the earliest of all, by a task that then blocks its
/// worker without coming back to the scheduler. Another worker is free.
async fn lateness_beside_a_worker_that_arms_and_blocks(timer: Timer) -> Duration {
    let woken = Arc::new(Mutex::new(None));
    let waker = waker_on_wake({
        let woken = Arc::clone(&woken);
        move || {
            woken
                .lock()
                .expect("no poison")
                .get_or_insert_with(Instant::now);
        }
    });
    let deadline = Instant::now() + ms(50);
    let blocker = tokio::spawn(async move {
        let mut sleep = timer.sleep_until(deadline);
        assert!(poll_giving(&mut sleep, waker).is_pending());
        thread::sleep(BLOCKED);
    });
    blocker.await.expect("it does not panic");
    let woken = woken.lock().expect("no poison").take();
    woken.map_or(BLOCKED, |woken| woken.duration_since(deadline))
}

// A slow handler or one blocked worker delays everyone (netty#11724, tokio#4730). The driver is
// not in the slot of the worker that armed the timer, where nobody else could take it.
#[test]
fn a_worker_that_blocks_after_arming_does_not_hold_up_the_timer() {
    for _ in 0..3 {
        let late = multi_thread(2).block_on(async {
            let timer = own_timer();
            // The driver is asleep, not yet to be polled for the first time.
            timer.sleep(ms(5)).await;
            lateness_beside_a_worker_that_arms_and_blocks(timer.clone()).await
        });
        assert!(late < PROMPT, "{late:?} late");
    }
}

// The driver is spawned by the worker that uses the timer first, and must not stay with it.
#[test]
fn a_worker_that_blocks_after_the_first_use_of_a_timer_does_not_hold_it_up() {
    let own: fn() -> Timer = || own_timer().clone();
    for first_use in [own, Timer::current] {
        let late = multi_thread(2).block_on(async {
            let (sender, receiver) = oneshot::channel();
            tokio::spawn(async move {
                assert!(sender.send(first_use()).is_ok());
                thread::sleep(BLOCKED);
            });
            let timer = receiver.await.expect("a timer");
            let deadline = Instant::now() + ms(20);
            let beside = tokio::spawn(async move {
                timer.sleep_until(deadline).await;
                deadline.elapsed()
            });
            beside.await.expect("it does not panic")
        });
        assert!(late < PROMPT, "{late:?} late");
    }
}

#[test]
fn a_worker_that_blocks_after_dropping_the_last_handle_does_not_hold_up_what_is_left() {
    let late = multi_thread(2).block_on(async {
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let timer = own_timer();
            timer.sleep(ms(5)).await;
            // The first may be fired by the bell's nudge alone, without the driver.
            let deadlines = [50, 100].map(|millis| Instant::now() + ms(millis));
            let left = deadlines.map(|deadline| timer.sleep_until(deadline));
            let beside = tokio::spawn(async move {
                join_all(left).await;
                deadlines[1].elapsed()
            });
            assert!(sender.send(beside).is_ok());
            // It arms meanwhile.
            sleep(ms(10)).await;
            drop(timer);
            thread::sleep(BLOCKED);
        });
        receiver
            .await
            .expect("a task")
            .await
            .expect("it does not panic")
    });
    assert!(late < PROMPT, "{late:?} late");
}

#[test]
fn timers_fire_without_the_bell() {
    multi_thread(2).block_on(async {
        let timer = Timer::builder().bell(false).start().expect("it starts");
        for millis in [0, 1, 5, 20] {
            let start = Instant::now();
            timer.sleep(ms(millis)).await;
            assert!(start.elapsed() >= ms(millis));
        }
        assert_settled(&timer);
        // Armed while the driver sleeps towards a later one.
        let later = tokio::spawn(timer.sleep(support::HOUR));
        tokio::task::yield_now().await;
        timer.sleep(ms(5)).await;
        later.abort();
    });
}

/// How many threads of the bell there are now; `None` where the system does not tell.
fn bells() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    Some(
        names
            .filter(|name| name.trim() == "waterwheel-bell")
            .count(),
    )
}

#[test]
fn there_is_one_bell_for_all_timers() {
    let runtimes: Vec<_> = (0..3).map(|_| multi_thread(2)).collect();
    for runtime in &runtimes {
        runtime.block_on(async {
            sleep(ms(2)).await;
            own_timer().sleep(ms(2)).await;
        });
    }
    if let Some(bells) = bells() {
        assert_eq!(bells, 1);
    }
}

#[test]
fn the_bell_rings_for_a_runtime_of_one_thread_as_well_and_not_for_a_timer_without_it() {
    alone(|| {
        let without = || Timer::builder().bell(false).start().expect("it starts");
        for runtime in [current_thread(), multi_thread(2)] {
            runtime.block_on(async {
                let timer = without();
                timer.sleep(ms(5)).await;
                let mut later = timer.sleep(support::HOUR);
                assert!(poll_once(&mut later).is_pending());
                timer.sleep(ms(5)).await;
                if let Some(bells) = bells() {
                    assert_eq!(bells, 0);
                }
            });
        }
        current_thread().block_on(async {
            sleep(ms(5)).await;
            // Tokio's clock may have been first.
            eventually("a bell", || bells().is_none_or(|bells| bells == 1));
        });
    });
}

// With ten ticks to each of tokio's milliseconds, tokio has often turned its clock in the one that a nudge falls
// into; then the nudge fires on the bell's thread.
#[test]
fn the_bell_runs_no_wakers() {
    let here = Arc::new(Mutex::new(Vec::new()));
    multi_thread(2).block_on(async {
        let timer = Timer::builder().resolution(Duration::from_micros(100));
        let timer = timer.start().expect("it starts");
        let start = Instant::now();
        let mut naps: Vec<_> = (1..=2_000)
            .map(|n| timer.sleep_until(start + ms(50) + Duration::from_micros(100) * n))
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
    assert!(!here.is_empty(), "this test can tell");
    let bells = here
        .iter()
        .filter(|name| name.as_deref() == Some("waterwheel-bell"));
    assert_eq!(bells.count(), 0);
}

// 2^62 bytes of stack for whoever does not say how much: more than a process can address.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn timers_fire_where_the_thread_of_the_bell_cannot_be_started() {
    alone_with([("RUST_MIN_STACK", "4611686018427387904")], || {
        let thread = thread::Builder::new().spawn(|| ());
        assert!(thread.is_err(), "this test can tell");
        let workers = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(1 << 21)
            .enable_time()
            .build()
            .expect("a runtime");
        for runtime in [workers, current_thread()] {
            runtime.block_on(async {
                let timer = own_timer();
                let later = tokio::spawn(timer.sleep(support::HOUR));
                for millis in [1, 5, 20] {
                    let start = Instant::now();
                    timer.sleep(ms(millis)).await;
                    assert!(start.elapsed() >= ms(millis));
                }
                later.abort();
            });
        }
        assert_eq!(bells(), Some(0));
    });
}
