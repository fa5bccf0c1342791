//! Which timers an advance fires, and when it is refused.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use waterwheel::{Duration, ManualClock, Timer};

use super::{on_both_flavors, start};
use crate::support::{
    FAR, LIMIT, Probe, assert_panics_here, end_of_time, ms, multi_thread, poll_with, us,
    waker_on_wake, within,
};

#[test]
fn a_sleep_is_woken_at_its_tick_and_not_before() {
    on_both_flavors(|_, clock, timer| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(timer.sleep(ms(10)));
        clock.advance(us(9_999));
        assert_eq!(probe.wakes(), 0);
        assert!(probe.poll(&mut sleep).is_pending());
        clock.advance(us(1));
        assert_eq!(probe.wakes(), 1);
        assert!(probe.poll(&mut sleep).is_ready());
        assert_eq!(probe.held(), 0);
    });
}

#[test]
fn a_deadline_between_two_ticks_fires_at_the_second() {
    on_both_flavors(|_, clock, timer| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(timer.sleep(us(9_001)));
        clock.advance(us(9_999));
        assert_eq!(probe.wakes(), 0);
        assert!(probe.poll(&mut sleep).is_pending());
        clock.advance(us(1));
        assert_eq!(probe.wakes(), 1);
    });
}

#[test]
fn an_advance_over_years_fires_all_on_its_way() {
    on_both_flavors(|_, clock, timer| {
        let probe = Probe::new();
        let delays = [ms(1), ms(60_001), ms(3_600_007), 90 * FAR / 30 / 365, FAR];
        let mut sleeps = delays.map(|delay| probe.waiting(timer.sleep(delay)));
        clock.advance(FAR - ms(1));
        assert_eq!(probe.wakes(), 4);
        clock.advance(ms(1));
        assert_eq!(probe.wakes(), 5);
        assert!(sleeps.iter_mut().all(|sleep| probe.poll(sleep).is_ready()));
    });
}

#[test]
fn the_next_advance_goes_from_timer_to_timer() {
    on_both_flavors(|_, clock, timer| {
        let begin = clock.now();
        let probe = Probe::new();
        // The last is beyond the dials' first revolution, so that it is filed again on its way.
        let delays = [ms(7), ms(7), ms(90_123), Duration::from_secs(86_400 * 100)];
        let _sleeps = delays.map(|delay| probe.waiting(timer.sleep(delay)));
        assert_eq!(clock.advance_to_next(), Some(begin + delays[1]));
        assert_eq!(probe.wakes(), 2);
        assert_eq!(clock.advance_to_next(), Some(begin + delays[2]));
        assert_eq!(clock.advance_to_next(), Some(begin + delays[3]));
        assert_eq!(probe.wakes(), 4);
        assert_eq!(clock.advance_to_next(), None);
        assert_eq!(clock.now(), begin + delays[3]);
    });
}

#[test]
fn the_next_advance_skips_what_was_cancelled_or_postponed() {
    on_both_flavors(|_, clock, timer| {
        let begin = clock.now();
        let probe = Probe::new();
        let [mut postponed, mut cancelled] = [timer.sleep(ms(5)), timer.sleep(ms(3))];
        assert!(probe.poll(&mut postponed).is_pending());
        assert!(probe.poll(&mut cancelled).is_pending());
        drop(cancelled);
        postponed.set_deadline(begin + ms(40));
        assert_eq!(clock.advance_to_next(), Some(begin + ms(40)));
        assert_eq!(probe.wakes(), 1);
        drop(postponed);
        // Nothing is pending, so nothing moves, even if the wheel would have slots to look at.
        let last = probe.waiting(timer.sleep(ms(100)));
        drop(last);
        assert_eq!(clock.advance_to_next(), None);
        assert_eq!(clock.now(), begin + ms(40));
    });
}

// The clock steps to deadlines only, so it takes no step if all are out of reach.
#[test]
fn the_next_advance_leaves_the_clock_where_nothing_is_in_reach() {
    on_both_flavors(|_, clock, timer| {
        let begin = clock.now();
        let probe = Probe::new();
        let mut endless = [
            timer.sleep_until(end_of_time()),
            timer.sleep_until(begin + Duration::from_secs(86_400 * 365 * 600)),
        ];
        assert!(
            endless
                .iter_mut()
                .all(|sleep| probe.poll(sleep).is_pending())
        );
        assert_eq!(clock.advance_to_next(), None);
        assert_eq!(clock.now(), begin);
        let year = probe.waiting(timer.sleep(Duration::from_secs(86_400 * 365)));
        assert_eq!(clock.advance_to_next(), Some(year.deadline()));
        assert_eq!((probe.wakes(), timer.metrics().driver_turns()), (1, 1));
    });
}

#[test]
fn the_clock_is_moved_before_anything_fires() {
    on_both_flavors(|_, clock, timer| {
        let begin = clock.now();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut sleeps = [ms(2), ms(7)].map(|delay| timer.sleep(delay));
        for sleep in &mut sleeps {
            let (seen, clock, timer) = (Arc::clone(&seen), clock.clone(), timer.clone());
            let waker = waker_on_wake(move || {
                assert_eq!(clock.now(), timer.now());
                seen.lock().unwrap().push(clock.now());
            });
            assert!(poll_with(sleep, &waker).is_pending());
        }
        clock.advance(ms(9));
        assert_eq!(*seen.lock().unwrap(), [begin + ms(9); 2]);
    });
}

#[test]
fn what_a_waker_arms_counts_from_where_the_clock_was_moved_to() {
    on_both_flavors(|_, clock, timer| {
        let probe = Arc::new(Probe::new());
        let armed = Arc::new(Mutex::new(None));
        let mut first = timer.sleep(ms(2));
        let waker = {
            let (probe, armed, timer) = (Arc::clone(&probe), Arc::clone(&armed), timer.clone());
            waker_on_wake(move || {
                let second = probe.waiting(timer.sleep(ms(3)));
                *armed.lock().unwrap() = Some(second);
            })
        };
        assert!(poll_with(&mut first, &waker).is_pending());
        clock.advance(ms(10));
        clock.advance(us(2_999));
        assert_eq!(probe.wakes(), 0);
        clock.advance(us(1));
        assert_eq!(probe.wakes(), 1);
    });
}

#[test]
fn a_waker_that_advances_its_clock_gets_an_error() {
    on_both_flavors(|_, clock, timer| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut sleep = timer.sleep(ms(2));
        let waker = {
            let (seen, clock) = (Arc::clone(&seen), clock.clone());
            waker_on_wake(move || {
                let refused = [
                    clock.try_advance(ms(1)).unwrap_err(),
                    clock.try_advance_to_next().unwrap_err(),
                ];
                seen.lock().unwrap().extend(refused);
            })
        };
        assert!(poll_with(&mut sleep, &waker).is_pending());
        let advanced = clock.clone();
        within(LIMIT, move || advanced.advance(ms(2)));
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 2);
        for refused in &*seen {
            assert!(refused.is_advancing() && !refused.is_out_of_range());
            let says = refused.to_string();
            assert!(says.contains("not from within a waker"), "{says}");
        }
        // The clock is free again.
        clock.advance(ms(1));
    });
}

#[test]
fn a_clock_is_not_advanced_beyond_what_it_can_count() {
    let clock = ManualClock::new();
    let begin = clock.now();
    let error = clock.try_advance(Duration::MAX).unwrap_err();
    assert!(error.is_out_of_range() && !error.is_advancing());
    assert!(error.to_string().contains("584 years"), "{error}");
    assert_eq!(clock.now(), begin);
    assert_panics_here(&["584 years"], || clock.advance(Duration::MAX));
    // The whole range, plus a nanosecond.
    clock.advance(Duration::from_nanos(u64::MAX));
    assert!(clock.try_advance(Duration::from_nanos(1)).is_err());
    clock.advance(Duration::ZERO);
    assert_eq!(clock.now(), begin + Duration::from_nanos(u64::MAX));
}

#[test]
fn an_advance_by_nothing_fires_what_is_due_now() {
    on_both_flavors(|_, clock, timer| {
        let probe = Probe::new();
        let mut sleep = probe.waiting(timer.sleep(ms(2)));
        clock.advance(Duration::ZERO);
        assert_eq!(probe.wakes(), 0);
        sleep.set_deadline(clock.now());
        // A reset to the past wakes by itself.
        assert_eq!(probe.wakes(), 1);
        clock.advance(Duration::ZERO);
        assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
        assert_eq!(timer.metrics().fired(), 1);
    });
}

#[test]
fn a_timer_has_one_shard_on_a_manual_clock() {
    let runtime = multi_thread(4);
    let clock = ManualClock::new();
    assert_eq!(start(&runtime, &clock).shards(), 1);
    let several = Timer::builder().clock(clock).shards(2);
    let error = several.start_on(runtime.handle()).unwrap_err();
    assert!(error.is_shards(), "{error}");
    assert!(error.to_string().contains("one shard"), "{error}");
}
