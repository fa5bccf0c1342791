//! Pausing and resuming, and the clocks of others.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use futures::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{advance, pause, resume};
use waterwheel::{Duration, Instant, Interval, sleep};

use crate::support::{
    HOUR, Probe, block_on_within, current_thread, inside, ms, multi_thread, own_timer, paused,
    poll_once, poll_with, waiting, waker_on_wake, within,
};

#[test]
fn a_timer_follows_a_clock_that_is_paused_after_its_start() {
    block_on_within(current_thread(), async || {
        let timer = own_timer();
        tokio::join!(sleep(ms(3)), timer.sleep(ms(2)));
        let far = tokio::spawn(sleep(Duration::from_secs(3_600)));
        let own_far = tokio::spawn(timer.sleep(Duration::from_secs(1_800)));
        tokio::task::yield_now().await;
        pause();
        let start = Instant::now();
        let naps = [0, 1, 2, 10, 999, 1_000, 60_000].map(|millis| async move {
            sleep(ms(millis)).await;
            (start.elapsed(), ms(millis))
        });
        let tokios = async {
            tokio::time::sleep(ms(10)).await;
            start.elapsed()
        };
        let (naps, tokios) = tokio::join!(join_all(naps), tokios);
        for (elapsed, delay) in naps {
            assert!(
                elapsed >= delay && elapsed <= delay + ms(3),
                "{delay:?} took {elapsed:?}; tokio's 10 ms {tokios:?}"
            );
        }
        own_far.await.expect("it does not panic");
        assert!(start.elapsed() < Duration::from_secs(1_801));
        far.await.expect("it does not panic");
        assert!(start.elapsed() < Duration::from_secs(3_601));
    });
}

#[test]
fn a_pause_amid_a_sleep_does_not_let_it_fire_by_the_real_clock() {
    block_on_within(current_thread(), async || {
        let probe = Probe::new();
        let mut nap = probe.waiting(sleep(ms(30)));
        tokio::task::yield_now().await;
        pause();
        let (sender, receiver) = oneshot::channel();
        // tokio's clock does not jump while a blocking task runs.
        let blocking = tokio::task::spawn_blocking(move || {
            thread::sleep(ms(80));
            sender.send(())
        });
        receiver.await.expect("a word from outside");
        assert_eq!(
            probe.wakes(),
            0,
            "80 real ms have passed, but no virtual ones"
        );
        assert!(poll_once(&mut nap).is_pending());
        blocking.await.expect("it ends").expect("it was heard");
        let start = Instant::now();
        nap.await;
        // tokio, whose clock moves by whole milliseconds from wherever it was paused, may take two more.
        assert!(start.elapsed() <= ms(33), "{:?}", start.elapsed());
    });
}

// The watchdog thread, which knows only real time, is not involved.
#[test]
fn while_a_paused_clock_stands_still_the_driver_takes_no_turns() {
    block_on_within(paused(), async || {
        let timer = own_timer();
        let _nap = waiting(timer.sleep(ms(30)));
        tokio::task::yield_now().await;
        let before = timer.metrics().driver_turns();
        // tokio's clock does not jump while a blocking task runs.
        let blocking = tokio::task::spawn_blocking(|| thread::sleep(ms(80)));
        blocking.await.expect("it ends");
        assert_eq!(timer.metrics().driver_turns(), before);
    });
}

#[test]
fn after_resume_it_follows_the_real_clock_again() {
    block_on_within(paused(), async || {
        sleep(Duration::from_secs(86_400)).await;
        let across = waiting(sleep(ms(40)));
        resume();
        let real = std::time::Instant::now();
        let virt = Instant::now();
        sleep(ms(20)).await;
        assert!(real.elapsed() >= ms(19), "{:?}", real.elapsed());
        assert!(virt.elapsed() >= ms(20));
        across.await;
        assert!(virt.elapsed() >= ms(40));
        assert!(real.elapsed() < Duration::from_secs(10));
        pause();
        let real = std::time::Instant::now();
        sleep(Duration::from_secs(86_400)).await;
        assert!(real.elapsed() < Duration::from_secs(10));
    });
}

#[tokio::test(start_paused = true)]
async fn a_thread_outside_sees_the_paused_clock_of_the_timer() {
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    advance(Duration::from_secs(1_000)).await;
    let deadline = Instant::now() + ms(5);
    let outside = thread::spawn({
        let timer = timer.clone();
        move || {
            let mut nap = timer.sleep_until(deadline);
            let mut zero = timer.sleep(Duration::ZERO);
            let relative = timer.sleep(ms(5));
            let first = (poll_once(&mut nap).is_ready(), poll_once(&mut zero));
            (first.0, first.1.is_ready(), nap, relative.deadline())
        }
    });
    let (early, zero, nap, relative) = outside.join().expect("it does not panic");
    assert!(!early && zero);
    assert_eq!(relative, deadline);
    nap.await;
    assert_eq!(Instant::now(), deadline);
}

/// The results of `act` on a thread outside all runtimes, in a runtime whose clock runs, and in
/// one with another paused clock.
fn elsewhere<R: Send>(act: impl Fn() -> R + Sync) -> [R; 3] {
    thread::scope(|scope| {
        let act = &act;
        [
            scope.spawn(act),
            scope.spawn(|| multi_thread(1).block_on(async { act() })),
            scope.spawn(|| paused().block_on(async { act() })),
        ]
        .map(|thread| thread.join().expect("it does not panic"))
    })
}

// Each of these calls reads the current time, which is the timer's and not the caller's.
#[tokio::test(start_paused = true)]
async fn now_is_that_of_the_timers_clock_wherever_it_is_asked() {
    let timer = own_timer();
    advance(Duration::from_secs(1_000)).await;
    let now = Instant::now();
    assert_eq!(timer.now(), now);
    assert_eq!(elsewhere(|| timer.now()), [now; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_interval_goes_by_its_timers_clock_wherever_it_is_asked() {
    let timer = own_timer();
    advance(Duration::from_secs(1_000)).await;
    let (now, period) = (Instant::now(), ms(10));
    let first_tick = |mut ticks: Interval| {
        let tick = ticks.poll_tick(&mut Context::from_waker(Waker::noop()));
        assert!(tick.is_ready());
        tick
    };
    let firsts = elsewhere(|| first_tick(timer.interval(period)));
    assert_eq!(firsts, [Poll::Ready(now); 3]);
    let firsts = elsewhere(|| first_tick(timer.try_interval(period).expect("it takes it")));
    assert_eq!(firsts, [Poll::Ready(now); 3]);
    for (reset, after) in [
        (Interval::reset as fn(&mut Interval), period),
        (Interval::reset_immediately, Duration::ZERO),
        (|ticks| ticks.reset_after(ms(3)), ms(3)),
    ] {
        let now = Instant::now();
        let made = elsewhere(|| {
            let mut ticks = timer.interval_at(now + HOUR, period);
            reset(&mut ticks);
            ticks
        });
        for mut ticks in made {
            assert_eq!(ticks.tick().await, now + after);
        }
    }
}

#[test]
fn a_paused_clock_does_not_move_the_timers_of_another_runtime() {
    within(Duration::from_secs(20), || {
        let real = current_thread();
        let timer = inside(&real, own_timer);
        paused().block_on(async {
            let mut nap = waiting(timer.sleep(HOUR));
            advance(HOUR * 2).await;
            sleep(ms(5)).await;
            assert!(poll_once(&mut nap).is_pending());
            assert_eq!(timer.metrics().fired(), 0);
        });
    });
}

// The driver checks whether the clock was paused. It went to sleep before this pause, so the code that tokio's clock wakes must check.
#[test]
fn the_first_jump_after_a_late_pause_serves_all_in_order() {
    const TIMERS: usize = 3_000;
    block_on_within(current_thread(), async || {
        let timer = own_timer();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut naps: Vec<_> = (0..TIMERS).map(|_| timer.sleep_until(deadline)).collect();
        for (n, nap) in naps.iter_mut().enumerate() {
            let woken = Arc::clone(&woken);
            let waker = waker_on_wake(move || woken.lock().unwrap().push(n));
            assert!(poll_with(nap, &waker).is_pending());
        }
        // The driver goes to sleep.
        tokio::task::yield_now().await;
        pause();
        advance(deadline + ms(1) - Instant::now()).await;
        tokio::task::yield_now().await;
        let woken = woken.lock().unwrap();
        assert_eq!(woken.len(), TIMERS);
        assert!(
            woken.is_sorted(),
            "the first out of order: {:?}",
            woken.windows(2).find(|it| it[0] > it[1])
        );
    });
}
