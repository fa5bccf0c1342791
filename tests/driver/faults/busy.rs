//! Workers that never rest: some task is always ready, so a worker never has to wait for a timer.
//! Timers fire nevertheless. Deliberately in real time.
//!
//! Their lateness depends on the scheduler and on other load; a timer that is only checked when a
//! worker is idle would never fire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::runtime::Runtime;
use tokio::task::yield_now;
use waterwheel::{Duration, Instant, Timer, Waking, interval};

use crate::support::{LIMIT, current_thread, metrics, ms, multi_thread, within};

const PROMPT: Duration = ms(2_000);

/// Runs timers next to a hundred tasks that are always ready.
fn beside_tasks_that_are_always_ready(runtime: Runtime, waking: Waking) {
    within(LIMIT, move || {
        let timer = Timer::builder().waking(waking).start_on(runtime.handle());
        let timer = timer.expect("a timer");
        runtime.block_on(async {
            let (stop, rounds) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicU64::new(0)),
            );
            let busy: Vec<_> = (0..100)
                .map(|_| {
                    let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
                    tokio::spawn(async move {
                        while !stop.load(Ordering::Relaxed) {
                            rounds.fetch_add(1, Ordering::Relaxed);
                            yield_now().await;
                        }
                    })
                })
                .collect();
            let naps: Vec<_> = (0..20)
                .map(|n| {
                    let timer = timer.clone();
                    tokio::spawn(async move {
                        let mut latest = Duration::ZERO;
                        for _ in 0..20 {
                            let deadline = Instant::now() + ms(1 + n % 10);
                            timer.sleep_until(deadline).await;
                            latest = latest.max(deadline.elapsed());
                        }
                        latest
                    })
                })
                .collect();
            for nap in naps {
                let latest = nap.await.expect("it does not panic");
                assert!(latest < PROMPT, "{latest:?} late");
            }
            // The runtime's timer does the same.
            let mut ticks = interval(ms(2));
            for _ in 0..10 {
                ticks.tick().await;
            }
            let in_between = rounds.load(Ordering::Relaxed);
            assert!(in_between > 10_000, "{in_between} rounds: it was not busy");
            stop.store(true, Ordering::Relaxed);
            for task in busy {
                task.await.expect("it does not panic");
            }
        });
        assert_eq!(metrics(&timer).pending(), 0);
    });
}

#[test]
fn tasks_that_are_always_ready_delay_no_timer_on_one_thread() {
    for waking in [Waking::Watched, Waking::Thread] {
        beside_tasks_that_are_always_ready(current_thread(), waking);
    }
}

#[test]
fn tasks_that_are_always_ready_delay_no_timer_on_two_workers() {
    for waking in [Waking::Watched, Waking::Thread] {
        beside_tasks_that_are_always_ready(multi_thread(2), waking);
    }
}

#[test]
fn tasks_always_ready_delay_no_timer_without_the_watchdog() {
    beside_tasks_that_are_always_ready(multi_thread(2), Waking::TokioOnly);
}
