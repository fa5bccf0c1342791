//! The runtime's timer: that of the current runtime, wherever the call comes from.

use std::fs;
use std::future::pending;
use std::thread;
use std::time::Instant as RealInstant;

use tokio::runtime::{Handle, Runtime};
use waterwheel::{Duration, Instant, Sleep, Timer, interval, sleep, sleep_until, timeout};

use crate::support::{
    HOUR, LIMIT, Probe, alone, assert_over, assert_settled, current_thread, eventually, inside,
    metrics, ms, multi_thread, own_timer, poll_once, unless_over, waiting, waiting_with, within,
};

/// Checks that all free functions work on the current runtime's timer.
async fn works() {
    let start = Instant::now();
    sleep(ms(2)).await;
    sleep_until(start + ms(4)).await;
    assert!(timeout(ms(2), pending::<()>()).await.is_err());
    let mut interval = interval(ms(1));
    interval.tick().await;
    interval.tick().await;
    assert!(start.elapsed() >= ms(7));
}

fn armed_on(timer: &Timer) -> u64 {
    metrics(timer).armed()
}

fn current_of(runtime: &Runtime) -> Timer {
    inside(runtime, Timer::current)
}

/// A sleep that is made and armed in the current runtime.
fn armed_here() -> Sleep {
    waiting(sleep(HOUR))
}

// ----- where we are -----

#[test]
fn it_works_on_a_current_thread_runtime() {
    within(LIMIT, || {
        let runtime = current_thread();
        runtime.block_on(works());
        runtime.block_on(async { tokio::spawn(works()).await.expect("it works") });
    });
}

#[test]
fn it_works_on_a_multi_thread_runtime() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        runtime.block_on(works());
        runtime.block_on(async {
            let tasks: Vec<_> = (0..8).map(|_| tokio::spawn(works())).collect();
            for task in tasks {
                task.await.expect("it works");
            }
        });
    });
}

#[test]
fn it_works_in_block_on_of_a_handle_from_a_thread_outside() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let handle = runtime.handle().clone();
        let outside = thread::spawn(move || handle.block_on(works()));
        outside.join().expect("it works");
        assert!(armed_on(&current_of(&runtime)) > 0);
    });
}

#[test]
fn in_spawn_blocking_it_is_the_timer_of_the_threads_runtime() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(1)] {
            let nap = runtime.block_on(async {
                let blocking = tokio::task::spawn_blocking(armed_here);
                Some(blocking.await.expect("it works"))
            });
            assert_eq!(metrics(&current_of(&runtime)).pending(), 1);
            drop(nap);
            runtime.block_on(async {
                let handle = Handle::current();
                let blocking = tokio::task::spawn_blocking(move || handle.block_on(works()));
                blocking.await.expect("it works");
            });
        }
    });
}

#[test]
fn in_block_in_place_it_is_the_timer_of_the_runtime_still() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        runtime.block_on(async {
            let task = tokio::spawn(async {
                tokio::task::block_in_place(|| Handle::current().block_on(works()));
            });
            task.await.expect("it works");
        });
    });
}

#[test]
fn in_a_local_set_it_is_the_timer_of_the_runtime() {
    within(LIMIT, || {
        let runtime = current_thread();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let task = tokio::task::spawn_local(works());
            task.await.expect("it works");
        });
        assert!(armed_on(&current_of(&runtime)) > 0);
    });
}

#[test]
fn within_enter_it_is_the_timer_of_the_inner_runtime() {
    let (outer, inner) = (current_thread(), multi_thread(1));
    let (of_outer, of_inner) = (current_of(&outer), current_of(&inner));
    let pending = || (metrics(&of_outer).pending(), metrics(&of_inner).pending());
    outer.block_on(async {
        let mut naps = vec![armed_here()];
        assert_eq!(pending(), (1, 0));
        {
            let _entered = inner.enter();
            naps.push(armed_here());
            naps.push(armed_here());
            assert_eq!(pending(), (1, 2));
            {
                let _entered = outer.enter();
                naps.push(armed_here());
                assert_eq!(pending(), (2, 2));
            }
            naps.push(armed_here());
            assert_eq!(pending(), (2, 3));
        }
        naps.push(armed_here());
        assert_eq!(pending(), (3, 3));
    });
    assert_eq!(pending(), (0, 0));
}

#[test]
fn in_block_on_of_another_thread_it_is_the_inner_runtimes_timer() {
    within(LIMIT, || {
        let (outer, inner) = (multi_thread(1), current_thread());
        let of_inner = current_of(&inner);
        let before = armed_on(&of_inner);
        let inner = outer.block_on(async {
            let blocking = tokio::task::spawn_blocking(move || {
                inner.block_on(works());
                inner
            });
            blocking.await.expect("it works")
        });
        assert!(armed_on(&of_inner) > before);
        assert_eq!(armed_on(&current_of(&outer)), 0);
        drop(inner);
    });
}

#[test]
fn one_thread_may_go_to_and_fro_between_runtimes() {
    within(LIMIT, || {
        let runtimes = [current_thread(), current_thread(), multi_thread(1)];
        let timers = runtimes.each_ref().map(current_of);
        let mut naps = Vec::new();
        for _ in 0..100 {
            for runtime in &runtimes {
                let _entered = runtime.enter();
                naps.push(armed_here());
            }
        }
        for timer in &timers {
            assert_eq!(metrics(timer).pending(), 100);
        }
        drop(naps);
        for timer in &timers {
            assert_settled(timer);
        }
    });
}

#[test]
fn methods_of_a_timer_need_no_runtime() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = Timer::builder().start_on(runtime.handle());
        let timer = timer.expect("a timer");
        let later = Instant::now() + ms(1);
        futures::executor::block_on(async {
            timer.sleep(ms(1)).await;
            timer.sleep_until(later).await;
            assert!(timer.timeout(ms(1), pending::<()>()).await.is_err());
            assert!(timer.timeout_at(later, pending::<()>()).await.is_err());
            let mut interval = timer.interval(ms(1));
            interval.tick().await;
            interval.tick().await;
            timer.drain().await;
        });
        assert_eq!(timer.shutdown(), 0);
        assert_settled(&timer);
    });
}

// tokio `tickspace`, #8169.
#[test]
fn a_sleep_made_in_one_runtime_may_be_polled_in_another() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(1), current_thread());
        let mut nap = inside(&home, || sleep(HOUR));
        let task = async move {
            // Far away until it is armed, which may take any time.
            assert!(poll_once(&mut nap).is_pending());
            let start = Instant::now();
            nap.set_deadline(start + ms(10));
            nap.await;
            assert!(start.elapsed() >= ms(10));
        };
        away.block_on(async { tokio::spawn(task).await.expect("it fires") });
        assert_eq!(armed_on(&current_of(&home)), 1);
        assert_eq!(armed_on(&current_of(&away)), 0);
    });
}

#[test]
fn a_sleep_may_move_between_runtimes_while_it_is_pending() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(1), current_thread());
        let mut nap = inside(&home, armed_here);
        away.block_on(async {
            assert!(timeout(ms(5), &mut nap).await.is_err());
            nap.set_deadline(Instant::now() + ms(5));
            (&mut nap).await;
        });
        nap.set_deadline(Instant::now() + ms(5));
        home.block_on(nap);
        assert_settled(&current_of(&home));
    });
}

// ----- one a runtime -----

#[test]
fn a_runtime_has_one_timer() {
    within(LIMIT, || {
        let runtime = multi_thread(4);
        runtime.block_on(async {
            let tasks: Vec<_> = (0..16)
                .map(|_| {
                    tokio::spawn(async {
                        let nap = armed_here();
                        (Timer::current(), nap)
                    })
                })
                .collect();
            let mut all = Vec::new();
            for task in tasks {
                all.push(task.await.expect("it works"));
            }
            for (timer, _) in &all {
                assert_eq!(metrics(timer).pending(), 16, "all tasks see all");
            }
            // Another timer is a different one.
            assert_eq!(armed_on(&own_timer()), 0);
        });
    });
}

#[test]
fn threads_that_are_the_first_to_ask_at_once_get_the_same_timer() {
    within(LIMIT, || {
        for _ in 0..50 {
            let runtime = multi_thread(1);
            let start = std::sync::Barrier::new(4);
            let naps: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let _entered = runtime.enter();
                            start.wait();
                            armed_here()
                        })
                    })
                    .collect();
                let joined = threads.into_iter().map(|thread| thread.join());
                joined.map(|nap| nap.expect("it works")).collect()
            });
            assert_eq!(metrics(&current_of(&runtime)).pending(), 4);
            // Exactly one driver: the timers that lost the race left none behind.
            assert_eq!(runtime.metrics().num_alive_tasks(), 1);
            drop(naps);
        }
    });
}

#[test]
fn a_driver_ends_with_the_last_handle_and_future_of_its_timer() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = runtime.block_on(async { own_timer() });
        let tasks = || runtime.metrics().num_alive_tasks();
        assert_eq!(tasks(), 1);
        let mut nap = timer.sleep(ms(20));
        let other = waiting(timer.clone().sleep(HOUR));
        drop(timer);
        futures::executor::block_on(&mut nap);
        assert_eq!(tasks(), 1);
        drop(nap);
        thread::sleep(ms(20));
        assert_eq!(tasks(), 1, "a future is left");
        drop(other);
        eventually("the driver ends", || tasks() == 0);
    });
}

// ----- the end of a runtime -----

#[test]
fn in_a_finished_runtime_that_is_entered_a_sleep_panics() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(1)] {
            let handle = runtime.handle().clone();
            let before = inside(&runtime, armed_here);
            drop(runtime);
            let _entered = handle.enter();
            for _ in 0..3 {
                let mut nap = sleep(HOUR);
                assert_over(|| poll_once(&mut nap));
                assert!(Timer::current().is_stopped());
                assert_over(|| poll_once(&mut timeout(HOUR, pending::<()>())));
            }
            drop(before);
        }
    });
}

#[test]
fn in_a_finished_runtime_without_a_timer_a_sleep_panics() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(1)] {
            let handle = runtime.handle().clone();
            drop(runtime);
            let _entered = handle.enter();
            for _ in 0..3 {
                let mut nap = sleep(HOUR);
                assert_over(|| poll_once(&mut nap));
            }
        }
    });
}

/// The resident memory of this process, without its code.
fn resident_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|it| it.parse().ok()).expect("a number")
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("a Linux");
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

/// Whether the watchdog thread has ended. Linux knows the first 15 letters of a thread's name.
fn the_watchdog_has_ended() -> bool {
    !threads()
        .iter()
        .any(|name| name.starts_with("waterwheel-wak"))
}

#[test]
fn ten_thousand_short_runtimes_leave_nothing_behind() {
    alone(|| {
        let short = |round: usize| {
            let runtime = if round % 10 == 0 {
                multi_thread(2)
            } else {
                current_thread()
            };
            runtime.block_on(async { sleep(Duration::ZERO).await });
            let left = inside(&runtime, armed_here);
            // The future goes before its runtime, or the other way round.
            if round % 2 == 0 {
                drop(left);
                drop(runtime);
            } else {
                drop(runtime);
                drop(left);
            }
        };
        let before = threads().len();
        (0..1_000).for_each(short);
        let warm = resident_kilobytes();
        (1_000..10_000).for_each(short);
        eventually(
            "the watchdog thread ends with the last timer",
            the_watchdog_has_ended,
        );
        // A worker that has been joined may be listed for a moment.
        eventually("all threads end", || threads().len() == before);
        // A leaked timer would take at least ten kilobytes, about a hundred megabytes in all.
        let grown = resident_kilobytes().saturating_sub(warm);
        assert!(grown < 8_000, "{grown} kB");
    });
}

#[test]
fn the_watchdog_ends_with_the_last_timer_in_any_race() {
    alone(|| {
        for round in 0..1_000 {
            let runtime = multi_thread(2);
            let timer = runtime.block_on(async { own_timer() });
            let racer = thread::spawn(move || {
                let mut naps = Vec::new();
                // Each is earlier than the previous one, so that each goes to the watchdog thread.
                while let Ok(mut nap) = timer.try_sleep(HOUR - ms(naps.len() as u64)) {
                    let _ = unless_over(|| poll_once(&mut nap));
                    naps.push(nap);
                }
            });
            for _ in 0..round {
                std::hint::spin_loop();
            }
            drop(runtime);
            racer.join().expect("it does not panic");
        }
        eventually(
            "the watchdog thread ends with the last timer",
            the_watchdog_has_ended,
        );
    });
}

#[test]
fn the_watchdog_is_not_started_while_nothing_is_pending() {
    alone(|| {
        let runtime = multi_thread(2);
        let timer = runtime.block_on(async { (own_timer(), Timer::current()) });
        // Both drivers have run.
        eventually("they turn", || timer.0.metrics().driver_turns() > 0);
        eventually("they turn", || timer.1.metrics().driver_turns() > 0);
        thread::sleep(ms(20));
        assert!(the_watchdog_has_ended(), "{:?}", threads());
        let nap = inside(&runtime, armed_here);
        eventually("it is there, or this test shows nothing", || {
            !the_watchdog_has_ended()
        });
        drop(nap);
        drop(runtime);
        eventually(
            "the watchdog thread ends with the last timer",
            the_watchdog_has_ended,
        );
    });
}

#[test]
fn a_runtime_with_a_million_pending_timers_is_dropped_at_once() {
    alone(|| {
        const MILLION: u64 = 1_000_000;
        let runtime = multi_thread(2);
        let probe = Probe::new();
        let waker = probe.waker();
        let timer = current_of(&runtime);
        let armed = |n| waiting_with(sleep(HOUR + ms(n % 100_000)), waker.clone());
        let mut naps: Vec<_> = inside(&runtime, || (0..MILLION).map(armed).collect());
        assert_eq!(metrics(&timer).pending(), MILLION);
        let start = RealInstant::now();
        drop(runtime);
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(metrics(&timer).stopped(), MILLION);
        assert_eq!(probe.wakes() as u64, MILLION);
        assert!(!naps.iter().any(|nap| nap.is_elapsed() || nap.was_stopped()));
        assert_over(|| poll_once(&mut naps[0]));
    });
}
