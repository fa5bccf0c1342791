//! Pending timers are ready at once after a `shutdown`; afterwards nothing is accepted.

use std::future::pending;
use std::thread;

use futures::{FutureExt, StreamExt};
use waterwheel::{
    Duration, Instant, Sleep, Timer, interval, interval_at, sleep, sleep_until, timeout, timeout_at,
};

use super::STOPPED;
use crate::support::{
    HOUR, Probe, assert_panics_here, current_thread, eventually, inside, metrics, ms, multi_thread,
    own_timer, panic_of, poll_once, refusals, waiting, within,
};

// It used to be false without a poll in between, although `is_elapsed` was true.
#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_not_due_shows_unpolled_that_it_was_stopped() {
    let timer = own_timer();
    // One of each is pending, and the other was reset before its first poll. The first two are due before the others.
    let [mut due, mut later] = [10, 20].map(|millis| {
        let [armed, mut reset] = [(); 2].map(|()| timer.sleep(ms(millis)));
        reset.set_deadline(armed.deadline());
        [waiting(armed), reset]
    });
    let all_stopped = |naps: &[Sleep; 2]| naps.iter().all(Sleep::was_stopped);
    let none_stopped = |naps: &[Sleep; 2]| naps.iter().all(|nap| !nap.was_stopped());
    assert!(none_stopped(&due) && none_stopped(&later));
    timer.shutdown();
    assert!(all_stopped(&due) && all_stopped(&later));
    assert!(due.iter().chain(&later).all(Sleep::is_elapsed));
    tokio::time::advance(ms(10)).await;
    assert!(none_stopped(&due) && all_stopped(&later));
    assert!(due.iter().chain(&later).all(Sleep::is_elapsed));
    for nap in due.iter_mut().chain(&mut later) {
        assert!(poll_once(nap).is_ready());
    }
    assert!(none_stopped(&due) && all_stopped(&later));
}

#[tokio::test(start_paused = true)]
async fn shutdown_makes_pending_sleeps_ready_at_once() {
    let start = Instant::now();
    let timer = own_timer();
    let probe = Probe::new();
    let mut near = timer.sleep(ms(10));
    let mut far = timer.sleep(Duration::MAX);
    assert!(probe.poll(&mut near).is_pending());
    assert!(probe.poll(&mut far).is_pending());
    timer.shutdown();
    assert_eq!((probe.wakes(), probe.held()), (2, 0));
    // A sleep is reset before it is polled.
    near.set_deadline(Instant::now() + HOUR);
    for sleep in [&mut near, &mut far] {
        assert!(sleep.is_elapsed());
        assert!(poll_once(sleep).is_ready());
        assert!(sleep.was_stopped());
        // Poll again, and after a reset.
        assert!(poll_once(sleep).is_ready());
        sleep.set_deadline(Instant::now() + HOUR);
        assert!(poll_once(sleep).is_ready() && sleep.was_stopped());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn shutdown_returns_how_many_were_pending_and_then_nothing() {
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    let mut pending: Vec<_> = (1..=5).map(|n| waiting(timer.sleep(ms(n * 10)))).collect();
    let _unpolled = timer.sleep(ms(10));
    pending.pop();
    // It has fired, but was not polled since.
    tokio::time::sleep(ms(11)).await;
    assert_eq!(timer.shutdown(), 3);
    assert_eq!(timer.shutdown(), 0);
    assert_eq!(timer.clone().shutdown(), 0);
    assert!(timer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn shutdown_gives_timeouts_elapsed_that_were_stopped() {
    let timer = own_timer();
    let cut = tokio::spawn(timer.timeout(HOUR, pending::<()>()));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let limited = waiting(timer.timeout(HOUR, receiver));
    tokio::task::yield_now().await;
    assert_eq!(timer.shutdown(), 2);
    let elapsed = cut.await.expect("it does not panic");
    assert!(elapsed.is_err_and(|elapsed| elapsed.was_stopped()));
    // A future that is ready wins.
    sender.send(7).expect("the receiver is there");
    assert_eq!(limited.await, Ok(Ok(7)));
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_interval_streams() {
    let timer = own_timer();
    let mut waiting = timer.interval(ms(10));
    let mut idle = timer.interval(ms(10));
    waiting.next().await;
    idle.next().await;
    let waiting = tokio::spawn(waiting.count());
    tokio::task::yield_now().await;
    timer.shutdown();
    assert_eq!(waiting.await.expect("it does not panic"), 0);
    assert_eq!(idle.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_tick_completes_once_then_panics_with_advice() {
    let timer = own_timer();
    let mut interval = timer.interval(ms(10));
    interval.tick().await;
    timer.shutdown();
    assert!(!interval.was_stopped(), "it was not polled since");
    assert!(interval.tick().now_or_never().is_some());
    assert!(interval.was_stopped());
    interval.reset_immediately();
    let tried = interval.try_tick().now_or_never();
    let error = tried.expect("it is ready").expect_err("it was stopped");
    assert!(error.is_shutdown());
    let panicked = panic_of(|| interval.tick().now_or_never());
    assert!(panicked.message.contains("try_tick"), "{panicked:?}");
    assert!(panicked.message.contains("was_stopped"), "{panicked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_made_before_shutdown_and_polled_after_was_stopped() {
    let timer = own_timer();
    let mut sleep = timer.sleep(ms(10));
    let mut limited = timer.timeout(ms(10), pending::<()>());
    let mut interval = timer.interval_at(Instant::now() + ms(10), ms(10));
    assert_eq!(timer.shutdown(), 0);
    assert!(poll_once(&mut sleep).is_ready());
    assert!(sleep.was_stopped());
    let elapsed = (&mut limited).now_or_never().expect("it is ready");
    assert!(elapsed.is_err_and(|elapsed| elapsed.was_stopped()));
    assert_eq!(interval.next().now_or_never(), Some(None));
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_methods_refuse_or_panic_with_advice() {
    let timer = own_timer();
    let later = Instant::now() + ms(1);
    timer.shutdown();
    for error in refusals(&timer) {
        assert!(error.is_shutdown() && !error.is_at_capacity() && !error.is_invalid());
        assert!(error.to_string().contains("Timer::builder"));
    }
    // An overflowing timeout never arms, but a stopped timer accepts nothing at all.
    let refused = timer.try_timeout(Duration::MAX, pending::<()>());
    assert!(refused.is_err_and(|error| error.is_shutdown()));
    assert_panics_here(STOPPED, || timer.timeout(Duration::MAX, pending::<()>()));
    assert_panics_here(STOPPED, || timer.sleep(ms(1)));
    assert_panics_here(STOPPED, || timer.sleep_until(later));
    assert_panics_here(STOPPED, || timer.timeout(ms(1), pending::<()>()));
    assert_panics_here(STOPPED, || timer.timeout_at(later, pending::<()>()));
    assert_panics_here(STOPPED, || timer.interval(ms(1)));
    assert_panics_here(STOPPED, || timer.interval_at(later, ms(1)));
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_functions_panic_at_the_caller_with_advice() {
    let later = Instant::now() + ms(1);
    let mut pending_sleep = waiting(sleep(HOUR));
    assert_eq!(Timer::current().shutdown(), 1);
    assert!(poll_once(&mut pending_sleep).is_ready());
    for _ in 0..2 {
        assert_panics_here(STOPPED, || sleep(ms(1)));
        assert_panics_here(STOPPED, || sleep_until(later));
        assert_panics_here(STOPPED, || timeout(ms(1), pending::<()>()));
        assert_panics_here(STOPPED, || timeout(Duration::MAX, pending::<()>()));
        assert_panics_here(STOPPED, || timeout_at(later, pending::<()>()));
        assert_panics_here(STOPPED, || interval(ms(1)));
        assert_panics_here(STOPPED, || interval_at(later, ms(1)));
        tokio::task::yield_now().await;
    }
    assert!(Timer::current().is_stopped());
    // Another timer of the same runtime goes on.
    own_timer().sleep(ms(1)).await;
}

#[tokio::test(start_paused = true)]
async fn metrics_count_what_was_stopped_apart() {
    let timer = own_timer();
    let mut sleeps: Vec<_> = (1..=6).map(|n| waiting(timer.sleep(ms(n * 10)))).collect();
    tokio::time::sleep(ms(25)).await;
    sleeps.pop();
    timer.shutdown();
    // The ones that were due before were not stopped.
    for sleep in &mut sleeps[..2] {
        assert!(poll_once(sleep).is_ready() && !sleep.was_stopped());
    }
    drop(sleeps);
    let metrics = metrics(&timer);
    let counts = (metrics.fired(), metrics.cancelled(), metrics.stopped());
    assert_eq!((counts, metrics.pending()), ((2, 1, 3), 0));
}

#[test]
fn shutdown_from_a_thread_outside_wakes_the_tasks() {
    within(Duration::from_secs(20), || {
        for runtime in [current_thread(), multi_thread(2)] {
            let timer = inside(&runtime, own_timer);
            let stopper = thread::spawn({
                let timer = timer.clone();
                move || {
                    eventually("ten are pending", || timer.metrics().pending() == 10);
                    timer.shutdown()
                }
            });
            runtime.block_on(async {
                let naps: Vec<_> = (0..10).map(|_| tokio::spawn(timer.sleep(HOUR))).collect();
                for nap in naps {
                    nap.await.expect("it does not panic");
                }
            });
            assert_eq!(stopper.join().expect("it does not panic"), 10);
        }
    });
}
