//! The order in which an advance calls the wakers.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use waterwheel::{Duration, ManualClock, Timer};

use super::{on_both_flavors, start};
use crate::support::{Dice, ms, multi_thread, poll_with, us, waiting_with, waker_on_wake};

#[test]
fn a_hundred_thousand_are_woken_in_order_by_an_advance() {
    on_both_flavors(|_, clock, timer| {
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut dice = Dice(7);
        let mut sleeps = Vec::new();
        let mut expected = Vec::new();
        for number in 0..100_000_u32 {
            let delay = ms(1 + dice.roll(200_000));
            let woken = Arc::clone(&woken);
            let waker = waker_on_wake(move || woken.lock().unwrap().push(number));
            let sleep = waiting_with(timer.sleep(delay), waker.clone());
            expected.push((delay, number));
            sleeps.push(sleep);
        }
        clock.advance(ms(200_001));
        expected.sort();
        let expected = expected.iter().map(|&(_, number)| number);
        assert!(woken.lock().unwrap().iter().copied().eq(expected));
    });
}

#[test]
fn two_timers_on_a_clock_are_woken_in_one_order() {
    let runtime = multi_thread(2);
    let clock = ManualClock::new();
    let coarse = start(&runtime, &clock);
    clock.advance(us(300));
    let fine = Timer::builder()
        .clock(clock.clone())
        .resolution(us(100))
        .start_on(runtime.handle())
        .unwrap();
    let begin = clock.now();
    let woken = Arc::new(Mutex::new(Vec::new()));
    let mut sleeps = Vec::new();
    for millis in [9, 2, 4_000, 5, 61_000, 3] {
        for (timer, name) in [(&coarse, "coarse"), (&fine, "fine")] {
            let log = Arc::clone(&woken);
            let waker = waker_on_wake(move || log.lock().unwrap().push((millis, name)));
            let mut sleep = timer.sleep_until(begin + ms(millis));
            assert_eq!(poll_with(&mut sleep, &waker), Poll::Pending);
            sleeps.push(sleep);
        }
    }
    clock.advance(Duration::from_secs(100));
    let expected = [2, 3, 5, 9, 4_000, 61_000].map(|millis| {
        // The coarse one's next tick is 700 µs later.
        [(millis, "fine"), (millis, "coarse")]
    });
    assert_eq!(*woken.lock().unwrap(), expected.as_flattened());
}

#[test]
fn a_waker_that_panics_keeps_none_from_being_called() {
    on_both_flavors(|_, clock, timer| {
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut sleeps = Vec::new();
        for number in 0..4 {
            let woken = Arc::clone(&woken);
            let waker = waker_on_wake(move || {
                woken.lock().unwrap().push(number);
                if number == 1 {
                    // Unlike `panic!`, prints nothing.
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
            });
            let mut sleep = timer.sleep(ms(number));
            if number > 0 {
                assert!(poll_with(&mut sleep, &waker).is_pending());
            }
            sleeps.push(sleep);
        }
        clock.advance(ms(5));
        assert_eq!(
            *woken
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
            [1, 2, 3]
        );
    });
}
