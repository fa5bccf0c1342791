//! Moving the clock by hand, a little or by decades.

use std::future::pending;
use std::pin::pin;
use std::thread;

use futures::future::join_all;
use tokio::time::advance;
use waterwheel::{Duration, Instant, Timer, interval, sleep, sleep_until, timeout};

use crate::support::{HOUR, Probe, block_on_within, ms, own_timer, paused, poll_once, us, waiting};

// An earlier clock read means nothing there, not even in a task.
#[tokio::test(start_paused = true)]
async fn a_long_delay_that_the_clock_passed_is_ready_in_a_task() {
    let task = tokio::spawn(async {
        let mut naps = [sleep(HOUR), own_timer().sleep(HOUR)];
        advance(HOUR).await;
        assert!(naps.iter_mut().all(|nap| poll_once(nap).is_ready()));
    });
    task.await.expect("it does not panic");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_is_woken_before_the_task_that_advances_goes_on() {
    let timer = own_timer();
    let probe = Probe::new();
    let (mut current, mut own) = (sleep(ms(10)), timer.sleep(ms(10)));
    assert!(probe.poll(&mut current).is_pending());
    assert!(probe.poll(&mut own).is_pending());
    tokio::task::yield_now().await;
    advance(ms(9)).await;
    assert_eq!(probe.wakes(), 0);
    advance(ms(1)).await;
    assert_eq!(probe.wakes(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_advance_is_not_cut_short_by_what_it_passes() {
    let start = Instant::now();
    let passed = tokio::spawn(async move {
        sleep(ms(10)).await;
        start.elapsed()
    });
    tokio::task::yield_now().await;
    advance(ms(1_000)).await;
    assert_eq!(start.elapsed(), ms(1_000));
    assert_eq!(passed.await.expect("it does not panic"), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn sub_millisecond_delays_wait_for_the_clock() {
    let mut short = waiting(sleep(us(300)));
    advance(us(299)).await;
    assert!(poll_once(&mut short).is_pending());
    // Past its deadline, but not past its tick.
    advance(us(1)).await;
    assert!(poll_once(&mut short).is_pending());
    advance(us(699)).await;
    assert!(poll_once(&mut short).is_pending());
    advance(us(1)).await;
    assert!(poll_once(&mut short).is_ready());
    let start = Instant::now();
    sleep(us(300)).await;
    assert!(start.elapsed() >= us(300) && start.elapsed() <= ms(1));
}

#[tokio::test(start_paused = true)]
async fn jumps_of_ten_years_are_as_good_as_any() {
    let decade = Duration::from_secs(86_400 * 3_653);
    let start = Instant::now();
    let mut metronome = interval(decade);
    for jump in 0..5 {
        assert_eq!(metronome.tick().await, start + decade * jump);
        assert_eq!(start.elapsed(), decade * jump);
        // A short one right after a long jump.
        let now = Instant::now();
        sleep(ms(3)).await;
        assert_eq!(now.elapsed(), ms(3));
    }
    let mut passed: Vec<_> = (1..100).map(|n| waiting(sleep(decade / n))).collect();
    advance(decade).await;
    assert!(passed.iter_mut().all(|sleep| poll_once(sleep).is_ready()));
}

// A long suspend replayed tick by tick (Netty): jump instead.
#[tokio::test(start_paused = true)]
async fn a_jump_of_any_length_takes_a_few_turns() {
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    let before = timer.metrics().driver_turns();
    timer.sleep(ms(10)).await;
    let turns = timer.metrics().driver_turns() - before;
    assert!(turns <= 2, "{turns} turns");
    let before = timer.metrics().driver_turns();
    timer.sleep(Duration::from_secs(86_400 * 3_653)).await;
    let turns = timer.metrics().driver_turns() - before;
    // The list beyond the last dial is checked every 64 days: 57 times in ten years.
    assert!(turns < 1_000, "{turns} turns");
}

// tokio's clock takes the turn on behalf of the driver, and sets the driver's sleep for the next one.
#[tokio::test(start_paused = true)]
async fn on_a_paused_clock_a_tick_takes_one_turn() {
    let timer = own_timer();
    let mut metronome = timer.interval(ms(5));
    for _ in 0..3 {
        metronome.tick().await;
    }
    let before = timer.metrics().driver_turns();
    for _ in 0..100 {
        metronome.tick().await;
        timer.sleep(ms(2)).await;
    }
    let turns = timer.metrics().driver_turns() - before;
    assert_eq!(turns, 200);
}

#[tokio::test(start_paused = true)]
async fn every_resolution_jumps_to_its_next_tick() {
    for micros in [100, 250, 500, 1_000, 2_000, 8_000, 100_000, 1_000_000] {
        let resolution = us(micros);
        let timer = Timer::builder().resolution(resolution).start();
        let timer = timer.expect("a timer");
        for delay in [us(1), us(999), ms(1), ms(17), ms(1_001), ms(61_000)] {
            let start = Instant::now();
            timer.sleep(delay).await;
            let late = start.elapsed() - delay;
            assert!(
                late <= resolution + ms(1),
                "{delay:?} at {resolution:?} was {late:?} late"
            );
        }
    }
}

// The driver must ask tokio's clock for a future time, or the clock does not move.
#[test]
fn a_clock_that_is_at_the_first_nanosecond_of_a_tick_moves_on() {
    block_on_within(paused(), async || {
        let nanosecond = Duration::from_nanos(1);
        advance(ms(1) - nanosecond).await;
        let timer = own_timer();
        advance(nanosecond).await;
        let start = Instant::now();
        timer.sleep(ms(1) - nanosecond).await;
        assert!(start.elapsed() <= ms(2), "{:?}", start.elapsed());
    });
}

/// The number of timers that are due at once: more than the first turn serves.
const HERD: usize = 10_000;

// 1024 in the first turn, which tokio's clock takes on behalf of the driver, however many other shards
// there are, and then 128 in each.
#[tokio::test(start_paused = true)]
async fn a_herd_is_served_in_batches() {
    for shards in [1, 2] {
        let timer = Timer::builder().shards(1024).start().expect("a timer");
        let others: Vec<_> = (1..shards)
            .map(|_| {
                let mut far = timer.sleep(HOUR);
                let arm = || assert!(poll_once(&mut far).is_pending());
                thread::scope(|scope| scope.spawn(arm).join()).expect("it does not panic");
                far
            })
            .collect();
        let herd: Vec<_> = (0..HERD).map(|_| waiting(timer.sleep(ms(5)))).collect();
        let herd: Vec<_> = herd.into_iter().map(tokio::spawn).collect();
        tokio::task::yield_now().await;
        let before = timer.metrics().driver_turns();
        join_all(herd).await;
        let turns = timer.metrics().driver_turns() - before;
        let batches = (HERD as u64 - 1024) / 128;
        assert!((batches..batches + 4).contains(&turns), "{turns} turns");
        drop(others);
    }
}

// With a fixed batch per turn, the timers of a busy service would fall further and further behind.
#[tokio::test(start_paused = true)]
async fn a_late_driver_serves_one_more_for_each_four_microseconds() {
    let timer = own_timer();
    let herd: Vec<_> = (0..HERD)
        .map(|_| {
            let nap = timer.sleep(ms(5));
            tokio::spawn(async move {
                nap.await;
                // The clock moves when this is polled, and the waiting task yields.
                assert!(poll_once(&mut pin!(advance(us(10)))).is_pending());
            })
        })
        .collect();
    tokio::task::yield_now().await;
    let before = timer.metrics().driver_turns();
    join_all(herd).await;
    let turns = timer.metrics().driver_turns() - before;
    // 1024, 128, and then two and a half times as many each time: 320, 800, 2000, 5000, the rest.
    assert!((7..10).contains(&turns), "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_until_an_instant_of_tokios_paused_clock_is_exact() {
    let start = Instant::now();
    advance(ms(1_234)).await;
    sleep_until(start + ms(5_000)).await;
    assert_eq!(start.elapsed(), ms(5_000));
    let never = timeout(ms(10), pending::<()>());
    assert!(never.await.is_err());
    assert_eq!(start.elapsed(), ms(5_010));
}

#[tokio::test(start_paused = true)]
async fn the_metrics_count_turns_cascades_and_how_late_timers_fired() {
    let timer = own_timer();
    let probe = Probe::new();
    let _sleeps = [10, 10, 25].map(|millis| probe.waiting(timer.sleep(ms(millis))));
    tokio::task::yield_now().await;
    advance(ms(40)).await;
    assert_eq!(probe.wakes(), 3);
    let metrics = timer.metrics();
    let lateness = metrics.lateness();
    assert_eq!((lateness.count(), lateness.max()), (3, ms(30)));
    assert_eq!(lateness.mean(), ms(30 + 30 + 15) / 3);
    assert!(metrics.driver_turns() > 0);
    assert_eq!(metrics.cascaded(), 0);
    timer.sleep(ms(1_500)).await;
    assert_eq!(timer.metrics().cascaded(), 1);
}
