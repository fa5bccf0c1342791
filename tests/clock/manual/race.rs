//! Threads that arm, move and cancel while another one advances the clock. (The models of `src/driver/models/by_hand` have each such
//! race alone, in every order.)

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use waterwheel::{ManualClock, Timer};

use super::start;
use crate::support::{Dice, LIMIT, ms, multi_thread, within};

const TASKS: usize = 20;
const SLEEPS: usize = 500;

#[test]
fn no_wakeup_is_lost_beside_an_advance() {
    within(3 * LIMIT, || {
        let runtime = multi_thread(2);
        let clock = ManualClock::new();
        let timer = start(&runtime, &clock);
        let done = Arc::new(AtomicUsize::new(0));
        for seed in 0..TASKS as u64 {
            let (timer, clock, done) = (timer.clone(), clock.clone(), Arc::clone(&done));
            runtime.spawn(async move {
                let mut dice = Dice(seed);
                for _ in 0..SLEEPS {
                    let mut sleep = timer.sleep(ms(1 + dice.roll(5)));
                    let _ = waterwheel_poll(&mut sleep).await;
                    match dice.roll(3) {
                        0 => sleep.set_deadline(sleep.deadline() + ms(dice.roll(5))),
                        1 => sleep.set_deadline(sleep.deadline() - ms(dice.roll(5))),
                        _ => {}
                    }
                    let deadline = sleep.deadline();
                    sleep.await;
                    assert!(clock.now() >= deadline, "early");
                    drop(timer.sleep(ms(dice.roll(5))));
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        // Real time passes here, but the clock stands still unless this thread moves it.
        while done.load(Ordering::Relaxed) < TASKS {
            clock.advance(ms(1));
            thread::yield_now();
        }
    });
}

/// Polls once within a task.
async fn waterwheel_poll(sleep: &mut waterwheel::Sleep) -> std::task::Poll<()> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *sleep).poll(context))
    })
    .await
}

// Timers begin and end during the advance, in each way.
#[test]
fn timers_that_begin_and_end_beside_an_advance_lose_nothing() {
    within(3 * LIMIT, || {
        let runtime = multi_thread(2);
        let clock = ManualClock::new();
        let done = Arc::new(AtomicUsize::new(0));
        for seed in 0..4 {
            let (clock, done) = (clock.clone(), Arc::clone(&done));
            runtime.spawn(async move {
                let mut dice = Dice(seed);
                for _ in 0..200 {
                    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
                    let sleeps = (0..5).map(|_| tokio::spawn(timer.sleep(ms(dice.roll(4)))));
                    let sleeps: Vec<_> = sleeps.collect();
                    match dice.roll(3) {
                        // Each ends through the clock, with no handle left.
                        0 => drop(timer),
                        1 => drop(timer.shutdown()),
                        _ => timer.drain().await,
                    }
                    for sleep in sleeps {
                        sleep.await.unwrap();
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        while done.load(Ordering::Relaxed) < 4 {
            clock.advance(ms(1));
            let _ = clock.advance_to_next();
            thread::yield_now();
        }
    });
}

#[test]
fn a_runtime_that_ends_beside_an_advance_ends_its_timers() {
    within(3 * LIMIT, || {
        for _ in 0..100 {
            let runtime = multi_thread(1);
            let clock = ManualClock::new();
            let timer = start(&runtime, &clock);
            for millis in 0..20 {
                runtime.spawn(timer.sleep(ms(millis)));
            }
            let ends = thread::spawn(move || drop(runtime));
            for _ in 0..20 {
                clock.advance(ms(1));
            }
            ends.join().unwrap();
            let metrics = timer.metrics();
            assert_eq!(metrics.pending(), 0, "{metrics:?}");
        }
    });
}
