//! Meaningless input is refused with a typed error, or a panic that gives advice; input that
//! is merely extreme works.

use std::future::pending;

use tokio::runtime::Builder as RuntimeBuilder;
use waterwheel::{
    Duration, Instant, Timer, interval, interval_at, sleep, sleep_until, timeout, timeout_at,
};

use crate::support::{
    FAR, HOUR, assert_panics_here, assert_settled, current_thread, end_of_time, ms, multi_thread,
    own_timer, panic_of, poll_once, us, waiting, within,
};

#[tokio::test(start_paused = true)]
async fn a_period_of_zero_is_an_error_or_panics_with_tokios_words() {
    let (timer, now) = (own_timer(), Instant::now());
    let says = &["`period` must be non-zero."];
    assert_panics_here(says, || interval(Duration::ZERO));
    assert_panics_here(says, || interval_at(now, Duration::ZERO));
    assert_panics_here(says, || timer.interval(Duration::ZERO));
    assert_panics_here(says, || timer.interval_at(now, Duration::ZERO));
    let mut good = interval(ms(1));
    assert_panics_here(says, || good.set_period(Duration::ZERO));
    assert_eq!(good.period(), ms(1));
    for error in [
        timer.try_interval(Duration::ZERO).err(),
        timer.try_interval_at(now, Duration::ZERO).err(),
    ] {
        let error = error.expect("it makes no sense");
        assert!(error.is_invalid() && !error.is_shutdown() && !error.is_at_capacity());
    }
    // As in tokio: outside a runtime too, the argument is blamed.
    let outside = std::thread::spawn(|| {
        assert_panics_here(&["`period`"], || interval(Duration::ZERO));
    });
    outside.join().expect("it says what is wrong");
}

#[tokio::test(start_paused = true)]
async fn a_resolution_out_of_range_or_uneven_is_a_typed_error() {
    let bad = [
        Duration::ZERO,
        Duration::from_nanos(1),
        us(50),
        us(99),
        us(150),
        ms(3),
        ms(7),
        ms(999),
        ms(1_001),
        ms(2_000),
        Duration::MAX,
    ];
    for resolution in bad {
        let error = Timer::builder().resolution(resolution).start();
        let error = error.expect_err("it is out of range");
        assert!(error.is_resolution() && !error.is_shards() && !error.is_max_pending());
        let message = error.to_string();
        assert!(
            message.contains("100 µs to 1 s") && message.contains(&format!("{resolution:?}")),
            "{message}"
        );
        // A report of the error chain would print a source again that `Display` includes.
        assert!(std::error::Error::source(&error).is_none());
    }
    for resolution in [us(100), us(125), us(250), ms(1), ms(8), ms(40), ms(1_000)] {
        let timer = Timer::builder().resolution(resolution).start();
        assert_eq!(timer.expect("it is in range").resolution(), resolution);
    }
}

#[tokio::test(start_paused = true)]
async fn shards_and_a_bound_out_of_range_are_a_typed_error() {
    for shards in [0, 1_025, usize::MAX] {
        let error = Timer::builder().shards(shards).start();
        let error = error.expect_err("it is out of range");
        assert!(error.is_shards() && !error.is_resolution());
        assert!(error.to_string().contains("leave `shards` out"));
    }
    for (shards, rounded) in [(1, 1), (2, 2), (3, 4), (1_023, 1_024), (1_024, 1_024)] {
        let timer = Timer::builder().shards(shards).start();
        assert_eq!(timer.expect("it is in range").shards(), rounded);
    }
    let error = Timer::builder().max_pending(0).start();
    let error = error.expect_err("it could take nothing");
    assert!(error.is_max_pending() && !error.is_no_runtime());
    assert!(error.to_string().contains("leave it out for no limit"));
    assert!(std::error::Error::source(&error).is_none());
    let timer = Timer::builder().max_pending(usize::MAX).start();
    timer.expect("it is a bound").sleep(ms(1)).await;
}

#[test]
fn start_outside_a_runtime_is_a_typed_error() {
    let error = Timer::builder().start();
    let error = error.expect_err("there is no runtime");
    assert!(error.is_no_runtime() && !error.is_resolution());
    assert!(error.to_string().contains("start_on"));
    // Bad settings are reported first: they do not depend on the runtime.
    let error = Timer::builder().max_pending(0).start();
    assert!(error.is_err_and(|error| error.is_max_pending()));
}

#[test]
fn outside_a_runtime_functions_panic_at_the_caller_with_advice() {
    let now = Instant::now();
    let says = &["must be called from the context of a Tokio"];
    assert_panics_here(says, || sleep(ms(1)));
    assert_panics_here(says, || sleep_until(now));
    assert_panics_here(says, || timeout(ms(1), pending::<()>()));
    assert_panics_here(says, || timeout(Duration::MAX, pending::<()>()));
    assert_panics_here(says, || timeout_at(now, pending::<()>()));
    assert_panics_here(says, || interval(ms(1)));
    assert_panics_here(says, || interval_at(now, ms(1)));
    assert_panics_here(says, || drop(Timer::current()));
}

#[test]
fn without_time_everything_panics_at_the_caller_with_advice() {
    let runtime = RuntimeBuilder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let _entered = runtime.enter();
    let now = Instant::now();
    let says = &["enable_time"];
    for _ in 0..2 {
        assert_panics_here(says, || sleep(ms(1)));
        assert_panics_here(says, || sleep_until(now));
        assert_panics_here(says, || timeout(ms(1), pending::<()>()));
        assert_panics_here(says, || timeout(Duration::MAX, pending::<()>()));
        assert_panics_here(says, || timeout_at(now, pending::<()>()));
        assert_panics_here(says, || interval(ms(1)));
        assert_panics_here(says, || interval_at(now, ms(1)));
        assert_panics_here(says, || drop(Timer::current()));
        assert_panics_here(says, || Timer::builder().start());
        assert_panics_here(says, || Timer::builder().start_on(runtime.handle()));
    }
}

#[test]
fn a_timer_started_on_a_finished_runtime_is_stopped() {
    within(Duration::from_secs(10), || {
        for runtime in [current_thread(), multi_thread(1)] {
            let handle = runtime.handle().clone();
            drop(runtime);
            let timer = Timer::builder().start_on(&handle);
            let timer = timer.expect("the settings are good");
            assert!(timer.is_stopped());
            let refused = timer.try_sleep(ms(1));
            assert!(refused.is_err_and(|error| error.is_shutdown()));
            assert_panics_here(&["Timer::builder"], || timer.sleep(ms(1)));
            assert_eq!(timer.shutdown(), 0);
            futures::executor::block_on(timer.drain());
        }
    });
}

#[tokio::test(start_paused = true)]
async fn deadlines_in_the_past_are_due_at_once() {
    let timer = own_timer();
    let before = Instant::now();
    tokio::time::advance(HOUR).await;
    for past in [before, Instant::now() - ms(1), Instant::now() - us(1)] {
        assert!(poll_once(&mut sleep_until(past)).is_ready());
        assert!(poll_once(&mut timer.sleep_until(past)).is_ready());
        assert!(poll_once(&mut timeout_at(past, pending::<()>())).is_ready());
        let mut interval = interval_at(past, HOUR);
        assert_eq!(interval.tick().await, past);
    }
    assert_settled(&timer);
}

// A deadline before the timer's own time began, which is when it was started.
#[tokio::test(start_paused = true)]
async fn deadlines_before_the_timer_was_started_are_due_at_once() {
    let before = Instant::now();
    tokio::time::advance(HOUR).await;
    let timer = own_timer();
    for past in [before, before - HOUR] {
        assert!(poll_once(&mut timer.sleep_until(past)).is_ready());
        let mut reset = waiting(timer.sleep(HOUR));
        reset.set_deadline(past);
        assert!(poll_once(&mut reset).is_ready());
    }
    assert_settled(&timer);
}

// netty#7760, JDK-6725789: a huge delay wraps and fires at once.
#[tokio::test(start_paused = true)]
async fn instants_at_the_end_of_time_are_never_due() {
    let end = end_of_time();
    for resolution in [us(100), ms(1), ms(1_000)] {
        let timer = Timer::builder().resolution(resolution).start();
        let timer = timer.expect("a timer");
        let mut all = [
            sleep_until(end),
            timer.sleep_until(end),
            timer.sleep_until(end - Duration::from_nanos(1)),
            timer.sleep_until(Instant::now() + Duration::from_secs(1 << 55)),
        ];
        for sleep in &mut all {
            assert!(poll_once(sleep).is_pending());
            assert!(!sleep.is_elapsed());
        }
        let _limited = waiting(timeout_at(end, pending::<()>()));
        timer.sleep(ms(5)).await;
        tokio::time::advance(FAR).await;
        for sleep in &mut all {
            assert!(poll_once(sleep).is_pending());
            // embassy#4736: cancelled for the end of time, then a short one never wakes.
            let soon = Instant::now() + ms(5);
            sleep.set_deadline(soon);
            assert!(poll_once(sleep).is_pending());
            (&mut *sleep).await;
            assert!(Instant::now() >= soon);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_durations_neither_panic_nor_fire() {
    let timer = own_timer();
    for long in [
        Duration::MAX,
        Duration::MAX - Duration::from_nanos(1),
        Duration::from_secs(u64::MAX / 1_000),
        Duration::from_secs(i64::MAX as u64),
        Duration::from_millis(u64::MAX),
    ] {
        assert!(poll_once(&mut sleep(long)).is_pending());
        assert!(poll_once(&mut timer.sleep(long)).is_pending());
        assert!(poll_once(&mut timeout(long, pending::<()>())).is_pending());
        assert!(poll_once(&mut timer.timeout(long, pending::<()>())).is_pending());
        assert!(timer.try_sleep(long).is_ok());
        assert!(timer.try_timeout(long, pending::<()>()).is_ok());
        for mut interval in [interval(long), timer.interval(long)] {
            interval.tick().await;
            interval.reset();
            interval.reset_after(long);
            interval.set_period(long);
            let jittered = interval.with_start_jitter(long);
            assert_eq!(jittered.period(), FAR);
        }
    }
    assert_settled(&timer);
    assert_settled(&Timer::current());
}

// On a clock that cannot be paused the first poll trusts the clock read that made the future: its
// distance in ticks must not overflow, or the hand would be moved to the far deadline, and everything
// after that would be due at once.
#[test]
fn the_longest_durations_leave_a_running_clock_where_it_is() {
    for resolution in [Duration::from_micros(100), ms(1), Duration::from_secs(1)] {
        let runtime = multi_thread(1);
        let builder = Timer::builder().resolution(resolution);
        let timer = builder.start_on(runtime.handle()).unwrap();
        for long in [
            Duration::MAX,
            Duration::from_secs(u64::MAX),
            Duration::from_secs(u64::MAX - 1),
            Duration::from_secs(u64::MAX / 1_000),
            Duration::from_secs(u64::MAX / 10_000),
            FAR,
        ] {
            assert!(poll_once(&mut timer.sleep(long)).is_pending(), "{long:?}");
            let soon = Duration::from_secs(5);
            assert!(poll_once(&mut timer.sleep(soon)).is_pending(), "{long:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_quantile_that_is_no_share_panics_with_the_range() {
    let metrics = own_timer().metrics();
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let panicked = panic_of(|| metrics.lateness().quantile(share));
        assert!(panicked.message.contains("from 0 to 1"), "{panicked:?}");
    }
}
