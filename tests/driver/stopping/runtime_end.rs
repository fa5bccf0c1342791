//! The state of a timer when its runtime ends, seen from outside.

use std::future::pending;

use futures::{FutureExt, StreamExt};
use waterwheel::{Duration, Sleep, Timer, interval, sleep, timeout};

use super::STOPPED;
use crate::support::{
    HOUR, Probe, assert_over, assert_panics_here, current_thread, eventually, inside, metrics, ms,
    multi_thread, own_timer, poll_once, within,
};

// tokio#2789: a runtime shut down with far timers pending.
#[test]
fn dropping_the_runtime_ends_its_timers() {
    within(Duration::from_secs(20), || {
        for runtime in [current_thread(), multi_thread(2)] {
            let probe = Probe::new();
            let (own, current, mut sleeps, mut interval, mut limited) = runtime.block_on(async {
                let (own, current) = (own_timer(), Timer::current());
                let mut sleeps = [own.sleep(HOUR), sleep(HOUR), sleep(Duration::MAX)];
                for sleep in &mut sleeps {
                    assert!(probe.poll(sleep).is_pending());
                }
                let mut interval = interval(HOUR);
                interval.tick().await;
                let limited = probe.waiting(timeout(HOUR, pending::<()>()));
                (own, current, sleeps, interval, limited)
            });
            drop(runtime);
            assert_eq!((probe.wakes(), probe.held()), (4, 0));
            assert!(own.is_stopped() && current.is_stopped());
            for sleep in &mut sleeps {
                assert_over(|| poll_once(sleep));
                assert!(!sleep.is_elapsed() && !sleep.was_stopped());
                // This also holds for each further poll, even after a reset.
                sleep.set_deadline(waterwheel::Instant::now() + HOUR);
                assert_over(|| poll_once(sleep));
                assert_over(|| poll_once(sleep));
            }
            assert_over(|| interval.tick().now_or_never());
            assert_eq!(interval.next().now_or_never(), Some(None));
            assert_over(|| (&mut limited).now_or_never());
            for timer in [&*own, &current] {
                assert_panics_here(STOPPED, || timer.sleep(ms(1)));
                let refused = timer.try_sleep(ms(1));
                assert!(refused.is_err_and(|error| error.is_shutdown()));
                assert_eq!(timer.shutdown(), 0);
                assert!(timer.drain().now_or_never().is_some());
                assert_eq!(metrics(timer).pending(), 0);
                assert!(metrics(timer).stopped() >= 1);
            }
        }
    });
}

#[test]
fn shutting_the_runtime_down_in_the_background_ends_its_timers() {
    let runtime = multi_thread(2);
    let (mut nap, timer) = runtime.block_on(async { (sleep(HOUR), Timer::current()) });
    assert!(poll_once(&mut nap).is_pending());
    runtime.shutdown_background();
    eventually("it is stopped", || timer.is_stopped());
    eventually("it takes nothing", || timer.try_sleep(HOUR).is_err());
    assert_over(|| poll_once(&mut nap));
    assert!(!nap.is_elapsed());
}

#[test]
fn a_task_may_use_futures_while_its_runtime_is_dropped() {
    struct Last(Option<Sleep>);
    impl Drop for Last {
        fn drop(&mut self) {
            let mut nap = self.0.take().expect("it is dropped once");
            let _ = poll_once(&mut nap);
            let mut another = sleep(ms(5));
            let _ = poll_once(&mut another);
        }
    }
    within(Duration::from_secs(20), || {
        for runtime in [current_thread(), multi_thread(2)] {
            runtime.block_on(async {
                for _ in 0..20 {
                    let last = Last(Some(sleep(HOUR)));
                    tokio::spawn(async move {
                        sleep(HOUR).await;
                        drop(last);
                    });
                }
                tokio::task::yield_now().await;
            });
            drop(runtime);
        }
    });
}

#[test]
fn a_sleep_of_a_dropped_runtime_panics_in_another_one() {
    within(Duration::from_secs(20), || {
        let first = multi_thread(1);
        let nap = inside(&first, || sleep(HOUR));
        current_thread().block_on(async {
            let probe = Probe::new();
            let mut waiting = probe.waiting(nap);
            tokio::task::spawn_blocking(move || drop(first))
                .await
                .expect("it does not panic");
            assert_eq!(probe.wakes(), 1);
            assert_over(|| poll_once(&mut waiting));
        });
    });
}

// A runtime with the same id does not find a timer that its owner stopped.
#[test]
fn a_stopped_timer_is_abandoned_with_its_runtime_as_well() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    runtime.block_on(async {
        sleep(ms(1)).await;
        Timer::current().shutdown();
    });
    drop(runtime);
    let _entered = handle.enter();
    // A stopped timer that was still there would refuse it.
    let mut nap = sleep(HOUR);
    assert_over(|| poll_once(&mut nap));
}
