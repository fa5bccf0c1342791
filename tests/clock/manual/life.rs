//! How a timer on a manual clock ends, and what it needs.

use std::sync::{Arc, mpsc};
use std::thread;

use tokio::runtime::Builder;
use waterwheel::{ManualClock, Timer};

use super::{on_both_flavors, start};
use crate::support::{LIMIT, Probe, assert_over, current_thread, ms, multi_thread, within};

#[test]
fn it_needs_no_time_of_tokios() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let clock = ManualClock::new();
    let timer = start(&runtime, &clock);
    let probe = Probe::new();
    let sleep = probe.waiting(timer.sleep(ms(5)));
    clock.advance(ms(5));
    assert_eq!(probe.wakes(), 1);
    runtime.block_on(sleep);
}

#[test]
fn it_ends_with_its_runtime() {
    for runtime in [current_thread(), multi_thread(2)] {
        let clock = ManualClock::new();
        let timer = start(&runtime, &clock);
        let probe = Probe::new();
        let mut sleep = probe.waiting(timer.sleep(ms(5)));
        drop(runtime);
        assert_eq!(probe.wakes(), 1);
        assert_over(|| probe.poll(&mut sleep));
        assert!(!sleep.is_elapsed() && !sleep.was_stopped());
        clock.advance(ms(5));
        assert!(probe.poll(&mut sleep).is_ready() && !sleep.was_stopped());
        assert_eq!(clock.advance_to_next(), None);
        assert!(timer.try_sleep(ms(5)).unwrap_err().is_shutdown());
    }
}

// The task is in the middle of a poll. Its handles are cancelled, its sleeps wait, and it is dropped at its next `.await`.
#[test]
fn a_task_may_use_it_while_its_runtime_is_dropped() {
    let runtime = multi_thread(2);
    let timer = start(&runtime, &ManualClock::new());
    let (begins, begun) = mpsc::channel();
    let (sender, outcome) = mpsc::channel();
    runtime.spawn({
        let timer = timer.clone();
        async move {
            begins.send(()).unwrap();
            // Another thread notices the end, but this one does not.
            let is_open = || timer.try_sleep(ms(5)).is_ok();
            while thread::scope(|scope| scope.spawn(is_open).join()).unwrap() {
                thread::yield_now();
            }
            assert!(is_open());
            let held = Arc::new(());
            let payload = Arc::clone(&held);
            let handle = timer.call_after(ms(5), move || drop(payload));
            let is_dropped = Arc::strong_count(&held) == 1;
            let is_pending = Probe::new().poll(&mut timer.sleep(ms(5))).is_pending();
            let seen = (handle.is_cancelled(), is_dropped, is_pending);
            sender.send(seen).unwrap();
        }
    });
    begun.recv().unwrap();
    runtime.shutdown_background();
    let seen = outcome.recv_timeout(LIMIT);
    assert_eq!(seen, Ok((true, true, true)));
    within(LIMIT, move || futures::executor::block_on(timer.drain()));
}

#[test]
fn a_shutdown_ends_what_is_pending_without_the_clock() {
    on_both_flavors(|_, clock, timer| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(timer.sleep(ms(5)));
        assert_eq!(timer.shutdown(), 1);
        assert!(probe.poll(&mut sleep).is_ready() && sleep.was_stopped());
        clock.advance(ms(5));
        assert_eq!(timer.metrics().fired(), 0);
    });
}

#[test]
fn a_drain_is_over_when_the_clock_has_passed_the_last() {
    on_both_flavors(|runtime, clock, timer| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(timer.sleep(ms(5)));
        let drain = runtime.spawn(timer.drain());
        clock.advance(ms(4));
        assert!(!drain.is_finished() && !timer.is_stopped());
        clock.advance(ms(1));
        runtime.block_on(drain).unwrap();
        assert!(timer.is_stopped());
        assert!(probe.poll(&mut sleep).is_ready() && !sleep.was_stopped());
    });
}

// The clock holds no timer, and no timer holds a task.
#[test]
fn a_dropped_timer_leaves_its_clock_and_its_runtime() {
    let runtime = multi_thread(1);
    let clock = ManualClock::new();
    let tasks = || runtime.metrics().num_alive_tasks();
    for _ in 0..1_000 {
        let timer = start(&runtime, &clock);
        let probe = Probe::new();
        let _sleep = probe.waiting(timer.sleep(ms(5)));
        drop(timer);
        clock.advance(ms(5));
        assert_eq!(probe.wakes(), 1);
    }
    crate::support::eventually("no task is left", || tasks() == 0);
}

#[test]
fn a_timer_that_is_started_within_an_advance_joins_it() {
    on_both_flavors(|runtime, clock, timer| {
        let mut first = timer.sleep(ms(5));
        let inner = Arc::new(std::sync::Mutex::new(None));
        let probe = Arc::new(Probe::new());
        let waker = {
            let (clock, inner, probe) = (clock.clone(), inner.clone(), probe.clone());
            let handle = runtime.handle().clone();
            crate::support::waker_on_wake(move || {
                let builder = Timer::builder().clock(clock.clone());
                let timer = builder.start_on(&handle).unwrap();
                let sleep = probe.waiting(timer.sleep(ms(3)));
                *inner.lock().unwrap() = Some((timer, sleep));
            })
        };
        assert!(crate::support::poll_with(&mut first, &waker).is_pending());
        let advanced = clock.clone();
        within(LIMIT, move || advanced.advance(ms(8)));
        assert_eq!(probe.wakes(), 0);
        clock.advance(ms(3));
        assert_eq!(probe.wakes(), 1);
    });
}
