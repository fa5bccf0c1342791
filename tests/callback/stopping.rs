//! The end of a timer cancels callbacks that have not run, and `shutdown_now` returns them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use waterwheel::callback::Unrun;
use waterwheel::{Duration, Timer, sleep};

use crate::support::{
    HOUR, LIMIT, Probe, assert_panics_here, assert_settled, current_thread, eventually, inside, ms,
    multi_thread, own_timer, with_timer, with_timer_within, within,
};
use crate::{Blocker, Log, settle};

#[tokio::test(start_paused = true)]
async fn shutdown_cancels_what_is_not_due_and_drops_its_closures() {
    let timer = own_timer();
    let held = Arc::new(());
    let handles: Vec<_> = (0..100)
        .map(|n| {
            let capture = Arc::clone(&held);
            timer.call_after(ms(5 + n % 3), move || drop(capture))
        })
        .collect();
    assert_eq!(timer.shutdown(), 100);
    assert_eq!(Arc::strong_count(&held), 1);
    for handle in &handles {
        assert!(handle.is_cancelled() && !handle.is_expired() && !handle.cancel());
    }
    assert_eq!(timer.shutdown(), 0);
    assert_eq!(assert_settled(&timer).stopped(), 100);
}

#[tokio::test(start_paused = true)]
async fn shutdown_now_returns_what_never_ran_by_deadline() {
    let timer = own_timer();
    let log = Log::new();
    let start = timer.now();
    let handles: Vec<_> = [30, 10, 20, 10]
        .into_iter()
        .enumerate()
        .map(|(n, millis)| timer.call_after(ms(millis), log.note((millis, n))))
        .collect();
    let cancelled = timer.call_after(ms(10), log.note((0, 0)));
    let ran = timer.call_after(ms(1), log.note((1, 9)));
    sleep(ms(2)).await;
    assert!(cancelled.cancel());
    let unrun = timer.shutdown_now();
    let deadlines: Vec<_> = unrun.iter().map(Unrun::deadline).collect();
    assert_eq!(deadlines, [10, 10, 20, 30].map(|at| start + ms(at)));
    assert!(handles.iter().all(|it| it.is_cancelled() && !it.cancel()));
    assert!(ran.is_expired() && !ran.is_cancelled());
    assert!(timer.shutdown_now().is_empty(), "a second time");
    assert_eq!(log.take(), [(1, 9)]);
    unrun.into_iter().for_each(Unrun::run);
    assert_eq!(log.take(), [(10, 1), (10, 3), (20, 2), (30, 0)]);
    assert!(handles.iter().all(|it| it.is_cancelled()));
}

#[tokio::test(start_paused = true)]
async fn dropping_what_never_ran_drops_its_closure() {
    let timer = own_timer();
    let held = Arc::new(());
    let capture = Arc::clone(&held);
    let _handle = timer.call_after(HOUR, move || drop(capture));
    let unrun = timer.shutdown_now();
    assert_eq!(Arc::strong_count(&held), 2);
    drop(unrun);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_now_without_callbacks_stops_the_futures() {
    let timer = own_timer();
    let nap = tokio::spawn(timer.sleep(HOUR));
    tokio::task::yield_now().await;
    assert!(timer.shutdown_now().is_empty());
    nap.await.unwrap();
    assert!(timer.is_stopped());
    assert!(timer.shutdown_now().is_empty());
}

#[test]
fn what_is_due_runs_after_shutdown_and_not_after_shutdown_now() {
    within(LIMIT, || {
        for is_now in [false, true] {
            let (_runtime, timer) = with_timer(multi_thread(2));
            let blocker = Blocker::start(&timer);
            let log = Log::new();
            let due = timer.call_after(Duration::ZERO, log.note("due"));
            let far = timer.call_after(HOUR, log.note("far"));
            eventually("one is due", || timer.metrics().pending() == 1);
            let unrun = match is_now {
                true => timer.shutdown_now(),
                false => {
                    assert_eq!(timer.shutdown(), 1);
                    Vec::new()
                }
            };
            assert!(far.is_cancelled());
            assert_eq!(due.is_cancelled(), is_now);
            assert!(!blocker.handle.is_cancelled(), "it has begun");
            drop(blocker);
            match is_now {
                true => {
                    assert_eq!(log.len(), 0);
                    unrun.into_iter().for_each(Unrun::run);
                    assert_eq!(log.take(), ["due", "far"]);
                }
                false => {
                    eventually("it runs", || log.len() == 1);
                    assert_eq!(log.take(), ["due"]);
                }
            }
        }
    });
}

#[test]
fn what_has_come_due_unserved_is_due_at_a_shutdown() {
    let (runtime, timer) = with_timer(current_thread());
    let log = Log::new();
    let due = timer.call_after(ms(1), log.note(()));
    let far = timer.call_after(HOUR, log.note(()));
    // No thread runs the driver.
    eventually("its tick has come", || timer.now() > due.deadline() + ms(2));
    assert_eq!(timer.shutdown(), 2);
    assert!(far.is_cancelled() && !due.is_cancelled());
    runtime.block_on(async {
        while log.len() == 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(due.is_expired());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_refuses_callbacks() {
    for stop in [
        |timer: &Timer| assert_eq!(timer.shutdown(), 0),
        |timer: &Timer| assert!(timer.shutdown_now().is_empty()),
        |timer: &Timer| drop(timer.drain()),
    ] {
        let timer = own_timer();
        stop(&timer);
        let held = Arc::new(());
        let capture = Arc::clone(&held);
        let refused = timer.try_call_after(ms(1), move || drop(capture));
        assert!(refused.unwrap_err().is_shutdown());
        assert_eq!(Arc::strong_count(&held), 1);
        let refused = timer.try_call_at(timer.now(), || ());
        assert!(refused.unwrap_err().is_shutdown());
        assert_panics_here(&["stopped"], || timer.call_after(ms(1), || ()));
        assert_panics_here(&["stopped"], || timer.call_at(timer.now(), || ()));
    }
}

// Netty throws here, since it would wait for itself.
#[tokio::test(start_paused = true)]
async fn a_callback_may_stop_its_timer_and_gets_the_rest() {
    let timer = own_timer();
    let log = Log::new();
    let (stopper, seen) = (Timer::clone(&timer), log.clone());
    timer.call_after(ms(4), log.note("before"));
    let itself = timer.call_after(ms(5), move || {
        let unrun = stopper.shutdown_now();
        seen.push("stopped");
        unrun.into_iter().for_each(Unrun::run);
        assert!(stopper.try_call_after(ms(1), || ()).is_err());
    });
    let same_tick = timer.call_after(ms(5), log.note("of the same tick"));
    let later = timer.call_after(ms(6), log.note("later"));
    sleep(ms(10)).await;
    assert_eq!(
        log.take(),
        ["before", "stopped", "of the same tick", "later"]
    );
    assert!(itself.is_expired());
    assert!(same_tick.is_cancelled() && later.is_cancelled());
}

#[test]
fn a_drain_waits_until_the_callbacks_have_run() {
    with_timer_within(multi_thread(2), |_runtime, timer| {
        let blocker = Blocker::start(&timer);
        let due = timer.call_after(Duration::ZERO, || ());
        let near = timer.call_after(ms(2), || ());
        let far = timer.call_after(HOUR, || ());
        let mut drain = Box::pin(timer.drain());
        let probe = Probe::new();
        assert!(probe.poll(&mut drain).is_pending());
        assert!(far.cancel());
        eventually("all are due", || timer.metrics().pending() == 0);
        assert!(probe.poll(&mut drain).is_pending(), "none has ended");
        assert!(!timer.is_stopped());
        let before = probe.wakes();
        drop(blocker);
        eventually("the end of the last one wakes it", || {
            probe.wakes() > before
        });
        assert!(probe.poll(&mut drain).is_ready());
        assert!(due.is_expired() && near.is_expired());
    });
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_a_cancel_of_the_last_callback() {
    let timer = own_timer();
    let handle = timer.call_after(HOUR, || ());
    let mut drain = Box::pin(timer.drain());
    let probe = Probe::new();
    assert!(probe.poll(&mut drain).is_pending());
    handle.cancel();
    assert!(probe.wakes() > 0);
    assert!(probe.poll(&mut drain).is_ready());
    // A refusal does not hold up a shutdown either.
    let timer = own_timer();
    let mut drain = Box::pin(timer.drain());
    assert!(timer.try_call_after(HOUR, || ()).is_err());
    assert!(probe.poll(&mut drain).is_ready());
}

#[test]
fn a_runtime_that_ends_cancels_its_callbacks() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(2)] {
            let timer = inside(&runtime, own_timer);
            let held = Arc::new(());
            let capture = || {
                let held = Arc::clone(&held);
                move || drop(held)
            };
            let far = timer.call_after(HOUR, capture());
            // Nothing runs on the first runtime: the callback is due, and is not even handed over.
            let due = timer.call_at(timer.now(), capture());
            drop(runtime);
            assert!(far.is_cancelled());
            assert!(due.is_cancelled() || due.is_expired());
            assert_eq!(Arc::strong_count(&held), 1);
            assert!(timer.try_call_after(ms(1), capture()).is_err());
            assert!(timer.shutdown_now().is_empty());
        }
    });
}

#[test]
fn what_is_due_when_the_runtime_ends_is_cancelled() {
    let (runtime, timer) = with_timer(current_thread());
    let log = Log::new();
    let past = timer.now() - ms(5);
    // These are handed to a task that is never polled.
    let handles = [(); 3].map(|()| timer.call_at(past, log.note(())));
    drop(runtime);
    assert!(handles.iter().all(|handle| handle.is_cancelled()));
    assert_eq!(log.len(), 0);
}

#[test]
fn what_races_with_shutdown_now_runs_is_refused_or_returned() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        for round in 0..300_u64 {
            let timer = inside(&runtime, own_timer);
            let (go, ran) = (AtomicBool::new(false), Arc::new(AtomicUsize::new(0)));
            let (unrun, handles) = thread::scope(|scope| {
                let racers = [0, 1, 2].map(|racer| {
                    let (timer, go, ran) = (&timer, &go, &ran);
                    scope.spawn(move || {
                        while !go.load(Ordering::SeqCst) {
                            std::hint::spin_loop();
                        }
                        // A refusal ends the loop.
                        (0..)
                            .map_while(|n: u64| {
                                let ran = Arc::clone(ran);
                                let delay = Duration::from_micros((n + racer) % 5 * 60);
                                timer
                                    .try_call_after(delay, move || {
                                        ran.fetch_add(1, Ordering::SeqCst);
                                    })
                                    .ok()
                            })
                            .collect::<Vec<_>>()
                    })
                });
                go.store(true, Ordering::SeqCst);
                for _ in 0..round * 100 {
                    std::hint::spin_loop();
                }
                let unrun = timer.shutdown_now();
                let handles = racers.map(|racer| racer.join().unwrap());
                (unrun.len(), handles)
            });
            let handles: Vec<_> = handles.into_iter().flatten().collect();
            eventually("each has run or is cancelled", || {
                handles
                    .iter()
                    .all(|it| it.is_expired() != it.is_cancelled())
            });
            let cancelled = handles.iter().filter(|it| it.is_cancelled()).count();
            assert_eq!(cancelled, unrun, "round {round}");
            let expected = handles.len() - cancelled;
            eventually("the others have run", || {
                ran.load(Ordering::SeqCst) == expected
            });
        }
    });
}

#[test]
fn a_drain_that_starts_meanwhile_waits_or_refuses() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        for round in 0..300 {
            let timer = inside(&runtime, own_timer);
            let log = Log::new();
            let taken = thread::scope(|scope| {
                let racer = scope.spawn(|| {
                    (0..)
                        .map_while(|_: u32| timer.try_call_after(ms(1), log.note(())).ok())
                        .count()
                });
                for _ in 0..round * 100 {
                    std::hint::spin_loop();
                }
                runtime.block_on(timer.drain());
                racer.join().unwrap()
            });
            assert_eq!(
                log.len(),
                taken,
                "round {round}: each that was taken has run"
            );
        }
    });
}

#[tokio::test(start_paused = true)]
async fn callbacks_of_one_timer_do_not_end_with_another() {
    let (one, other) = (own_timer(), own_timer());
    let log = Log::new();
    one.call_after(ms(5), log.note("one"));
    other.call_after(ms(5), log.note("other"));
    one.shutdown();
    sleep(ms(5)).await;
    settle().await;
    assert_eq!(log.take(), ["other"]);
}
