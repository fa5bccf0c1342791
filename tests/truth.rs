//! A poll tells the truth, a reset takes effect, and with nothing due nothing runs.

mod support;

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Instant as RealInstant;

use support::{
    HOUR, Probe, current_thread, eventually, inside, metrics, ms, multi_thread, own_timer,
    poll_once, within,
};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use waterwheel::{Duration, Instant, Timer, interval_at, sleep, timeout};

const LIMIT: Duration = Duration::from_secs(20);

// ----- the poll and the clock -----

// tokio#7883: `poll` past the deadline still pending.
#[test]
fn a_poll_past_the_deadline_is_ready_though_the_driver_never_ran() {
    let runtime = current_thread();
    let _entered = runtime.enter();
    let timer = own_timer();
    let mut naps = [sleep(ms(5)), timer.sleep(ms(5))];
    let mut limited = timeout(ms(5), pending::<()>());
    let mut ticks = interval_at(Instant::now() + ms(5), ms(5));
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(naps.iter_mut().all(|nap| poll_once(nap).is_pending()));
    assert!(poll_once(&mut limited).is_pending());
    assert!(ticks.poll_tick(&mut context).is_pending());
    thread::sleep(ms(10));
    assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
    assert!(poll_once(&mut limited).is_ready());
    assert!(ticks.poll_tick(&mut context).is_ready());
    assert_eq!(timer.metrics().driver_turns(), 0);
    let metrics = metrics(&timer);
    assert_eq!((metrics.fired(), metrics.lateness().count()), (1, 0));
}

#[test]
fn a_poll_past_the_deadline_is_ready_though_every_worker_is_blocked() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = runtime.block_on(async { own_timer() });
        let mut nap = timer.sleep(ms(20));
        assert!(poll_once(&mut nap).is_pending());
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
        thread::sleep(ms(30));
        assert!(poll_once(&mut nap).is_ready());
        release.store(true, Ordering::SeqCst);
    });
}

#[tokio::test(start_paused = true)]
async fn a_poll_before_the_deadline_is_pending_whoever_woke_it() {
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

#[test]
fn a_long_delay_that_has_passed_at_its_first_poll_completes_at_once() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let slow = runtime.block_on(async {
            let nap = sleep(Duration::from_secs(1));
            thread::sleep(ms(1_100));
            let start = RealInstant::now();
            nap.await;
            start.elapsed()
        });
        assert!(slow < ms(500), "{slow:?}");
    });
}

// ----- resets -----

#[test]
fn a_reset_from_another_runtime_takes_effect() {
    within(LIMIT, || {
        let (home, away) = (multi_thread(1), current_thread());
        let start = Instant::now();
        let mut nap = Box::pin(inside(&home, || sleep(HOUR)));
        let probe = Probe::new();
        assert!(probe.poll(&mut nap).is_pending());
        away.block_on(async { nap.as_mut().reset(start + ms(20)) });
        eventually("the new deadline wakes", || probe.wakes() == 1);
        assert!(start.elapsed() >= ms(20));
        assert!(poll_once(&mut nap).is_ready());
    });
}

// Postponing is free: no early wake, no lock, no turn of the driver.
#[tokio::test(start_paused = true)]
async fn a_reset_to_later_wakes_nobody_before_the_new_deadline() {
    let start = Instant::now();
    let timer = own_timer();
    let probe = Probe::new();
    let mut nap = timer.sleep(ms(10));
    assert!(probe.poll(&mut nap).is_pending());
    let mut due = 10;
    for _ in 0..200 {
        tokio::time::sleep(ms(3)).await;
        due += 7;
        nap.set_deadline(start + ms(due));
    }
    tokio::time::sleep_until(start + ms(due - 1)).await;
    assert_eq!(probe.wakes(), 0);
    assert!(!nap.is_elapsed());
    tokio::time::sleep(ms(1)).await;
    tokio::task::yield_now().await;
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut nap).is_ready());
    let metrics = metrics(&timer);
    assert_eq!((metrics.armed(), metrics.fired()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_later_across_every_dial_wakes_nobody_before_the_new_deadline() {
    for delay in [ms(5), ms(999), ms(1_000), ms(60_001), HOUR, HOUR * 30] {
        for longer in [ms(1), ms(1_000), HOUR, HOUR * 24 * 100] {
            let start = Instant::now();
            let probe = Probe::new();
            let mut nap = sleep(delay);
            assert!(probe.poll(&mut nap).is_pending());
            nap.set_deadline(start + delay + longer);
            tokio::time::sleep_until(start + delay + longer - ms(1)).await;
            assert_eq!(probe.wakes(), 0, "{delay:?} and {longer:?}");
            tokio::time::sleep(ms(2)).await;
            assert_eq!(probe.wakes(), 1, "{delay:?} and {longer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_earlier_wakes_at_the_new_deadline() {
    let start = Instant::now();
    let probe = Probe::new();
    let mut nap = sleep(HOUR);
    assert!(probe.poll(&mut nap).is_pending());
    tokio::task::yield_now().await;
    nap.set_deadline(start + ms(20));
    tokio::time::sleep(ms(19)).await;
    assert_eq!(probe.wakes(), 0);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(probe.wakes(), 1);
    assert!(poll_once(&mut nap).is_ready());
}

// golang#41699: deadlines that are moved to and fro wake the driver every time.
#[tokio::test(start_paused = true)]
async fn a_reset_to_and_fro_far_from_now_takes_no_turns() {
    let start = Instant::now();
    let timer = own_timer();
    let mut nap = timer.sleep(HOUR);
    assert!(poll_once(&mut nap).is_pending());
    nap.set_deadline(start + HOUR / 2);
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    let before = timer.metrics().driver_turns();
    for n in 0..100 {
        let back = if n % 2 == 0 { HOUR } else { HOUR / 4 * 3 };
        nap.set_deadline(start + back);
        tokio::task::yield_now().await;
    }
    assert_eq!(timer.metrics().driver_turns(), before);
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_the_past_wakes_the_stored_waker_at_once() {
    let probe = Probe::new();
    let mut nap = sleep(HOUR);
    assert!(probe.poll(&mut nap).is_pending());
    nap.set_deadline(Instant::now());
    assert_eq!((probe.wakes(), probe.held()), (1, 0));
    assert!(poll_once(&mut nap).is_ready());
    assert_eq!(probe.wakes(), 1);
}

// DelayQueue #8274: not woken on a reset to what has expired.
#[tokio::test(start_paused = true)]
async fn a_reset_to_the_past_wakes_the_task_that_waits() {
    let (sender, receiver) = oneshot::channel::<Instant>();
    let waiting = tokio::spawn(async move {
        let mut nap = Box::pin(sleep(HOUR));
        let mut receiver = Box::pin(receiver);
        let start = Instant::now();
        poll_fn(|context| {
            if let Poll::Ready(Ok(deadline)) = receiver.as_mut().poll(context) {
                // Nothing but the reset wakes this task from now on.
                nap.as_mut().reset(deadline);
                receiver = Box::pin(oneshot::channel().1);
                return Poll::Pending;
            }
            nap.as_mut().poll(context)
        })
        .await;
        start.elapsed()
    });
    tokio::task::yield_now().await;
    let past = Instant::now();
    sender.send(past).expect("it is there");
    let waited = tokio::time::timeout(HOUR * 2, waiting).await;
    let waited = waited.expect("it is woken").expect("it does not panic");
    assert_eq!(waited, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn after_firing_a_reset_makes_it_pending_with_its_next_waker_alone() {
    let (first, second) = (Probe::new(), Probe::new());
    let mut nap = sleep(ms(5));
    assert!(first.poll(&mut nap).is_pending());
    tokio::time::sleep(ms(6)).await;
    assert_eq!(first.wakes(), 1);
    nap.set_deadline(Instant::now() + ms(5));
    assert!(second.poll(&mut nap).is_pending());
    tokio::time::sleep(ms(6)).await;
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert!(poll_once(&mut nap).is_ready());
}

// Fired by the driver, postponed before its task has polled it.
#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_postponed_between_its_wake_and_its_poll_is_pending() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut nap = timer.sleep(ms(5));
    assert!(probe.poll(&mut nap).is_pending());
    tokio::time::sleep(ms(6)).await;
    assert_eq!(probe.wakes(), 1);
    let start = Instant::now();
    nap.set_deadline(start + ms(50));
    assert!(!nap.is_elapsed());
    assert!(probe.poll(&mut nap).is_pending());
    metrics(&timer);
    tokio::time::sleep(ms(49)).await;
    assert_eq!(probe.wakes(), 1);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(probe.wakes(), 2);
    assert!(poll_once(&mut nap).is_ready());
    assert_eq!(metrics(&timer).fired(), 2);
}

// ----- the driver's sleep -----

// tokio#6683, storm#4830: an earlier timer armed while the driver sleeps is missed.
#[test]
fn an_earlier_timer_that_is_armed_while_the_driver_sleeps_fires_on_time() {
    within(LIMIT, || {
        for runtime in [multi_thread(1), multi_thread(2)] {
            for bell in [true, false] {
                let timer = Timer::builder().bell(bell).start_on(runtime.handle());
                let timer = timer.expect("a timer");
                let mut naps = Vec::new();
                for seconds in [3_600, 600, 60, 10] {
                    let mut nap = timer.sleep(Duration::from_secs(seconds));
                    assert!(poll_once(&mut nap).is_pending());
                    naps.push(nap);
                    settle(&timer);
                }
                let probe = Probe::new();
                let mut soon = timer.sleep(ms(20));
                assert!(probe.poll(&mut soon).is_pending());
                let start = RealInstant::now();
                eventually("it fires", || probe.wakes() == 1);
                assert!(start.elapsed() < Duration::from_secs(5));
            }
        }
    });
}

#[test]
fn an_earlier_timer_that_is_armed_from_outside_while_the_runtime_is_parked_fires_on_time() {
    within(LIMIT, || {
        with_a_parked_runtime(|timer| {
            let mut far = timer.sleep(HOUR);
            assert!(poll_once(&mut far).is_pending());
            settle(timer);
            let probe = Probe::new();
            let mut soon = timer.sleep(ms(20));
            assert!(probe.poll(&mut soon).is_pending());
            eventually("it fires", || probe.wakes() == 1);
            let mut reset = timer.sleep(HOUR);
            assert!(probe.poll(&mut reset).is_pending());
            settle(timer);
            reset.set_deadline(Instant::now() + ms(20));
            eventually("it fires", || probe.wakes() == 2);
        });
    });
}

#[test]
fn an_earlier_timer_that_is_armed_at_any_moment_is_not_missed() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let timer = runtime.block_on(async { own_timer() });
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let timer = &timer;
                scope.spawn(move || {
                    for round in 0..100_u64 {
                        let mut far = timer.sleep(HOUR - ms(round));
                        assert!(poll_once(&mut far).is_pending());
                        let delay = Duration::from_micros((round * 37 + thread * 11) % 3_000);
                        let start = RealInstant::now();
                        futures::executor::block_on(timer.sleep(delay));
                        assert!(start.elapsed() >= delay);
                        assert!(start.elapsed() < Duration::from_secs(5));
                    }
                });
            }
        });
    });
}

/// Waits until the driver has nothing to do: no turn for 30 ms.
fn settle(timer: &Timer) {
    let (mut turns, mut since) = (timer.metrics().driver_turns(), RealInstant::now());
    let start = RealInstant::now();
    while since.elapsed() < ms(30) {
        assert!(start.elapsed() < Duration::from_secs(5), "it never settles");
        thread::sleep(ms(2));
        let now = timer.metrics().driver_turns();
        if now != turns {
            (turns, since) = (now, RealInstant::now());
        }
    }
}

/// Runs `act` outside a current-thread runtime that is driven and has nothing to do.
fn with_a_parked_runtime(act: impl FnOnce(&Timer)) {
    let runtime = current_thread();
    let timer = runtime.block_on(async { own_timer() });
    let (done, wait) = oneshot::channel::<()>();
    let driving = thread::spawn(move || runtime.block_on(wait));
    act(&timer);
    let _ = done.send(());
    let _ = driving.join().expect("it does not panic");
}

fn assert_idle(timer: &Timer) {
    settle(timer);
    let before = timer.metrics().driver_turns();
    thread::sleep(ms(200));
    assert_eq!(timer.metrics().driver_turns(), before);
}

// netty#1246, netty#9710, pulsar#6414: an idle spin.
#[test]
fn idle_means_no_turns() {
    within(LIMIT, || {
        let check = |timer: &Timer| {
            // Never used.
            assert_idle(timer);
            // With a far timer pending.
            let mut far = timer.sleep(HOUR);
            assert!(poll_once(&mut far).is_pending());
            assert_idle(timer);
            // With none any more, after some have fired.
            drop(far);
            futures::executor::block_on(timer.sleep(ms(2)));
            assert_idle(timer);
            // With one that will never fire.
            let mut never = timer.sleep(Duration::MAX);
            assert!(poll_once(&mut never).is_pending());
            assert_idle(timer);
        };
        thread::scope(|scope| {
            scope.spawn(|| with_a_parked_runtime(check));
            for bell in [true, false] {
                scope.spawn(move || {
                    let runtime = multi_thread(1);
                    let timer = Timer::builder().bell(bell).start_on(runtime.handle());
                    check(&timer.expect("a timer"));
                });
            }
        });
    });
}

#[test]
fn cancelling_does_not_wake_the_driver() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let timer = runtime.block_on(async { own_timer() });
        let mut naps: Vec<_> = (0..100).map(|n| timer.sleep(HOUR + ms(n))).collect();
        assert!(naps.iter_mut().all(|nap| poll_once(nap).is_pending()));
        settle(&timer);
        let before = timer.metrics().driver_turns();
        drop(naps);
        thread::sleep(ms(50));
        assert_eq!(timer.metrics().driver_turns(), before);
    });
}

// ----- the coop budget -----

fn on_its_own(runtime: fn() -> Runtime, future: impl Future<Output = ()> + Send + 'static) {
    within(LIMIT, move || runtime().block_on(future));
}

#[test]
fn a_loop_of_ready_sleeps_yields_to_other_tasks() {
    on_its_own(current_thread, async {
        let done = Arc::new(AtomicBool::new(false));
        let spinning = tokio::spawn({
            let done = Arc::clone(&done);
            async move {
                let mut rounds = 0_u64;
                while !done.load(Ordering::SeqCst) {
                    sleep(Duration::ZERO).await;
                    rounds += 1;
                }
                rounds
            }
        });
        let other = tokio::spawn(async move { done.store(true, Ordering::SeqCst) });
        other.await.expect("it had its turn");
        assert!(spinning.await.expect("it ends") > 0);
    });
}

#[test]
fn a_loop_of_ticks_that_were_missed_yields_to_other_tasks() {
    on_its_own(current_thread, async {
        let done = Arc::new(AtomicBool::new(false));
        let spinning = tokio::spawn({
            let done = Arc::clone(&done);
            async move {
                let long_ago = Instant::now() - ms(1_000);
                let mut ticks = interval_at(long_ago, Duration::from_nanos(1));
                while !done.load(Ordering::SeqCst) {
                    ticks.tick().await;
                }
            }
        });
        let other = tokio::spawn(async move { done.store(true, Ordering::SeqCst) });
        other.await.expect("it had its turn");
        spinning.await.expect("it ends");
    });
}

// tokio#4314: a future that burns its coop budget inside a timeout still times out.
#[test]
fn a_timeout_around_a_future_that_burns_the_budget_still_elapses() {
    struct Burns(Arc<AtomicUsize>);
    impl Future for Burns {
        type Output = ();
        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            while tokio::task::coop::has_budget_remaining() {
                let mut step = std::pin::pin!(tokio::task::coop::consume_budget());
                if step.as_mut().poll(context).is_pending() {
                    break;
                }
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }
    for runtime in [current_thread as fn() -> Runtime, || multi_thread(1)] {
        on_its_own(runtime, async {
            let polls = Arc::new(AtomicUsize::new(0));
            let limited = tokio::spawn(timeout(ms(10), Burns(Arc::clone(&polls))));
            assert!(limited.await.expect("it does not panic").is_err());
            assert!(polls.load(Ordering::SeqCst) > 0);
        });
    }
}

#[test]
fn a_loop_of_polls_past_the_deadline_does_not_live_lock() {
    on_its_own(current_thread, async {
        let timer = own_timer();
        let limited = timeout(ms(5), async {
            // Always ready and always polled again, as `select!` in a loop does.
            loop {
                tokio::select! {
                    biased;
                    () = timer.sleep(Duration::ZERO) => {}
                    () = pending() => break,
                }
            }
        });
        assert!(limited.await.is_err());
    });
}
