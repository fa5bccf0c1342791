//! Nothing is leaked: under a counting allocator, the live bytes return to their number after the
//! first rounds, whatever the rounds did with timers.
//!
//! Each test runs in its own process, since the allocator counts the allocations of all threads.
//! `ci/memcheck` runs the same under valgrind.

#[path = "../support/mod.rs"]
mod support;

mod callbacks;

use crate::support::with_timer;
use std::alloc::System;
use std::future::pending;
use std::thread;

use cap::Cap;
use futures::StreamExt;
use support::{
    Dice, HOUR, Probe, alone, assert_settled, bounded_timer, current_thread, inside, ms,
    multi_thread, own_timer, paused, waiting,
};
use waterwheel::{
    Duration, Instant, ManualClock, MissedTickBehavior, Timer, interval, sleep, sleep_until,
    timeout,
};

/// No limit: only the count is needed.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// The number of rounds after which everything that is allocated once is there.
const WARM_UP: usize = 5;

/// The tolerated growth: less than one byte a round, and more than the test harness needs meanwhile.
const SLACK: usize = 64;

/// The number of passes over all rounds, one of which must leave nothing.
const PASSES: usize = 2;

/// The number of rounds; valgrind, which is slow, gets fewer.
fn rounds() -> usize {
    match std::env::var("WATERWHEEL_LEAK_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("a number of rounds"),
        Err(_) => 200,
    }
}

/// Repeats the round, and fails if that leaves anything on the heap.
fn leaves_nothing(mut round: impl FnMut(u64)) {
    for number in 0..WARM_UP {
        round(number as u64);
    }
    // The harness's own thread allocates some bytes when it first waits for the test, possibly after the warm-up
    // on a busy machine. A leak shows in each pass.
    let mut left = 0;
    for _ in 0..PASSES {
        left = left_by(&mut round);
        if left <= SLACK {
            return;
        }
    }
    panic!("{left} bytes of {} rounds", rounds());
}

/// The number of additional bytes after all rounds.
fn left_by(round: &mut impl FnMut(u64)) -> usize {
    let warm = HEAP.allocated();
    for number in 0..rounds() {
        round(number as u64);
    }
    // An idle thread may still be on its way out: the watchdog thread, or a runtime's.
    let start = Instant::now();
    while HEAP.allocated() > warm + SLACK && start.elapsed() < ms(2_000) {
        thread::sleep(ms(5));
    }
    HEAP.allocated().saturating_sub(warm)
}

// Tests this test.
#[test]
#[should_panic(expected = "bytes of")]
fn what_is_left_is_seen() {
    let mut kept = Vec::with_capacity(1_000_000);
    leaves_nothing(|_| kept.push(Box::new([0_u8; 100])));
}

#[test]
fn arming_and_cancelling_leave_nothing() {
    alone(|| {
        let (_runtime, timer) = with_timer(multi_thread(1));
        // The driver allocates its state before it goes to sleep, so before a second timer fires.
        for _ in 0..2 {
            futures::executor::block_on(timer.sleep(ms(1)));
        }
        leaves_nothing(|seed| {
            let (mut dice, probe) = (Dice(seed), Probe::new());
            // More than a shard keeps room for.
            let mut sleeps = Vec::new();
            for _ in 0..2_000 {
                let mut sleep = timer.sleep(HOUR + ms(dice.any_magnitude(HOUR.as_millis() as u64)));
                // One of ten is never polled.
                if dice.roll(10) > 0 {
                    assert!(probe.poll(&mut sleep).is_pending());
                }
                sleeps.push(sleep);
                if dice.roll(3) == 0 {
                    let any = dice.roll(sleeps.len() as u64);
                    drop(sleeps.swap_remove(any as usize));
                }
            }
            drop(sleeps);
            assert_eq!(probe.held(), 0);
            assert_settled(&timer);
        });
    });
}

#[test]
fn firing_leaves_nothing() {
    alone(|| {
        let (runtime, timer) = with_timer(paused());
        leaves_nothing(|seed| {
            let mut dice = Dice(seed);
            runtime.block_on(async {
                let sleeps: Vec<_> = (0..300)
                    .map(|number| {
                        let deadline = Instant::now() + ms(dice.any_magnitude(100_000_000));
                        match number % 2 {
                            0 => tokio::spawn(timer.sleep_until(deadline)),
                            _ => tokio::spawn(sleep_until(deadline)),
                        }
                    })
                    .collect();
                for sleep in sleeps {
                    sleep.await.expect("it does not panic");
                }
                assert_settled(&Timer::current());
            });
            assert_settled(&timer);
        });
    });
}

#[test]
fn resetting_leaves_nothing() {
    alone(|| {
        let runtime = paused();
        leaves_nothing(|seed| {
            let (mut dice, probe) = (Dice(seed), Probe::new());
            runtime.block_on(async {
                let mut sleeps: Vec<_> = (0..200).map(|_| sleep(ms(50))).collect();
                for round in 0..10 {
                    for sleep in &mut sleeps {
                        let _ = probe.poll(sleep);
                        // Later, earlier and to the past, before completion and after it.
                        let delay = ms(dice.roll(100));
                        sleep.set_deadline(Instant::now() + delay - ms(20));
                    }
                    tokio::time::sleep(ms(7 + round)).await;
                }
                drop(sleeps);
                assert_settled(&Timer::current());
            });
            assert_eq!(probe.held(), 0);
        });
    });
}

#[test]
fn timeouts_leave_nothing() {
    alone(|| {
        let runtime = paused();
        leaves_nothing(|_| {
            runtime.block_on(async {
                let mut calls = Vec::new();
                for millis in 1..=60 {
                    calls.push(tokio::spawn(async move {
                        let slow = async {
                            sleep(ms(30)).await;
                            vec![millis]
                        };
                        let answer = timeout(ms(millis), slow).await;
                        assert_eq!(answer.is_err(), millis < 30);
                        let _dropped = waiting(timeout(HOUR, pending::<()>()));
                        let taken = waiting(timeout(HOUR, pending::<()>()));
                        let _inner = taken.into_inner();
                    }));
                }
                let aborted = tokio::spawn(timeout(HOUR, sleep(HOUR)));
                tokio::task::yield_now().await;
                aborted.abort();
                assert!(aborted.await.is_err());
                for call in calls {
                    call.await.expect("it does not panic");
                }
                assert_settled(&Timer::current());
            });
        });
    });
}

#[test]
fn intervals_leave_nothing() {
    alone(|| {
        let runtime = paused();
        leaves_nothing(|_| {
            runtime.block_on(async {
                for behavior in [
                    MissedTickBehavior::Burst,
                    MissedTickBehavior::Delay,
                    MissedTickBehavior::Skip,
                ] {
                    let timer = bounded_timer(2);
                    let mut ticks = timer.interval(ms(10));
                    ticks.set_missed_tick_behavior(behavior);
                    for _ in 0..20 {
                        ticks.tick().await;
                    }
                    tokio::time::sleep(ms(45)).await;
                    ticks.tick().await;
                    ticks.reset_after(ms(3));
                    assert!(ticks.next().await.is_some());
                    let mut current = interval(ms(7));
                    current.tick().await;
                    current.tick().await;
                    // Intervals that are dropped while they wait, on either timer, and ended by the end of the timer.
                    assert!(timeout(ms(2), current.tick()).await.is_err());
                    let mut other = timer.interval_at(Instant::now() + HOUR, HOUR);
                    assert!(timeout(ms(2), other.tick()).await.is_err());
                    drop(other);
                    timer.shutdown();
                    // A due tick may still come.
                    while ticks.next().await.is_some() {}
                    assert_settled(&timer);
                }
                assert_settled(&Timer::current());
            });
        });
    });
}

#[test]
fn timers_of_ones_own_leave_nothing_however_they_end() {
    alone(|| {
        let (virt, real) = (paused(), multi_thread(1));
        leaves_nothing(|number| {
            for runtime in [&virt, &real] {
                let timer = Timer::builder().name("short").shards(4).max_pending(1_000);
                let timer = timer.start_on(runtime.handle()).expect("a timer");
                let probe = Probe::new();
                let mut sleeps: Vec<_> =
                    (0..100).map(|_| probe.waiting(timer.sleep(HOUR))).collect();
                runtime.block_on(timer.sleep(Duration::from_micros(300)));
                match number % 4 {
                    // Drop the handle first: the futures keep the timer.
                    0 => {}
                    1 => assert_eq!(timer.shutdown(), sleeps.len()),
                    2 => {
                        let drain = waiting(Box::pin(timer.drain()));
                        sleeps.clear();
                        runtime.block_on(drain);
                        assert!(timer.is_stopped());
                    }
                    _ => sleeps.clear(),
                }
                drop(timer);
                drop(sleeps);
                assert_eq!(probe.held(), 0);
                // The driver's task ends when it is polled next, which is now, if not before.
                runtime.block_on(async { tokio::task::yield_now().await });
            }
        });
    });
}

#[test]
fn short_runtimes_leave_nothing() {
    alone(|| {
        leaves_nothing(|number| {
            let runtime = match number % 3 {
                0 => multi_thread(2),
                1 => current_thread(),
                _ => paused(),
            };
            let probe = Probe::new();
            let mut left = Vec::new();
            runtime.block_on(async {
                sleep(ms(1)).await;
                own_timer().sleep(ms(1)).await;
                for delay in 0..100 {
                    let delay = HOUR + ms(delay);
                    // Half of them go with the runtime, half outlive it.
                    tokio::spawn(sleep(delay));
                    let outlives = probe.waiting(sleep(delay));
                    left.push(outlives);
                }
                tokio::task::yield_now().await;
            });
            let current = inside(&runtime, Timer::current);
            drop(runtime);
            assert_settled(&current);
            assert!(!left.iter().any(|sleep| sleep.is_elapsed()));
            assert_eq!((probe.wakes(), probe.held()), (100, 0));
        });
    });
}

// 26 MB after 42 000 timers on one clock, while it kept those that had ended.
#[test]
fn timers_that_have_ended_leave_nothing_on_their_clock() {
    alone(|| {
        let (runtime, clock) = (current_thread(), ManualClock::new());
        leaves_nothing(|_| {
            let builder = Timer::builder().clock(clock.clone());
            let timer = builder.start_on(runtime.handle()).expect("a timer");
            let probe = Probe::new();
            let sleep = probe.waiting(timer.sleep(ms(1)));
            clock.advance(ms(1));
            assert_eq!(probe.wakes(), 1);
            drop((sleep, timer));
            // The driver's task ends when it is polled next.
            runtime.block_on(tokio::task::yield_now());
        });
    });
}
