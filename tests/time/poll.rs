//! Polls and the clock.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;
use std::thread;
use std::time::Instant as RealInstant;

use waterwheel::{Duration, Instant, Timer, interval_at, sleep, timeout};

use crate::support::{
    HOUR, LIMIT, Probe, armed, current_thread, in_a_task, metrics, ms, multi_thread, own_timer,
    poll_once, with_timer, within,
};

// tokio#7883: `poll` past the deadline still pending.
#[test]
fn a_poll_past_the_deadline_is_ready_if_the_driver_never_ran() {
    let runtime = current_thread();
    let _entered = runtime.enter();
    let timer = own_timer();
    let mut naps = [sleep(ms(50)), timer.sleep(ms(50))];
    let mut limited = timeout(ms(50), pending::<()>());
    let mut ticks = interval_at(Instant::now() + ms(50), ms(50));
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(naps.iter_mut().all(|nap| poll_once(nap).is_pending()));
    assert!(poll_once(&mut limited).is_pending());
    assert!(ticks.poll_tick(&mut context).is_pending());
    thread::sleep(ms(60));
    assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
    assert!(poll_once(&mut limited).is_ready());
    assert!(ticks.poll_tick(&mut context).is_ready());
    assert_eq!(timer.metrics().driver_turns(), 0);
    let metrics = metrics(&timer);
    assert_eq!((metrics.fired(), metrics.lateness().count()), (1, 0));
}

// An interval keeps its entry from tick to tick; the tick that it has returned must have no further effect.
#[test]
fn a_tick_found_by_a_poll_is_given_once_and_leaves_no_waker() {
    let (runtime, timer) = with_timer(current_thread());
    let probe = Probe::new();
    let mut ticks = timer.interval_at(Instant::now() + ms(50), HOUR);
    let waker = probe.waker();
    let mut context = Context::from_waker(&waker);
    assert!(ticks.poll_tick(&mut context).is_pending());
    thread::sleep(ms(60));
    assert!(ticks.poll_tick(&mut context).is_ready());
    assert_eq!((timer.metrics().fired(), timer.metrics().pending()), (1, 0));
    // Now the driver runs.
    runtime.block_on(timer.sleep(ms(5)));
    assert_eq!(probe.wakes(), 0);
    let metrics = metrics(&timer);
    assert_eq!((metrics.fired(), metrics.pending()), (2, 0));
}

#[test]
fn a_poll_past_the_deadline_is_ready_if_all_workers_block() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = runtime.block_on(async { own_timer() });
        let mut nap = armed(&timer, ms(50), poll_once);
        let (blocked, wait) = std::sync::mpsc::channel();
        let release = Arc::new(AtomicBool::new(false));
        runtime.spawn({
            let release = Arc::clone(&release);
            async move {
                let _ = blocked.send(());
                while !release.load(Ordering::SeqCst) {
                    thread::sleep(ms(1));
                }
            }
        });
        wait.recv().expect("the worker is blocked");
        thread::sleep(ms(60));
        assert!(poll_once(&mut nap).is_ready());
        release.store(true, Ordering::SeqCst);
    });
}

// The first poll of a long delay may trust the clock read that made it, so that only the driver finds it due. Here
// the driver has no worker, so the poll must not do that.
#[test]
fn a_late_first_poll_of_a_long_delay_is_ready_if_all_block() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = runtime.block_on(async { own_timer() });
        let mut naps = [999, 1_000].map(|millis| timer.sleep(ms(millis)));
        let mut limited = timer.timeout(ms(1_000), pending::<()>());
        let (blocked, wait) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        runtime.spawn(async move {
            let _ = blocked.send(());
            let _ = released.recv();
        });
        wait.recv().expect("the worker is blocked");
        thread::sleep(ms(1_010));
        assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
        assert!(poll_once(&mut limited).is_ready());
        drop(release);
    });
}

#[tokio::test(start_paused = true)]
async fn a_poll_before_the_deadline_is_pending() {
    let mut nap = sleep(ms(50));
    for _ in 0..20 {
        assert!(poll_once(&mut nap).is_pending());
    }
    tokio::time::advance(ms(49)).await;
    for _ in 0..20 {
        assert!(poll_once(&mut nap).is_pending());
    }
    tokio::time::advance(ms(1)).await;
    assert!(poll_once(&mut nap).is_ready());
}

// Such a delay does not trust the clock read that made it, not even in a task.
#[test]
fn a_short_delay_that_has_passed_at_its_first_poll_is_ready() {
    in_a_task(|| {
        let timer = own_timer();
        for delay in [ms(1), ms(20), ms(999)] {
            let mut nap = timer.sleep(delay);
            // Its tick passes as well.
            thread::sleep(delay + ms(2));
            assert!(poll_once(&mut nap).is_ready(), "{delay:?}");
        }
        assert_eq!(metrics(&timer).armed(), 0);
    });
}

// On a running clock, where the rest of a tick may be zero.
#[test]
fn a_loop_of_sleeps_of_no_time_completes_one_a_tick() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(2)] {
            let task = runtime.spawn(async {
                let timer = own_timer();
                let (start, mut sleeps) = (RealInstant::now(), 0);
                while start.elapsed() < ms(100) {
                    timer.sleep(Duration::ZERO).await;
                    sleeps += 1;
                }
                (sleeps, start.elapsed())
            });
            let (sleeps, time) = runtime.block_on(task).expect("it does not panic");
            // The first may begin late in its tick, and the last may end early in its own.
            assert!(sleeps <= time.as_millis() + 1, "{sleeps} in {time:?}");
        }
    });
}

#[test]
fn a_long_delay_that_passed_before_its_first_poll_ends_at_once() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let completes = || async {
            let nap = sleep(Duration::from_secs(1));
            thread::sleep(ms(1_100));
            let start = RealInstant::now();
            nap.await;
            start.elapsed()
        };
        let in_a_task = runtime.spawn(completes());
        let outside = runtime.block_on(completes());
        let in_a_task = runtime.block_on(in_a_task).expect("it does not panic");
        for slow in [in_a_task, outside] {
            assert!(slow < ms(500), "{slow:?}");
        }
    });
}

// In a task such a delay trusts the clock read that made it; the hand is more recent.
#[test]
fn a_long_delay_that_the_hand_passed_is_ready_at_its_first_poll() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let task = runtime.spawn(async {
            let timer = Timer::builder().shards(1).start().expect("a timer");
            let mut nap = timer.sleep(Duration::from_secs(1));
            timer.sleep_until(nap.deadline() + ms(5)).await;
            assert!(poll_once(&mut nap).is_ready());
        });
        runtime.block_on(task).expect("it does not panic");
    });
}
