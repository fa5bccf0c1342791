//! `Interval`: the contract of tokio's, line by line, and what it does beyond.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures::{FutureExt, Stream, StreamExt};
use waterwheel::{
    Duration, Instant, Interval, MissedTickBehavior, Timer, interval, interval_at, sleep, timeout,
};

use crate::support::{FAR, Probe, assert_settled, end_of_time, ms, own_timer, us};

/// Takes the next tick: when it was taken, and the instant that it returned, in milliseconds since `start`.
async fn tick(interval: &mut Interval, start: Instant) -> (u128, u128) {
    let tick = interval.tick().await;
    (start.elapsed().as_millis(), (tick - start).as_millis())
}

fn poll_tick(interval: &mut Interval) -> Poll<Instant> {
    interval.poll_tick(&mut Context::from_waker(Waker::noop()))
}

fn probe_tick(probe: &Probe, interval: &mut Interval) -> Poll<Instant> {
    interval.poll_tick(&mut Context::from_waker(&probe.waker()))
}

#[tokio::test(start_paused = true)]
async fn ticks_come_a_period_apart_from_now_or_the_start_given() {
    let start = Instant::now();
    let timer = own_timer();
    let mut all = [
        (0, interval(ms(10))),
        (0, timer.interval(ms(10))),
        (0, timer.try_interval(ms(10)).expect("it takes it")),
        (0, interval(ms(10)).with_start_jitter(Duration::ZERO)),
        (5, interval_at(start + ms(5), ms(10))),
        (5, timer.interval_at(start + ms(5), ms(10))),
        (
            5,
            timer
                .try_interval_at(start + ms(5), ms(10))
                .expect("it takes it"),
        ),
    ];
    for period in 0..100 {
        for (first, interval) in &mut all {
            let expected = *first + 10 * period;
            assert_eq!(tick(interval, start).await, (expected, expected));
        }
    }
    assert!(all.iter().all(|(_, interval)| interval.missed_ticks() == 0));
    drop(all);
    assert_settled(&timer);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn ticks_do_not_drift_when_periods_are_no_whole_ticks() {
    let start = Instant::now();
    let period = us(1_300);
    let mut interval = interval(period);
    for count in 0..50 {
        assert_eq!(interval.tick().await, start + period * count);
        let late = start.elapsed() - period * count;
        assert!(late <= ms(1), "tick {count} is {late:?} late");
    }
}

#[tokio::test(start_paused = true)]
async fn tick_is_cancel_safe() {
    let start = Instant::now();
    let mut interval = interval(ms(10));
    assert_eq!(tick(&mut interval, start).await, (0, 0));
    assert!(timeout(ms(4), interval.tick()).await.is_err());
    assert!(interval.tick().now_or_never().is_none());
    assert!(timeout(ms(4), interval.tick()).await.is_err());
    assert_eq!(tick(&mut interval, start).await, (10, 10));
    assert_eq!(tick(&mut interval, start).await, (20, 20));
    drop(interval);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn poll_tick_is_tick_by_hand() {
    let start = Instant::now();
    let mut interval = interval(ms(10));
    assert_eq!(poll_tick(&mut interval), Poll::Ready(start));
    assert!(poll_tick(&mut interval).is_pending());
    sleep(ms(10)).await;
    assert_eq!(poll_tick(&mut interval), Poll::Ready(start + ms(10)));
}

#[tokio::test(start_paused = true)]
async fn ready_from_poll_tick_leaves_no_waker_registered() {
    let timer = own_timer();
    let probe = Probe::new();
    let mut interval = timer.interval(ms(10));
    assert!(probe_tick(&probe, &mut interval).is_ready());
    assert_eq!(probe.held(), 0);
    assert!(probe_tick(&probe, &mut interval).is_pending());
    assert_eq!(probe.held(), 1);
    sleep(ms(15)).await;
    assert_eq!((probe.wakes(), probe.held()), (1, 0));
    assert!(probe_tick(&probe, &mut interval).is_ready());
    assert_eq!(probe.held(), 0);
    sleep(ms(100)).await;
    assert_eq!(probe.wakes(), 1);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn period_and_behavior_are_what_was_set() {
    let mut interval = interval(ms(10));
    assert_eq!(interval.period(), ms(10));
    assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Burst);
    assert_eq!(MissedTickBehavior::default(), MissedTickBehavior::Burst);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Skip);
}

// ----- missed ticks -----

/// An interval that ticks at 0, is held up until 250 ms, and goes on: when its ticks are taken, and the instants that they return.
async fn held_up(behavior: MissedTickBehavior) -> (Vec<(u128, u128)>, u64) {
    let start = Instant::now();
    let mut interval = interval(ms(100));
    interval.set_missed_tick_behavior(behavior);
    let mut ticks = vec![tick(&mut interval, start).await];
    sleep(ms(250)).await;
    while ticks.len() < 6 {
        ticks.push(tick(&mut interval, start).await);
    }
    (ticks, interval.missed_ticks())
}

/// Does this with tokio's interval.
async fn held_up_in_tokio(behavior: tokio::time::MissedTickBehavior) -> Vec<(u128, u128)> {
    let start = Instant::now();
    let mut interval = tokio::time::interval(ms(100));
    interval.set_missed_tick_behavior(behavior);
    let mut ticks = Vec::new();
    while ticks.len() < 6 {
        let tick = interval.tick().await;
        ticks.push((start.elapsed().as_millis(), (tick - start).as_millis()));
        if ticks.len() == 1 {
            sleep(ms(250)).await;
        }
    }
    ticks
}

// Burst catches up tick by tick. Delay starts over from the late tick, and Skip stays in step: the tick at 100 ms was late, the one
// at 200 ms is left out.
#[tokio::test(start_paused = true)]
async fn missed_ticks_are_made_up_for_as_the_behavior_says() {
    use tokio::time::MissedTickBehavior as Tokios;
    for (behavior, tokios, expected) in [
        (
            MissedTickBehavior::Burst,
            Tokios::Burst,
            [(0, 0), (250, 100), (250, 200), (300, 300), (400, 400)],
        ),
        (
            MissedTickBehavior::Delay,
            Tokios::Delay,
            [(0, 0), (250, 100), (350, 350), (450, 450), (550, 550)],
        ),
        (
            MissedTickBehavior::Skip,
            Tokios::Skip,
            [(0, 0), (250, 100), (300, 300), (400, 400), (500, 500)],
        ),
    ] {
        let (ticks, missed) = held_up(behavior).await;
        assert_eq!((&ticks[..5], missed), (&expected[..], 2), "{behavior:?}");
        assert_eq!(ticks, held_up_in_tokio(tokios).await, "{behavior:?}");
    }
}

/// The instant that the tick after a late one returns, if late ticks shift the grid.
async fn after_a_tick_late_by(late: Duration, timer: &Timer, period: Duration) -> (Duration, u64) {
    let mut interval = timer.interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let start = interval.tick().await;
    tokio::time::advance(period + late).await;
    assert_eq!(interval.tick().await, start + period);
    (
        interval.tick().await - start - period,
        interval.missed_ticks(),
    )
}

// Likewise for more than two ticks late, on a coarse timer.
#[tokio::test(start_paused = true)]
async fn a_tick_more_than_five_milliseconds_late_counts_as_missed() {
    let coarse = Timer::builder().resolution(ms(100)).start();
    // The last one leaves the clock between two milliseconds.
    for (timer, period, in_time, late) in [
        (
            &coarse.expect("a timer"),
            ms(1_000),
            [ms(6), ms(200)],
            [ms(201); 2],
        ),
        (&*own_timer(), ms(100), [ms(0), ms(5)], [ms(6), us(5_001)]),
    ] {
        for late in in_time {
            let missed = after_a_tick_late_by(late, timer, period).await;
            assert_eq!(missed, (period, 0), "{late:?}");
        }
        for late in late {
            let missed = after_a_tick_late_by(late, timer, period).await;
            assert_eq!(missed, (period + late, 1), "{late:?}");
        }
        assert_settled(timer);
    }
}

// spring#18458: a burst after a suspend.
#[tokio::test(start_paused = true)]
async fn after_a_suspend_only_burst_makes_up_for_the_ticks() {
    for (behavior, at_once, missed) in [
        (MissedTickBehavior::Burst, 1_000, 1_000),
        (MissedTickBehavior::Delay, 1, 1_000),
        (MissedTickBehavior::Skip, 1, 1_000),
    ] {
        let mut interval = interval(ms(10));
        interval.set_missed_tick_behavior(behavior);
        interval.tick().await;
        tokio::time::advance(ms(10_009)).await;
        let mut ticks = 0;
        while tokio::task::unconstrained(interval.tick())
            .now_or_never()
            .is_some()
        {
            ticks += 1;
        }
        assert_eq!(ticks, at_once, "{behavior:?}");
        assert_eq!(interval.missed_ticks(), missed, "{behavior:?}");
    }
}

// ----- resets -----

// At 50 ms.
#[tokio::test(start_paused = true)]
async fn each_reset_makes_the_next_tick_come_when_it_says() {
    type Reset = fn(&mut Interval, Instant);
    let resets: [(Reset, u128); 4] = [
        (|interval, _| interval.reset(), 150),
        (|interval, _| interval.reset_immediately(), 50),
        (|interval, _| interval.reset_after(ms(20)), 70),
        (|interval, start| interval.reset_at(start + ms(222)), 222),
    ];
    for (reset, next) in resets {
        let start = Instant::now();
        let mut interval = interval(ms(100));
        interval.tick().await;
        sleep(ms(50)).await;
        reset(&mut interval, start);
        for expected in [next, next + 100] {
            assert_eq!(tick(&mut interval, start).await, (expected, expected));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_of_a_pending_tick_wakes_when_it_has_come() {
    let mut interval = interval(ms(100));
    interval.tick().await;
    let probe = Probe::new();
    assert!(probe_tick(&probe, &mut interval).is_pending());
    interval.reset_after(ms(10));
    assert_eq!(probe.wakes(), 0);
    sleep(ms(11)).await;
    assert_eq!(probe.wakes(), 1);
    assert!(probe_tick(&probe, &mut interval).is_ready());
    assert!(probe_tick(&probe, &mut interval).is_pending());
    interval.reset_immediately();
    assert_eq!(probe.wakes(), 2);
    assert!(probe_tick(&probe, &mut interval).is_ready());
    drop(interval);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_reset_to_the_past_leaves_missed_ticks_to_the_behavior() {
    let start = Instant::now();
    sleep(ms(500)).await;
    let mut interval = interval(ms(100));
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval.tick().await;
    interval.reset_at(start + ms(130));
    assert_eq!(tick(&mut interval, start).await, (500, 130));
    assert_eq!(tick(&mut interval, start).await, (530, 530));
}

// ----- far -----

#[tokio::test(start_paused = true)]
async fn periods_without_end_are_cut_to_thirty_years() {
    let start = Instant::now();
    for period in [FAR + ms(1), Duration::MAX] {
        let mut interval = interval(period);
        assert_eq!(interval.period(), FAR);
        assert_eq!(tick(&mut interval, start).await, (0, 0));
        assert!(poll_tick(&mut interval).is_pending());
    }
    let mut interval = interval(Duration::MAX);
    interval.tick().await;
    interval.tick().await;
    assert_eq!(start.elapsed(), FAR);
    // Deadlines that were near are far now.
    interval.reset_after(Duration::MAX);
    assert_eq!(interval.tick().await, start + FAR * 2);
    interval.set_period(Duration::MAX);
    assert_eq!(interval.period(), FAR);
    interval.reset();
    assert_eq!(interval.tick().await, start + FAR * 3);
}

#[tokio::test(start_paused = true)]
async fn a_start_at_the_end_of_time_saturates() {
    let end = end_of_time();
    let mut never = interval_at(end, Duration::MAX);
    assert!(poll_tick(&mut never).is_pending());
    let mut jittered = interval_at(end, ms(1)).with_start_jitter(Duration::MAX);
    assert!(poll_tick(&mut jittered).is_pending());
}

// ----- beyond tokio -----

#[tokio::test(start_paused = true)]
async fn it_is_a_stream_of_its_ticks() {
    let start = Instant::now();
    let mut stream = interval(ms(10)).take(3);
    assert_eq!(stream.next().await, Some(start));
    assert_eq!(stream.next().await, Some(start + ms(10)));
    assert_eq!(stream.next().await, Some(start + ms(20)));
    assert_eq!(stream.next().await, None);
    assert_eq!(start.elapsed(), ms(20));
    assert_eq!(interval(ms(10)).size_hint(), (0, None));
}

#[tokio::test(start_paused = true)]
async fn as_a_stream_it_ends_when_its_timer_is_stopped() {
    let timer = own_timer();
    let mut interval = timer.interval(ms(10));
    assert!(interval.next().await.is_some());
    let probe = Probe::new();
    let mut context = Context::from_waker(Waker::noop());
    let waker = probe.waker();
    let mut probing = Context::from_waker(&waker);
    assert!(Pin::new(&mut interval).poll_next(&mut probing).is_pending());
    timer.shutdown();
    assert_eq!(probe.wakes(), 1);
    for _ in 0..2 {
        let end = Pin::new(&mut interval).poll_next(&mut context);
        assert_eq!(end, Poll::Ready(None));
    }
    assert!(interval.was_stopped());
    assert_eq!(interval.size_hint(), (0, Some(0)));
    assert_eq!(assert_settled(&timer).stopped(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_period_that_is_set_holds_from_the_next_tick_on() {
    let start = Instant::now();
    let mut interval = interval(ms(10));
    assert_eq!(tick(&mut interval, start).await, (0, 0));
    interval.set_period(ms(25));
    assert_eq!(interval.period(), ms(25));
    assert_eq!(tick(&mut interval, start).await, (10, 10));
    assert_eq!(tick(&mut interval, start).await, (35, 35));
    assert_eq!(tick(&mut interval, start).await, (60, 60));
}

// HAProxy, openraft#1959: intervals that all start together tick together forever.
#[tokio::test(start_paused = true)]
async fn start_jitter_spreads_the_first_ticks_over_its_length() {
    let start = Instant::now();
    let mut in_quarter = [0; 4];
    for _ in 0..400 {
        let mut interval = interval_at(start, ms(100)).with_start_jitter(ms(100));
        // Never before the given start, never beyond the jitter.
        let offset = interval.tick().await - start;
        assert!(offset < ms(100));
        in_quarter[offset.as_micros() as usize / 25_000] += 1;
        assert_eq!(
            interval.tick().await - start,
            offset + ms(100),
            "the ticks after it keep the shift"
        );
    }
    // 100 are expected in each: that one has less than 40 happens once in 10^12 runs.
    assert!(in_quarter.iter().all(|&n| n > 40), "{in_quarter:?}");
}
