//! A `drain` accepts nothing new, and completes when all pending timers have fired.

use std::thread;

use futures::{FutureExt, StreamExt};
use tokio::task::JoinHandle;
use waterwheel::{Duration, Instant, Sleep, Timer};

use super::STOPPED;
use crate::support::{HOUR, Probe, assert_panics_here, metrics, ms, own_timer, poll_once, waiting};

#[tokio::test(start_paused = true)]
async fn drain_takes_nothing_new_from_the_call_on() {
    let timer = own_timer();
    let _pending_sleep = waiting(timer.sleep(ms(10)));
    let unpolled = timer.drain();
    assert!(!timer.is_stopped());
    let refused = timer.try_sleep(ms(1));
    assert!(refused.is_err_and(|error| error.is_shutdown()));
    assert_panics_here(STOPPED, || timer.sleep(ms(1)));
    drop(unpolled);
    let refused = timer.try_sleep(ms(1));
    assert!(refused.is_err(), "dropping it does not undo it");
}

#[tokio::test(start_paused = true)]
async fn drain_completes_when_what_is_pending_has_fired() {
    let start = Instant::now();
    let timer = own_timer();
    let naps: Vec<_> = [30, 10, 20]
        .map(|millis| tokio::spawn(nap(timer.sleep(ms(millis)))))
        .into_iter()
        .collect();
    tokio::task::yield_now().await;
    timer.drain().await;
    assert_eq!(start.elapsed(), ms(30));
    assert!(timer.is_stopped());
    for nap in naps {
        assert!(!nap.await.expect("it does not panic"), "fired, not stopped");
    }
    let metrics = metrics(&timer);
    assert_eq!((metrics.fired(), metrics.stopped()), (3, 0));
    assert_eq!(timer.shutdown(), 0);
}

/// A drain in a task that has already been polled.
async fn drain(timer: &Timer) -> JoinHandle<()> {
    let drained = tokio::spawn(timer.drain());
    tokio::task::yield_now().await;
    drained
}

/// Returns whether the sleep was stopped in the end.
async fn nap(mut sleep: Sleep) -> bool {
    (&mut sleep).await;
    sleep.was_stopped()
}

#[tokio::test(start_paused = true)]
async fn drain_completes_however_the_last_pending_ends() {
    let start = Instant::now();
    let ends: [fn(&Timer, Sleep) -> Option<Sleep>; 3] = [
        |_, _dropped| None,
        |_, mut last| {
            last.set_deadline(Instant::now());
            Some(last)
        },
        |timer, last| {
            assert_eq!(timer.shutdown(), 1);
            Some(last)
        },
    ];
    for (end, was_stopped) in ends.into_iter().zip([false, false, true]) {
        let timer = own_timer();
        let last = waiting(timer.sleep(HOUR));
        let drained = drain(&timer).await;
        assert!(!drained.is_finished());
        let last = end(&timer, last);
        drained.await.expect("it does not panic");
        assert_eq!(start.elapsed(), Duration::ZERO);
        if let Some(mut last) = last {
            assert!(poll_once(&mut last).is_ready());
            assert_eq!(last.was_stopped(), was_stopped);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn drain_completes_at_once_when_nothing_is_pending() {
    let timer = own_timer();
    assert!(timer.drain().now_or_never().is_some(), "never used");
    assert!(timer.is_stopped());
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    assert!(timer.drain().now_or_never().is_some(), "used");
    // Every drain completes when the last timer has fired.
    let timer = own_timer();
    let _last = waiting(timer.sleep(ms(10)));
    let drains = [timer.drain(), timer.drain(), timer.clone().drain()];
    futures::future::join_all(drains).await;
    assert!(timer.drain().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn while_it_drains_an_interval_ends_after_its_next_tick() {
    let start = Instant::now();
    let timer = own_timer();
    let mut interval = timer.interval(ms(10));
    interval.tick().await;
    let ticks = tokio::spawn(interval.collect::<Vec<_>>());
    // Keeps the timer draining for ten periods.
    let longest = tokio::spawn(timer.sleep(ms(100)));
    tokio::task::yield_now().await;
    timer.drain().await;
    assert_eq!(start.elapsed(), ms(100));
    longest.await.expect("it does not panic");
    assert_eq!(ticks.await.expect("it does not panic"), [start + ms(10)]);
}

#[tokio::test(start_paused = true)]
async fn a_future_made_before_a_drain_and_armed_after_is_on_time() {
    let start = Instant::now();
    let timer = own_timer();
    let lazy = timer.sleep(ms(50));
    let mut too_late = timer.sleep(HOUR);
    let _first = waiting(timer.sleep(ms(10)));
    let drained = drain(&timer).await;
    let lazy = tokio::spawn(nap(lazy));
    tokio::task::yield_now().await;
    drained.await.expect("it does not panic");
    assert_eq!(start.elapsed(), ms(50), "it was waited for");
    assert!(!lazy.await.expect("it does not panic"));
    assert!(poll_once(&mut too_late).is_ready() && too_late.was_stopped());
    // The drain waits for a postponed timer as well.
    let timer = own_timer();
    let mut pushed_back = waiting(timer.sleep(ms(10)));
    let drained = drain(&timer).await;
    pushed_back.set_deadline(start + ms(90));
    drained.await.expect("it does not panic");
    assert_eq!(start.elapsed(), ms(90));
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_future_armed_on_a_new_shard_meanwhile() {
    let timer = Timer::builder().shards(8).start().expect("a timer");
    let lazy: Vec<_> = (0..8).map(|_| timer.sleep(ms(50))).collect();
    let first = waiting(timer.sleep(HOUR));
    let mut drained = Box::pin(timer.drain());
    let probe = Probe::new();
    assert!(probe.poll(&mut drained).is_pending());
    // Each arms on its own thread, and so on its own shard.
    let arm = |mut sleep: Sleep| {
        let armed = thread::spawn(move || {
            assert!(poll_once(&mut sleep).is_pending());
            sleep
        });
        armed.join().expect("it does not panic")
    };
    let mut armed: Vec<_> = lazy.into_iter().map(arm).collect();
    drop(first);
    assert!(probe.poll(&mut drained).is_pending());
    armed.truncate(1);
    assert!(probe.poll(&mut drained).is_pending());
    let before = probe.wakes();
    armed.clear();
    assert!(probe.wakes() > before);
    assert!(probe.poll(&mut drained).is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_given_up_leaves_no_waker_behind() {
    let timer = own_timer();
    let nap = waiting(timer.sleep(HOUR));
    let probe = Probe::new();
    let mut kept = probe.waiting(Box::pin(timer.drain()));
    for _ in 0..100 {
        let given_up = Probe::new();
        let drain = given_up.waiting(Box::pin(timer.drain()));
        drop(drain);
        assert_eq!(given_up.held(), 0);
    }
    assert_eq!(probe.held(), 1);
    drop(nap);
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut kept).is_ready());
}

// A task may poll it once, as one of several futures, and then have another task wait for it.
#[tokio::test(start_paused = true)]
async fn a_drain_that_moves_to_another_task_wakes_that_one() {
    let timer = own_timer();
    let nap = waiting(timer.sleep(HOUR));
    let mut drain = Box::pin(timer.drain());
    let [first, second] = [(); 2].map(|()| Probe::new());
    assert!(first.poll(&mut drain).is_pending());
    assert!(second.poll(&mut drain).is_pending());
    assert_eq!((first.held(), second.held()), (0, 1));
    drop(nap);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert!(second.poll(&mut drain).is_ready());
}
