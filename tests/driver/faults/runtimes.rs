//! Timers that move between runtimes, and runtimes and task sets that end before their timers.

use std::rc::Rc;

use futures::StreamExt;
use tokio::task::{LocalSet, spawn_local};
use waterwheel::{Instant, Timer, interval, sleep, timeout};

use crate::support::{
    HOUR, LIMIT, Probe, alone, assert_over, current_thread, inside, metrics, ms, multi_thread,
    own_timer, poll_once, waiting_with, within,
};

#[test]
fn an_interval_keeps_its_grid_from_runtime_to_runtime() {
    within(LIMIT, || {
        let runtimes = [multi_thread(1), current_thread(), multi_thread(2)];
        let home = &runtimes[0];
        let start = Instant::now();
        let mut ticks = inside(home, || interval(ms(5)));
        let mut scheduled = Vec::new();
        for round in 0..30 {
            let away = &runtimes[round % 3];
            let handed = away.spawn(async move {
                let tick = ticks.tick().await;
                assert!(Instant::now() >= tick, "a tick came early");
                (ticks, tick)
            });
            // Drives the runtime that has no thread of its own.
            let tick;
            (ticks, tick) = away.block_on(handed).expect("it does not panic");
            scheduled.push(tick);
        }
        assert!(scheduled[0] >= start);
        assert!(scheduled.windows(2).all(|two| two[1] - two[0] == ms(5)));
        // It was on its home's timer all the time.
        let timer = inside(home, Timer::current);
        assert!(metrics(&timer).fired() > 0);
        assert_eq!(metrics(&inside(&runtimes[2], Timer::current)).armed(), 0);

        // Its home ends while it waits elsewhere.
        let [home, away, _] = runtimes;
        ticks.reset_after(HOUR);
        let waiting = away.spawn(async move { ticks.next().await });
        away.block_on(tokio::task::yield_now());
        drop(home);
        assert_eq!(away.block_on(waiting).expect("it does not panic"), None);
    });
}

#[test]
fn a_timeout_of_one_runtime_limits_a_sleep_of_another() {
    within(LIMIT, || {
        let (first, second) = (multi_thread(1), current_thread());
        let long = inside(&first, || sleep(HOUR));
        let limited = inside(&second, || timeout(ms(5), long));
        // Poll in neither runtime.
        assert!(futures::executor::block_on(async {
            let driving = std::thread::spawn(move || {
                second.block_on(async { sleep(ms(200)).await });
                second
            });
            let elapsed = limited.await.is_err();
            drop(driving.join().expect("it does not panic"));
            elapsed
        }));
        assert_eq!(metrics(&inside(&first, Timer::current)).cancelled(), 1);
    });
}

#[test]
fn a_local_set_that_is_dropped_cancels_the_sleeps_of_its_tasks() {
    within(LIMIT, || {
        // The set ends first, or the runtime does.
        for set_first in [true, false] {
            let runtime = current_thread();
            let (current, own) = inside(&runtime, || (Timer::current(), own_timer()));
            let set = LocalSet::new();
            let shared = Rc::new(own.clone());
            for _ in 0..10 {
                let shared = Rc::clone(&shared);
                set.spawn_local(async move {
                    tokio::join!(sleep(HOUR), shared.sleep(HOUR));
                });
            }
            set.block_on(&runtime, tokio::task::yield_now());
            assert_eq!(metrics(&current).pending(), 10);
            let mut runtime = Some(runtime);
            if !set_first {
                drop(runtime.take());
            }
            drop(set);
            assert_eq!(Rc::strong_count(&shared), 1);
            for timer in [&current, &own] {
                let metrics = metrics(timer);
                let (cancelled, stopped) = if set_first { (10, 0) } else { (0, 10) };
                assert_eq!(
                    (metrics.cancelled(), metrics.stopped()),
                    (cancelled, stopped)
                );
            }
            drop(runtime);
        }
    });
}

#[test]
fn tasks_of_a_local_set_are_woken_by_a_driver_elsewhere() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        LocalSet::new().block_on(&runtime, async {
            let naps: Vec<_> = (0..50_u64)
                .map(|n| {
                    let delay = Rc::new(ms(n % 10));
                    spawn_local(async move {
                        let start = Instant::now();
                        sleep(*delay).await;
                        assert!(start.elapsed() >= *delay);
                        assert!(timeout(ms(1), std::future::pending::<()>()).await.is_err());
                    })
                })
                .collect();
            for nap in naps {
                nap.await.expect("it does not panic");
            }
        });
        assert!(metrics(&inside(&runtime, Timer::current)).fired() > 0);
    });
}

// A thread that ends drops its runtime from the destructor of one of its thread-locals.
#[test]
fn a_runtime_may_end_in_the_destructor_of_a_thread_local() {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<tokio::runtime::Runtime>> =
            const { std::cell::RefCell::new(None) };
    }
    // A panic there would abort the process.
    alone(|| {
        let probe = Probe::new();
        let waker = probe.waker();
        let ends = std::thread::spawn(move || {
            let runtime = current_thread();
            let nap = waiting_with(inside(&runtime, || sleep(HOUR)), waker.clone());
            KEPT.set(Some(runtime));
            nap
        });
        let mut nap = ends.join().expect("it does not panic");
        assert_eq!(probe.wakes(), 1);
        assert_over(|| poll_once(&mut nap));
    });
}
