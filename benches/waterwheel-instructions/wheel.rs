//! The data structure by itself, without clock or lock.

use std::hint::black_box;

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};

use crate::Counter;

/// The number of timers in a wheel, and of operations in a round. It equals the number of ticks in
/// a second, so that timers spread over a second have a tick each.
const TIMERS: usize = 1000;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

pub(crate) fn count_all(counter: &Counter) {
    count_keys(counter);
    count_advance(counter);
    count_next_expiration(counter);
}

/// Counts operations on one timer, among others of up to a minute.
fn count_keys(counter: &Counter) {
    counter.count(
        "wheel_insert",
        TIMERS,
        || {
            let (mut wheel, keys) = filled(2 * TIMERS, MINUTE);
            // Reserved, so that the slab need not grow.
            for key in &keys[..TIMERS] {
                wheel.cancel(*key);
            }
            wheel
        },
        |wheel| {
            for deadline in deadlines(TIMERS, MINUTE) {
                black_box(wheel.insert(deadline, 0));
            }
        },
    );
    counter.count(
        "wheel_cancel",
        TIMERS,
        || filled(TIMERS, MINUTE),
        |(wheel, keys)| {
            for key in keys {
                black_box(wheel.cancel(*key));
            }
        },
    );
    counter.count(
        "wheel_reset",
        TIMERS,
        || filled(TIMERS, MINUTE),
        |(wheel, keys)| {
            for (key, deadline) in keys.iter().rev().zip(deadlines(TIMERS, MINUTE)) {
                assert!(wheel.reset(*key, deadline));
            }
        },
    );
}

/// The cost of moving the hand: first per call, then per timer.
fn count_advance(counter: &Counter) {
    counter.count(
        "wheel_advance_idle",
        TIMERS,
        || {
            let mut wheel = Wheel::new(Resolution::MILLISECOND);
            wheel.insert(Tick::new(HOUR), 0);
            wheel
        },
        |wheel| assert_eq!(advance_by(1, SECOND, wheel), 0),
    );
    counter.count(
        "wheel_advance_one",
        TIMERS,
        || filled(TIMERS, SECOND).0,
        |wheel| assert_eq!(advance_by(1, SECOND, wheel), TIMERS),
    );
    counter.count(
        "wheel_advance_herd",
        TIMERS,
        || filled(TIMERS, SECOND).0,
        |wheel| assert_eq!(advance_by(SECOND, SECOND, wheel), TIMERS),
    );
    counter.count(
        "wheel_advance_in_order_herd",
        TIMERS,
        || filled(TIMERS, SECOND).0,
        |wheel| assert_eq!(advance_in_order(wheel, Tick::new(SECOND)), TIMERS),
    );
    counter.count(
        "wheel_expire_herd",
        TIMERS,
        || filled(TIMERS, SECOND).0,
        |wheel| assert_eq!(expire(wheel, Tick::new(SECOND)), TIMERS),
    );
    // Each is filed again, on the first dial, as its second begins.
    counter.count(
        "wheel_advance_cascade",
        TIMERS,
        || filled(TIMERS, MINUTE).0,
        |wheel| assert_eq!(advance_by(SECOND, MINUTE, wheel), TIMERS),
    );
}

/// Each call is on another wheel, since the cost depends on the position of the next timer.
fn count_next_expiration(counter: &Counter) {
    const WHEELS: usize = 64;
    counter.count(
        "wheel_next_expiration",
        WHEELS,
        || {
            let at = |i| {
                let (mut wheel, _) = filled(TIMERS, HOUR);
                advance(&mut wheel, Tick::new(i * HOUR / WHEELS as u64));
                wheel
            };
            (0..WHEELS as u64).map(at).collect::<Vec<_>>()
        },
        |wheels| {
            for wheel in wheels {
                black_box(wheel.next_expiration());
            }
        },
    );
}

/// This many deadlines, spread over this many ticks.
fn deadlines(timers: usize, spread: u64) -> impl Iterator<Item = Tick> {
    // Steps by a prime that divides none of our spreads: no tick repeats before each has come once.
    (0..timers as u64).map(move |i| Tick::new(1 + i * 7919 % spread))
}

fn filled(timers: usize, spread: u64) -> (Wheel<u64>, Vec<Key>) {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let keys = deadlines(timers, spread).map(|deadline| wheel.insert(deadline, 0));
    let keys = keys.collect();
    (wheel, keys)
}

/// Returns the number of timers that were due.
fn advance_by(step: u64, end: u64, wheel: &mut Wheel<u64>) -> usize {
    let hands = (step..=end).step_by(step as usize);
    hands.map(|now| advance(wheel, Tick::new(now))).sum()
}

fn advance(wheel: &mut Wheel<u64>, now: Tick) -> usize {
    let due = |deadline, payload| {
        black_box((deadline, payload));
    };
    let progress = wheel.advance(now, usize::MAX, |_, _, _| Verdict::Due, due);
    progress.expired
}

fn advance_in_order(wheel: &mut Wheel<u64>, now: Tick) -> usize {
    let due = |deadline, payload| {
        black_box((deadline, payload));
    };
    let judge = |_, _, _: &mut u64| Verdict::Due;
    wheel.advance_in_order(now, usize::MAX, judge, due).expired
}

fn expire(wheel: &mut Wheel<u64>, now: Tick) -> usize {
    let mut expired = 0;
    for (_, deadline, payload) in wheel.expire(now, usize::MAX) {
        black_box((deadline, payload));
        expired += 1;
    }
    expired
}
