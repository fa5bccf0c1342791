//! The catch-up of a late driver: a future that arms finds its shard overdue, and spawns a task that turns it.
//!
//! Everything runs on one worker, which a task keeps busy. So the driver cannot run, and a catch-up, which a worker spawns, runs
//! before it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::task::yield_now;
use waterwheel::{Duration, Instant, Sleep, Timer};

use crate::support::{HOUR, LIMIT, ms, multi_thread, poll_once, poll_with, waker_on_wake, within};

/// The minimum time that a timer is overdue.
const OVERDUE: Duration = ms(10);

/// A timer with enough shards that no two threads of this process share one.
fn timer() -> Timer {
    Timer::builder().shards(1024).start().expect("a timer")
}

/// Whether a catch-up fires an overdue timer of the worker's shard, before the driver runs.
///
/// The test's thread calls `make`, and the worker calls `arm` with the result.
fn is_caught_up<M: Send + 'static>(
    make: impl FnOnce(&Timer) -> M + Send + 'static,
    arm: impl FnOnce(&Timer, M) -> Sleep + Send + 'static,
) -> bool {
    within(LIMIT, || {
        multi_thread(1).block_on(async {
            let timer = timer();
            let made = make(&timer);
            let worker = tokio::spawn(async move {
                // The driver's turns by the time that the overdue timer was woken.
                let turns = Arc::new(Mutex::new(None));
                let waker = waker_on_wake({
                    let (timer, turns) = (timer.clone(), Arc::clone(&turns));
                    move || {
                        let now = timer.metrics().driver_turns();
                        *turns.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                    }
                });
                let mut overdue = timer.sleep(ms(1));
                // On a busy machine a millisecond may pass before the timer is armed.
                while poll_with(&mut overdue, &waker).is_ready() {
                    overdue = timer.sleep(ms(1));
                }
                let before = timer.metrics().driver_turns();
                thread::sleep(ms(1) + OVERDUE);
                let armed = arm(&timer, made);
                yield_now().await;
                let turns = *turns.lock().unwrap_or_else(PoisonError::into_inner);
                drop(armed);
                turns == Some(before)
            });
            worker.await.expect("it does not panic")
        })
    })
}

fn armed(mut sleep: Sleep) -> Sleep {
    assert!(poll_once(&mut sleep).is_pending());
    sleep
}

#[test]
fn a_delay_of_any_length_catches_up_an_overdue_shard() {
    for delay in [ms(900), ms(999), ms(1_000), HOUR] {
        let arm = move |timer: &Timer, ()| armed(timer.sleep(delay));
        assert!(is_caught_up(|_| (), arm), "{delay:?}");
    }
}

// Otherwise each timer of a task that is made on one worker and polled on another would take that worker's lock.
#[test]
fn a_sleep_is_armed_on_the_shard_of_the_thread_that_first_polls() {
    // Made on a thread whose shard is empty, polled on the worker.
    let made = |timer: &Timer| timer.sleep_until(Instant::now() + HOUR);
    assert!(is_caught_up(made, |_, made| armed(made)));
    // Made on the worker, polled on a thread whose shard is empty.
    let polled_away = |timer: &Timer, ()| {
        let made = timer.sleep_until(Instant::now() + HOUR);
        let away = thread::spawn(|| armed(made));
        away.join().expect("it does not panic")
    };
    assert!(!is_caught_up(|_| (), polled_away));
}
