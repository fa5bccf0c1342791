//! Wakers that panic.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;
use std::thread;

use waterwheel::Instant;

use crate::support::{
    HOUR, Probe, alone, armed, assert_over, current_thread, metrics, ms, multi_thread, own_timer,
    poll_giving, poll_once, waiting, waiting_with, waker_on_drop, waker_on_wake, with_timer,
};

fn panics_when_woken() -> Waker {
    waker_on_wake(|| resume_unwind(Box::new("a waker that panics when it is woken, on purpose")))
}

fn panics_when_dropped() -> Waker {
    waker_on_drop(|| {
        resume_unwind(Box::new(
            "a waker that panics when it is dropped, on purpose",
        ))
    })
}

/// Runs `act`, which may panic on purpose.
fn let_panic<R>(act: impl FnOnce() -> R) {
    let _ = catch_unwind(AssertUnwindSafe(act));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_waker_strands_no_waiter_and_the_driver_goes_on() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let probe = Probe::new();
        let mut sleeps: Vec<_> = (0..600).map(|n| timer.sleep(ms(5 + n % 2))).collect();
        for (n, sleep) in sleeps.iter_mut().enumerate() {
            let pending = if n % 3 == 0 {
                poll_giving(sleep, panics())
            } else {
                probe.poll(sleep)
            };
            assert!(pending.is_pending());
        }
        tokio::time::sleep(ms(10)).await;
        assert_eq!((probe.wakes(), probe.held()), (400, 0));
        assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep).is_ready()));
        assert_eq!(metrics(&timer).fired(), 600);
        timer.sleep(ms(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_waker_strands_no_waiter_at_a_shutdown() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let probe = Probe::new();
        let mut first = timer.sleep(ms(5));
        let mut sleeps: Vec<_> = (0..10).map(|_| timer.sleep(ms(5))).collect();
        assert!(poll_giving(&mut first, panics()).is_pending());
        assert!(
            sleeps
                .iter_mut()
                .all(|sleep| probe.poll(sleep).is_pending())
        );
        assert_eq!(timer.shutdown(), 11);
        assert_eq!(probe.wakes(), 10);
        metrics(&timer);
    }
}

#[test]
fn a_panicking_waker_strands_no_waiter_at_its_runtimes_end() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let (runtime, timer) = with_timer(multi_thread(1));
        let probe = Probe::new();
        let (mut first, mut second) = (timer.sleep(HOUR), timer.sleep(HOUR));
        assert!(poll_giving(&mut first, panics()).is_pending());
        assert!(probe.poll(&mut second).is_pending());
        drop(runtime);
        assert_eq!(probe.wakes(), 1);
        assert_over(|| poll_once(&mut first));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_when_replaced_leaves_all_usable() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut sleep = waiting_with(timer.sleep(ms(5)), panics_when_dropped());
    let_panic(|| probe.poll(&mut sleep));
    assert!(probe.poll(&mut sleep).is_pending());
    metrics(&timer);
    tokio::time::sleep(ms(6)).await;
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut sleep).is_ready());
    metrics(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_when_dropped_leaves_its_timer_usable() {
    let timer = own_timer();
    let sleep = waiting_with(timer.sleep(ms(5)), panics_when_dropped());
    let_panic(|| drop(sleep));
    let metrics_now = metrics(&timer);
    assert_eq!((metrics_now.cancelled(), metrics_now.pending()), (1, 0));
    timer.sleep(ms(5)).await;
    timer.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_at_a_reset_leaves_its_sleep_usable() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let mut sleep = waiting_with(timer.sleep(HOUR), panics());
        let_panic(|| sleep.set_deadline(Instant::now() - ms(1)));
        metrics(&timer);
        assert!(poll_once(&mut sleep).is_ready());
        sleep.set_deadline(Instant::now() + ms(5));
        sleep.await;
        metrics(&timer);
    }
}

// A released entry may belong to another timer by now.
#[test]
fn a_waker_that_panics_at_completion_leaves_all_usable() {
    alone(|| {
        let (runtime, timer) = with_timer(current_thread());
        let mut sleep = waiting_with(timer.sleep(ms(50)), panics_when_dropped());
        let mut dropped = waiting_with(timer.sleep(ms(50)), panics_when_dropped());
        // Wait past the deadline while no thread drives the runtime, so that the poll completes it.
        thread::sleep(ms(60));
        let_panic(|| poll_once(&mut sleep));
        // This one is dropped right after its poll.
        let_panic(|| poll_once(&mut dropped));
        drop(dropped);
        // Reuses the entry of the other.
        let mut neighbour = armed(&timer, ms(50), poll_once);
        sleep.set_deadline(Instant::now() + HOUR);
        assert!(poll_once(&mut sleep).is_pending());
        runtime.block_on(&mut neighbour);
        assert!(poll_once(&mut sleep).is_pending());
        drop(sleep);
        let metrics = metrics(&timer);
        assert_eq!((metrics.cancelled(), metrics.pending()), (1, 0));
    });
}

#[tokio::test(start_paused = true)]
async fn a_drain_whose_waker_panics_strands_no_waiter() {
    for panics in [panics_when_woken, panics_when_dropped] {
        let timer = own_timer();
        let last = waiting(timer.sleep(HOUR));
        let (mut first, mut second) = (Box::pin(timer.drain()), Box::pin(timer.drain()));
        let probe = Probe::new();
        assert!(poll_giving(&mut first, panics()).is_pending());
        assert!(probe.poll(&mut second).is_pending());
        drop(last);
        assert!(probe.wakes() > 0);
        assert!(probe.poll(&mut second).is_ready());
    }
}
