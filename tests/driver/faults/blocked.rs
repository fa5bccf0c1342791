//! Blocked workers: the others fire the timers. Deliberately in real time, and with a bound that a
//! busy machine keeps: it only shows whether they wait for the blocked ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tokio::task::block_in_place;
use waterwheel::{Duration, Instant, sleep, sleep_until};

use crate::support::{Probe, ms, multi_thread, poll_once, within};

const LIMIT: Duration = Duration::from_secs(60);
/// The minimum time that workers are blocked. A timer that waits for one is late by most of it.
const BLOCKED: Duration = ms(2_000);
/// The number of heartbeats that the workers are blocked for at least, which takes a busy machine longer.
const BEATS: u64 = 20;
/// The maximum time that the workers are blocked.
const PATIENCE: Duration = Duration::from_secs(15);
const PROMPT: Duration = ms(1_500);

// netty#11724, tokio#4730: one blocked worker delays everyone. Here all but one are blocked, and
// each was woken by a timer just before.
#[test]
fn with_all_workers_but_one_blocked_timers_fire_on_that_one() {
    const WORKERS: u64 = 4;
    within(LIMIT, || {
        multi_thread(WORKERS as usize).block_on(async {
            let (blocked, beats) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            for n in 1..WORKERS {
                let (blocked, beats) = (Arc::clone(&blocked), Arc::clone(&beats));
                tokio::spawn(async move {
                    sleep(ms(20 * n)).await;
                    let since = Instant::now();
                    blocked.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(BLOCKED);
                    while beats.load(Ordering::SeqCst) < BEATS && since.elapsed() < PATIENCE {
                        thread::sleep(ms(5));
                    }
                    blocked.fetch_sub(1, Ordering::SeqCst);
                });
            }
            // A thousand timers that are armed before, and a heartbeat that is armed meanwhile.
            let start = Instant::now();
            let armed: Vec<_> = (0..1_000_u64)
                .map(|n| {
                    let deadline = start + ms(200 + n / 2);
                    tokio::spawn(async move {
                        sleep_until(deadline).await;
                        deadline.elapsed()
                    })
                })
                .collect();
            let heartbeat = tokio::spawn(async move {
                let mut latest = Duration::ZERO;
                while start.elapsed() < ms(1_500)
                    || beats.load(Ordering::SeqCst) < BEATS && start.elapsed() < PATIENCE
                {
                    let deadline = Instant::now() + ms(5);
                    sleep_until(deadline).await;
                    latest = latest.max(deadline.elapsed());
                    let counts = blocked.load(Ordering::SeqCst) == WORKERS - 1;
                    beats.fetch_add(counts.into(), Ordering::SeqCst);
                }
                (beats.load(Ordering::SeqCst), latest)
            });
            let (beats, latest) = heartbeat.await.expect("it does not panic");
            assert!(
                beats >= BEATS,
                "{beats} beats while all but one were blocked"
            );
            assert!(latest < PROMPT, "a beat was {latest:?} late");
            for nap in armed {
                let late = nap.await.expect("it does not panic");
                assert!(late < PROMPT, "{late:?} late");
            }
        });
    });
}

#[test]
fn block_in_place_holds_up_no_timer_nor_the_tasks_own() {
    within(LIMIT, || {
        // The only worker, whose core is taken over by another thread meanwhile.
        multi_thread(1).block_on(async {
            let task = tokio::spawn(async {
                let deadline = Instant::now() + ms(200);
                let (probe, mut own) = (Probe::new(), sleep_until(deadline));
                assert!(probe.poll(&mut own).is_pending());
                let beside = tokio::spawn(async move {
                    sleep_until(deadline).await;
                    deadline.elapsed()
                });
                block_in_place(|| thread::sleep(BLOCKED));
                // Fired by another worker, not by a poll.
                assert_eq!(probe.wakes(), 1);
                assert!(poll_once(&mut own).is_ready());
                // From here on it is the other thread's worker.
                sleep(ms(5)).await;
                beside.await.expect("it does not panic")
            });
            let late = task.await.expect("it does not panic");
            assert!(late < PROMPT, "{late:?} late");
        });
    });
}
