//! When callbacks run, where, and in which order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use waterwheel::{Duration, Instant, ManualClock, Timer, sleep};

use crate::support::{
    Dice, FAR, HOUR, LIMIT, assert_settled, current_thread, end_of_time, eventually, ms,
    multi_thread, own_timer, paused, us, with_timer, with_timer_within, within,
};
use crate::{Blocker, Log, settle};

#[tokio::test(start_paused = true)]
async fn a_callback_runs_once_at_its_deadline() {
    let timer = own_timer();
    let log = Log::new();
    let (start, seen) = (Instant::now(), log.clone());
    let handle = timer.call_after(ms(5), move || seen.push(Instant::now()));
    assert_eq!(handle.deadline(), start + ms(5));
    sleep(ms(4)).await;
    assert!(!handle.is_expired() && !handle.is_cancelled());
    sleep(ms(100)).await;
    assert_eq!(log.take(), [start + ms(5)]);
    assert!(handle.is_expired() && !handle.is_cancelled());
    assert_eq!(assert_settled(&timer).fired(), 1);
}

#[test]
fn no_callback_is_early_in_real_time() {
    let (_runtime, timer) = with_timer(multi_thread(2));
    let log = Log::new();
    let mut dice = Dice(1);
    for _ in 0..2_000 {
        let (log, now) = (log.clone(), timer.now());
        let deadline = now + us(dice.roll(20_000));
        timer.call_at(deadline, move || log.push(Instant::now() >= deadline));
    }
    eventually("all run", || log.len() == 2_000);
    assert!(log.take().into_iter().all(|is_in_time| is_in_time));
}

#[test]
fn a_zero_delay_and_a_deadline_in_the_past_run_at_once() {
    paused().block_on(async {
        let timer = own_timer();
        let log = Log::new();
        let start = timer.now();
        sleep(ms(50)).await;
        timer.call_after(Duration::ZERO, log.note("zero"));
        timer.call_at(start, log.note("past"));
        timer.call_at(timer.now(), log.note("now"));
        assert_eq!(log.len(), 0, "not within the call");
        settle().await;
        assert_eq!(log.take(), ["past", "zero", "now"]);
    });
    let (_runtime, timer) = with_timer(multi_thread(1));
    let log = Log::new();
    timer.call_after(Duration::ZERO, log.note(()));
    timer.call_at(timer.now(), log.note(()));
    eventually("both run", || log.len() == 2);
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_too_long() {
    let timer = own_timer();
    let log = Log::new();
    let now = timer.now();
    let longest = timer.call_after(Duration::MAX, log.note(()));
    assert_eq!(longest.deadline(), now + FAR);
    let last = timer.call_at(end_of_time(), log.note(()));
    sleep(HOUR).await;
    assert_eq!(log.len(), 0);
    assert!(longest.cancel() && last.cancel());
    assert_eq!(assert_settled(&timer).cancelled(), 2);
}

#[tokio::test(start_paused = true)]
async fn callbacks_run_by_tick_and_then_by_submission() {
    let timer = own_timer();
    let log = Log::new();
    let mut dice = Dice(7);
    let start = timer.now();
    let mut expected = Vec::new();
    for number in 0..2_000 {
        // Two per tick, over two dials.
        let micros = dice.roll(4_000) * 500;
        timer.call_at(start + us(micros), log.note(number));
        expected.push((micros.div_ceil(1_000), number));
    }
    expected.sort_unstable();
    tokio::time::advance(ms(3_000)).await;
    settle().await;
    let expected: Vec<_> = expected.into_iter().map(|(_, number)| number).collect();
    assert_eq!(log.take(), expected);
}

// A turn serves shard by shard, but Netty has one wheel, and its users rely on its order.
#[test]
fn what_is_due_runs_by_tick_also_across_shards() {
    within(LIMIT, || {
        let runtime = multi_thread(2);
        let timer = Timer::builder()
            .shards(8)
            .start_on(runtime.handle())
            .unwrap();
        let log = Log::new();
        let blocker = Blocker::start(&timer);
        let now = timer.now();
        // The later ones come first, each from its own thread, followed by two more at one tick.
        for millis in (1..=20).rev() {
            std::thread::scope(|scope| {
                let (timer, log) = (&timer, &log);
                scope.spawn(move || timer.call_at(now + ms(millis), log.note((millis, 0))));
            });
        }
        timer.call_at(now + ms(7), log.note((7, 1)));
        timer.call_at(now + ms(7), log.note((7, 2)));
        let fired = || timer.metrics().pending() == 0 && Instant::now() > now + ms(40);
        eventually("all are due", fired);
        drop(blocker);
        eventually("all run", || log.len() == 22);
        let ran = log.take();
        assert!(ran.is_sorted(), "{ran:?}");
    });
}

#[test]
fn a_slow_callback_holds_up_no_timer_but_the_callbacks() {
    with_timer_within(multi_thread(2), |runtime, timer| {
        let blocker = Blocker::start(&timer);
        let log = Log::new();
        let next = timer.call_after(Duration::ZERO, log.note(()));
        // Repeated, so that it cannot be due to a turn that was in progress.
        for _ in 0..5 {
            let slept = runtime.spawn(timer.sleep(ms(5)));
            runtime.block_on(slept).unwrap();
        }
        assert!(!next.is_expired(), "they run one after the other");
        assert!(blocker.handle.is_expired());
        drop(blocker);
        eventually("the next one runs", || log.len() == 1);
    });
}

#[tokio::test(start_paused = true)]
async fn a_herd_of_callbacks_gives_way_to_other_tasks() {
    let timer = own_timer();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..5_000 {
        let ran = Arc::clone(&ran);
        timer.call_at(timer.now(), move || {
            ran.fetch_add(1, Ordering::SeqCst);
        });
    }
    let (mut before, mut most) = (0, 0);
    // `yield_now` would wait until the runtime has read its clock.
    let looks = std::future::poll_fn(move |context| {
        let now = ran.load(Ordering::SeqCst);
        most = most.max(now - before);
        before = now;
        if now == 5_000 {
            return Poll::Ready(most);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    let most = tokio::spawn(looks).await.unwrap();
    assert!((1..=64).contains(&most), "{most} in a row");
}

#[tokio::test]
async fn a_waiting_callback_is_no_task_and_the_last_one_leaves_none() {
    let _of_the_runtime = Timer::current();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let timer = own_timer();
    let with_driver = tasks();
    assert_eq!(with_driver, before + 1);
    for _ in 0..1_000 {
        timer.call_after(HOUR, || ());
    }
    let log = Log::new();
    timer.call_after(ms(1), log.note(()));
    assert_eq!(tasks(), with_driver);
    while log.len() == 0 || tasks() > with_driver {
        sleep(ms(1)).await;
    }
    timer.shutdown();
    while tasks() > before {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_callback_is_within_its_timers_runtime() {
    let (runtime, timer) = with_timer(multi_thread(1));
    let home = runtime.handle().id();
    let log = Log::new();
    let seen = log.clone();
    // Submitted from outside the runtime.
    timer.call_after(ms(1), move || {
        let here = tokio::runtime::Handle::current().id();
        tokio::spawn(async move {
            sleep(ms(1)).await;
            seen.push(here);
        });
    });
    eventually("what it spawned has run", || log.len() == 1);
    assert_eq!(log.take(), [home]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handles_detaches_the_callback() {
    let _of_the_runtime = Timer::current();
    let before = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    let log = Log::new();
    let timer = Timer::builder().start().unwrap();
    drop(timer.call_after(ms(5), log.note(())));
    // Keeping the handle keeps neither the timer nor its driver alive.
    let kept = timer.call_after(ms(6), log.note(()));
    drop(timer);
    sleep(ms(10)).await;
    assert_eq!(log.len(), 2);
    assert!(kept.is_expired());
    let after = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(after, before);
}

#[test]
fn an_advance_hands_over_what_is_due_and_a_drain_awaits_it() {
    within(LIMIT, || {
        for runtime in [current_thread(), multi_thread(2)] {
            runtime.block_on(async {
                let clock = ManualClock::new();
                let timer = Timer::builder().clock(clock.clone()).start().unwrap();
                let log = Log::new();
                for millis in [20, 5, 5] {
                    let clock = clock.clone();
                    let (log, due) = (log.clone(), clock.now() + ms(millis));
                    timer.call_at(due, move || log.push(clock.now() >= due));
                }
                clock.advance(ms(4));
                assert_eq!(timer.metrics().pending(), 3);
                clock.advance(ms(16));
                assert_eq!(timer.metrics().pending(), 0, "handed over");
                timer.drain().await;
                assert_eq!(log.take(), [true, true, true]);
            });
        }
    });
}
