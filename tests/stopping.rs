//! Stopping a timer: `shutdown`, `drain`, the end of its runtime.

mod support;

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use futures::{FutureExt, StreamExt};
use support::{
    HOUR, Probe, assert_panics_here, current_thread, inside, metrics, ms, multi_thread, own_timer,
    panic_of, poll_once, refusals, within,
};
use waterwheel::{
    Duration, Instant, Sleep, Timer, interval, interval_at, sleep, sleep_until, timeout, timeout_at,
};

// ----- shutdown -----

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
    for sleep in [&mut near, &mut far] {
        assert!(sleep.is_elapsed());
        assert!(poll_once(sleep).is_ready());
        assert!(sleep.was_stopped());
        assert!(poll_once(sleep).is_ready());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn shutdown_returns_how_many_were_pending_and_then_nothing() {
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    let mut pending: Vec<_> = (1..=5).map(|n| timer.sleep(ms(n * 10))).collect();
    assert!(
        pending
            .iter_mut()
            .all(|sleep| poll_once(sleep).is_pending())
    );
    let _unpolled = timer.sleep(ms(10));
    pending.pop();
    // Fired, and not polled since.
    tokio::time::sleep(ms(11)).await;
    assert_eq!(timer.shutdown(), 3);
    assert_eq!(timer.shutdown(), 0);
    assert_eq!(timer.clone().shutdown(), 0);
    assert!(timer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn shutdown_gives_timeouts_elapsed_that_were_stopped() {
    let timer = own_timer();
    let waiting = tokio::spawn(timer.timeout(HOUR, pending::<()>()));
    tokio::task::yield_now().await;
    assert_eq!(timer.shutdown(), 1);
    let elapsed = waiting.await.expect("it does not panic");
    let elapsed = elapsed.expect_err("its future is never ready");
    assert!(elapsed.was_stopped());
    assert_eq!(elapsed.to_string(), "deadline has elapsed");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_whose_future_is_ready_wins_over_shutdown() {
    let timer = own_timer();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut limited = timer.timeout(HOUR, receiver);
    assert!(poll_once(&mut limited).is_pending());
    timer.shutdown();
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
async fn after_shutdown_tick_completes_once_and_then_panics_with_advice() {
    let timer = own_timer();
    let mut interval = timer.interval(ms(10));
    interval.tick().await;
    timer.shutdown();
    assert!(!interval.was_stopped(), "nobody has looked yet");
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
async fn a_sleep_that_was_due_before_shutdown_was_not_stopped() {
    let timer = own_timer();
    let mut sleep = timer.sleep(ms(10));
    assert!(poll_once(&mut sleep).is_pending());
    tokio::time::sleep(ms(20)).await;
    assert_eq!(timer.shutdown(), 0);
    assert!(poll_once(&mut sleep).is_ready());
    assert!(!sleep.was_stopped());
    assert_eq!((metrics(&timer).fired(), metrics(&timer).stopped()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_was_made_before_shutdown_and_polled_after_it_was_stopped() {
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
async fn a_stopped_sleep_that_is_reset_is_stopped_again() {
    let timer = own_timer();
    let mut sleep = timer.sleep(ms(10));
    assert!(poll_once(&mut sleep).is_pending());
    timer.shutdown();
    sleep.set_deadline(Instant::now() + HOUR);
    assert!(poll_once(&mut sleep).is_ready());
    assert!(sleep.was_stopped());
    sleep.set_deadline(Instant::now() + HOUR);
    assert!(poll_once(&mut sleep).is_ready());
    assert!(sleep.was_stopped());
}

const STOPPED: &[&str] = &["was stopped", "Timer::builder"];

#[tokio::test(start_paused = true)]
async fn after_shutdown_the_infallible_calls_panic_at_the_caller_with_advice() {
    let timer = own_timer();
    let later = Instant::now() + ms(1);
    timer.shutdown();
    assert_panics_here(STOPPED, || timer.sleep(ms(1)));
    assert_panics_here(STOPPED, || timer.sleep_until(later));
    assert_panics_here(STOPPED, || timer.timeout(ms(1), pending::<()>()));
    assert_panics_here(STOPPED, || timer.timeout_at(later, pending::<()>()));
    assert_panics_here(STOPPED, || timer.interval(ms(1)));
    assert_panics_here(STOPPED, || timer.interval_at(later, ms(1)));
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_of_the_ambient_timer_the_free_functions_panic_at_the_caller_with_advice() {
    let later = Instant::now() + ms(1);
    let mut pending_sleep = sleep(HOUR);
    assert!(poll_once(&mut pending_sleep).is_pending());
    assert_eq!(Timer::current().shutdown(), 1);
    assert!(poll_once(&mut pending_sleep).is_ready());
    for _ in 0..2 {
        assert_panics_here(STOPPED, || sleep(ms(1)));
        assert_panics_here(STOPPED, || sleep_until(later));
        assert_panics_here(STOPPED, || timeout(ms(1), pending::<()>()));
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
async fn after_shutdown_the_try_forms_give_a_typed_error() {
    let timer = own_timer();
    timer.shutdown();
    for error in refusals(&timer) {
        assert!(error.is_shutdown() && !error.is_at_capacity() && !error.is_invalid());
        assert!(error.to_string().contains("Timer::builder"));
    }
}

// An overflowing timeout never arms, but a stopped timer takes nothing at all.
#[tokio::test(start_paused = true)]
async fn after_shutdown_an_overflowing_timeout_is_refused_as_well() {
    let timer = own_timer();
    timer.shutdown();
    let refused = timer.try_timeout(Duration::MAX, pending::<()>());
    assert!(refused.is_err_and(|error| error.is_shutdown()));
    assert_panics_here(STOPPED, || timer.timeout(Duration::MAX, pending::<()>()));
    Timer::current().shutdown();
    assert_panics_here(STOPPED, || timeout(Duration::MAX, pending::<()>()));
}

#[tokio::test(start_paused = true)]
async fn metrics_count_what_was_stopped_apart() {
    let timer = own_timer();
    let mut sleeps: Vec<_> = (1..=6).map(|n| timer.sleep(ms(n * 10))).collect();
    assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
    tokio::time::sleep(ms(25)).await;
    sleeps.pop();
    timer.shutdown();
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
                    support::eventually("ten are pending", || timer.metrics().pending() == 10);
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

// ----- drain -----

#[tokio::test(start_paused = true)]
async fn drain_takes_nothing_new_from_the_call_on() {
    let timer = own_timer();
    let mut pending_sleep = timer.sleep(ms(10));
    assert!(poll_once(&mut pending_sleep).is_pending());
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

/// Whether the sleep was stopped in the end.
async fn nap(mut sleep: Sleep) -> bool {
    (&mut sleep).await;
    sleep.was_stopped()
}

#[tokio::test(start_paused = true)]
async fn drain_completes_when_the_last_pending_is_dropped() {
    let start = Instant::now();
    let timer = own_timer();
    let mut last = timer.sleep(HOUR);
    assert!(poll_once(&mut last).is_pending());
    let drained = tokio::spawn(timer.drain());
    tokio::task::yield_now().await;
    assert!(!drained.is_finished());
    drop(last);
    drained.await.expect("it does not panic");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn drain_completes_when_the_last_pending_is_reset_to_the_past() {
    let start = Instant::now();
    let timer = own_timer();
    let mut last = timer.sleep(HOUR);
    assert!(poll_once(&mut last).is_pending());
    let drained = tokio::spawn(timer.drain());
    tokio::task::yield_now().await;
    last.set_deadline(start);
    drained.await.expect("it does not panic");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(poll_once(&mut last).is_ready());
    assert!(!last.was_stopped());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_a_sleep_that_is_pushed_back_meanwhile() {
    let start = Instant::now();
    let timer = own_timer();
    let mut sleep = timer.sleep(ms(10));
    assert!(poll_once(&mut sleep).is_pending());
    let drained = tokio::spawn(timer.drain());
    tokio::task::yield_now().await;
    sleep.set_deadline(start + ms(40));
    drained.await.expect("it does not panic");
    assert_eq!(start.elapsed(), ms(40));
}

#[tokio::test(start_paused = true)]
async fn drain_completes_at_once_when_nothing_is_pending() {
    let timer = own_timer();
    assert!(timer.drain().now_or_never().is_some(), "never used");
    assert!(timer.is_stopped());
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    assert!(timer.drain().now_or_never().is_some(), "used");
}

#[tokio::test(start_paused = true)]
async fn every_drain_completes() {
    let timer = own_timer();
    let mut last = timer.sleep(ms(10));
    assert!(poll_once(&mut last).is_pending());
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
async fn a_future_made_before_the_drain_and_armed_after_it_fires_on_time() {
    let start = Instant::now();
    let timer = own_timer();
    let lazy = timer.sleep(ms(50));
    let mut first = timer.sleep(ms(10));
    assert!(poll_once(&mut first).is_pending());
    let drained = tokio::spawn(timer.drain());
    tokio::task::yield_now().await;
    let lazy = tokio::spawn(nap(lazy));
    tokio::task::yield_now().await;
    drained.await.expect("it does not panic");
    assert_eq!(start.elapsed(), ms(50), "it was waited for");
    assert!(!lazy.await.expect("it does not panic"));
}

#[tokio::test(start_paused = true)]
async fn a_future_armed_after_the_drain_has_completed_was_stopped() {
    let timer = own_timer();
    let mut lazy = timer.sleep(ms(50));
    timer.drain().await;
    assert!(poll_once(&mut lazy).is_ready());
    assert!(lazy.was_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_future_armed_on_a_new_shard_while_the_timer_drains_is_waited_for() {
    let timer = Timer::builder().shards(8).start().expect("a timer");
    let lazy: Vec<_> = (0..8).map(|_| timer.sleep(ms(50))).collect();
    let mut first = timer.sleep(HOUR);
    assert!(poll_once(&mut first).is_pending());
    let mut drained = Box::pin(timer.drain());
    let probe = Probe::new();
    assert!(probe.poll(&mut drained).is_pending());
    // Each arms on a thread, and so on a shard, of its own.
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
async fn shutdown_ends_a_drain() {
    let timer = own_timer();
    let mut last = timer.sleep(HOUR);
    assert!(poll_once(&mut last).is_pending());
    let drained = tokio::spawn(timer.drain());
    tokio::task::yield_now().await;
    assert_eq!(timer.shutdown(), 1);
    drained.await.expect("it does not panic");
    assert!(poll_once(&mut last).is_ready());
    assert!(last.was_stopped());
}

// ----- the end of the runtime -----

// tokio#2789: a runtime shut down with far timers pending.
#[test]
fn dropping_the_runtime_stops_its_timers() {
    within(Duration::from_secs(20), || {
        for runtime in [current_thread(), multi_thread(2)] {
            let probe = Probe::new();
            let (own, ambient, mut sleeps, mut interval, mut limited) = runtime.block_on(async {
                let (own, ambient) = (own_timer(), Timer::current());
                let mut sleeps = [own.sleep(HOUR), sleep(HOUR), sleep(Duration::MAX)];
                for sleep in &mut sleeps {
                    assert!(probe.poll(sleep).is_pending());
                }
                let mut interval = interval(HOUR);
                interval.tick().await;
                let mut limited = timeout(HOUR, pending::<()>());
                assert!(probe.poll(&mut limited).is_pending());
                (own, ambient, sleeps, interval, limited)
            });
            drop(runtime);
            assert_eq!((probe.wakes(), probe.held()), (4, 0));
            assert!(own.is_stopped() && ambient.is_stopped());
            for sleep in &mut sleeps {
                assert!(poll_once(sleep).is_ready());
                assert!(sleep.was_stopped());
            }
            assert_eq!(interval.next().now_or_never(), Some(None));
            let elapsed = (&mut limited).now_or_never().expect("it is ready");
            assert!(elapsed.is_err_and(|elapsed| elapsed.was_stopped()));
            for timer in [own, ambient] {
                assert_panics_here(STOPPED, || timer.sleep(ms(1)));
                let refused = timer.try_sleep(ms(1));
                assert!(refused.is_err_and(|error| error.is_shutdown()));
                assert_eq!(timer.shutdown(), 0);
                assert!(timer.drain().now_or_never().is_some());
                assert_eq!(metrics(&timer).pending(), 0);
                assert!(metrics(&timer).stopped() >= 1);
            }
        }
    });
}

#[test]
fn shutting_the_runtime_down_in_the_background_stops_its_timers() {
    let runtime = multi_thread(2);
    let (mut nap, timer) = runtime.block_on(async { (sleep(HOUR), Timer::current()) });
    assert!(poll_once(&mut nap).is_pending());
    runtime.shutdown_background();
    support::eventually("it is stopped", || timer.is_stopped());
    support::eventually("its sleeps are", || nap.is_elapsed());
    assert!(poll_once(&mut nap).is_ready());
}

#[test]
fn a_task_that_runs_while_its_runtime_is_dropped_may_make_and_poll_futures() {
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
fn awaiting_a_sleep_of_a_dropped_runtime_in_another_one_completes() {
    within(Duration::from_secs(20), || {
        let first = multi_thread(1);
        let nap = inside(&first, || sleep(HOUR));
        current_thread().block_on(async {
            let waiting = tokio::spawn(nap);
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            tokio::task::spawn_blocking(move || drop(first))
                .await
                .expect("it does not panic");
            waiting.await.expect("it does not panic");
        });
    });
}

// ----- races -----

#[test]
fn a_future_that_races_with_shutdown_is_either_stopped_or_refused() {
    within(Duration::from_secs(60), || {
        let runtime = multi_thread(2);
        let _entered = runtime.enter();
        for round in 0..200 {
            let timer = own_timer();
            let go = AtomicBool::new(false);
            let (count, mut taken) = thread::scope(|scope| {
                let racers: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut taken = Vec::new();
                            while !go.load(Ordering::SeqCst) {
                                std::hint::spin_loop();
                            }
                            // A refusal ends it; without one it would not end.
                            while let Ok(mut sleep) = timer.try_sleep(HOUR) {
                                let probe = Probe::new();
                                if probe.poll(&mut sleep).is_pending() {
                                    taken.push((sleep, probe));
                                } else {
                                    assert!(sleep.was_stopped());
                                }
                            }
                            taken
                        })
                    })
                    .collect();
                go.store(true, Ordering::SeqCst);
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                let count = timer.shutdown();
                let mut taken = Vec::new();
                for racer in racers {
                    taken.extend(racer.join().expect("it does not panic"));
                }
                (count, taken)
            });
            assert_eq!(count, taken.len(), "round {round}");
            for (sleep, probe) in &mut taken {
                assert_eq!(probe.wakes(), 1);
                assert!(poll_once(sleep).is_ready() && sleep.was_stopped());
            }
            assert_eq!(metrics(&timer).stopped(), count as u64);
        }
    });
}

#[test]
fn a_sleep_that_races_with_the_end_of_its_runtime_completes() {
    within(Duration::from_secs(60), || {
        for _ in 0..100 {
            let runtime = multi_thread(1);
            let timer = runtime.block_on(async { own_timer() });
            let racer = thread::spawn(move || {
                let mut taken = Vec::new();
                while let Ok(mut sleep) = timer.try_sleep(HOUR - ms(taken.len() as u64)) {
                    if poll_once(&mut sleep).is_pending() {
                        taken.push(sleep);
                    }
                }
                taken
            });
            drop(runtime);
            for mut sleep in racer.join().expect("it does not panic") {
                futures::executor::block_on(&mut sleep);
                assert!(sleep.was_stopped());
            }
        }
    });
}

#[test]
fn shutdown_counts_right_under_contention() {
    within(Duration::from_secs(20), || {
        let runtime = multi_thread(2);
        let _entered = runtime.enter();
        for _ in 0..50 {
            let timer = own_timer();
            let mut sleeps: Vec<_> = (0..100).map(|_| timer.sleep(HOUR)).collect();
            assert!(sleeps.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
            let counts = thread::scope(|scope| {
                let stoppers = [(); 4].map(|()| scope.spawn(|| timer.shutdown()));
                stoppers.map(|stopper| stopper.join().expect("it does not panic"))
            });
            assert_eq!(counts.iter().sum::<usize>(), 100);
            assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 1);
        }
    });
}

// ----- the last handle -----

// A driver that ends while the first shard is made and the last handle dropped would stop it.
#[test]
fn a_future_outlives_the_last_handle_whatever_races_with_the_driver() {
    let runtime = multi_thread(1);
    for round in 0..10_000 {
        let builder = Timer::builder()
            .resolution(Duration::from_secs(1))
            .shards(1);
        let timer = builder.start_on(runtime.handle()).expect("it starts");
        for _ in 0..round % 2_000 {
            std::hint::spin_loop();
        }
        let mut nap = timer.sleep(HOUR);
        drop(timer);
        assert!(poll_once(&mut nap).is_pending());
        for _ in 0..2_000 {
            std::hint::spin_loop();
        }
        assert!(poll_once(&mut nap).is_pending(), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_given_up_leaves_no_waker_behind() {
    let timer = own_timer();
    let mut nap = timer.sleep(HOUR);
    assert!(poll_once(&mut nap).is_pending());
    let probe = Probe::new();
    let mut kept = Box::pin(timer.drain());
    assert!(probe.poll(&mut kept).is_pending());
    for _ in 0..100 {
        let given_up = Probe::new();
        let mut drain = Box::pin(timer.drain());
        assert!(given_up.poll(&mut drain).is_pending());
        drop(drain);
        assert_eq!(given_up.held(), 0);
    }
    assert_eq!(probe.held(), 1);
    drop(nap);
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut kept).is_ready());
}

// A timer stopped by its owner is not found again by a runtime of the same id.
#[test]
fn a_timer_that_was_stopped_is_abandoned_with_its_runtime_all_the_same() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    runtime.block_on(async {
        sleep(ms(1)).await;
        Timer::current().shutdown();
    });
    drop(runtime);
    let _entered = handle.enter();
    // A stopped timer that is still there would refuse it.
    let mut nap = sleep(HOUR);
    assert!(poll_once(&mut nap).is_ready() && nap.was_stopped());
}
