//! The iterator: the timers that it returns, their order, and the timers that it leaves in the wheel.

use std::mem;
use std::panic::{self, AssertUnwindSafe};

use waterwheel::wheel::{Resolution, Tick, Ticks, Verdict, Wheel};

use crate::edges::{self, YEAR};
use crate::support::advance;

/// Ten timers at each of three ticks, on the first dial, numbered in order.
fn thirty() -> Wheel<u64> {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for number in 0..30 {
        wheel.insert(Tick::new(10 + number / 10), number);
    }
    wheel
}

fn expire<T>(wheel: &mut Wheel<T>, now: u64, budget: usize) -> Vec<T> {
    let items = wheel.expire(Tick::new(now), budget);
    items.map(|(_, _, payload)| payload).collect()
}

#[test]
fn an_item_has_the_timers_key_deadline_and_payload() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(70_123), "timer");
    let items: Vec<_> = wheel.expire(Tick::new(80_000), 5).collect();
    assert_eq!(items, [(key, Tick::new(70_123), "timer")]);
    assert_eq!(wheel.cancel(key), None);
    assert_eq!(
        (wheel.now(), wheel.next_expiration()),
        (Tick::new(80_000), None)
    );
}

#[test]
fn what_is_not_taken_stays_in_the_wheel() {
    for taken in 0..=30 {
        let mut wheel = thirty();
        let now = Tick::new(20);
        let mut items = wheel.expire(now, usize::MAX);
        let mut seen: Vec<u64> = items.by_ref().take(taken).map(|item| item.2).collect();
        assert_eq!(items.size_hint(), (0, Some(30 - taken)));
        drop(items);
        wheel.check_invariants();
        assert_eq!(wheel.len(), 30 - taken);
        let is_more_due = wheel.next_expiration().is_some_and(|next| next <= now);
        assert_eq!(is_more_due, taken < 30);
        match taken % 3 {
            0 => seen.extend(expire(&mut wheel, 20, usize::MAX)),
            1 => {
                let due = |_, number| seen.push(number);
                wheel.advance_in_order(now, usize::MAX, |_, _, _| Verdict::Due, due);
            }
            _ => seen.extend(wheel.drain()),
        }
        assert_eq!(seen, Vec::from_iter(0..30));
    }
}

#[test]
fn a_forgotten_iterator_loses_nothing() {
    for taken in 0..=31 {
        let mut wheel = thirty();
        let mut items = wheel.expire(Tick::new(20), usize::MAX);
        for number in 0..taken.min(30) {
            assert_eq!(items.next().map(|item| item.2), Some(number));
        }
        if taken > 30 {
            assert!(items.next().is_none());
        }
        mem::forget(items);
        wheel.check_invariants();
        assert_eq!(wheel.len() as u64, 30 - taken.min(30));
        // One timer is due before all others, and one after.
        let hand = wheel.now().get();
        wheel.insert(Tick::new(hand + 1), 100);
        wheel.insert(Tick::new(90_000), 101);
        wheel.check_invariants();
        let mut rest = advance(&mut wheel, 90_000);
        rest.sort_unstable();
        assert!(rest.into_iter().eq((taken..30).chain([100, 101])));
    }
}

#[test]
fn time_does_not_go_back_after_a_forgotten_iterator() {
    let mut wheel = thirty();
    let mut items = wheel.expire(Tick::new(20), usize::MAX);
    assert_eq!(items.by_ref().take(25).count(), 25);
    mem::forget(items);
    assert_eq!(expire(&mut wheel, 10, usize::MAX), Vec::from_iter(25..30));
    assert_eq!(wheel.now(), Tick::new(12));
}

// The hand stops one tick before the slot that cascades, where no expiration was expected.
#[test]
fn a_backlog_of_cascades_outlives_a_forgotten_iterator() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    wheel.insert(Tick::new(5_500), ());
    let mut items = wheel.expire(Tick::new(6_000), 0);
    assert!(items.next().is_none());
    mem::forget(items);
    assert_eq!(wheel.now(), Tick::new(4_999));
    assert_eq!(wheel.quiet_until(), Tick::new(4_999));
    assert_eq!(wheel.next_expiration(), Some(Tick::new(4_999)));
    wheel.check_invariants();
    assert_eq!(expire(&mut wheel, 5_500, 1).len(), 1);
}

#[test]
fn a_budget_of_nothing_takes_nothing_and_shows_a_backlog() {
    let mut wheel = thirty();
    for now in [9, 10, 11, 2_000, 100_000] {
        assert!(expire(&mut wheel, now, 0).is_empty());
        assert_eq!(wheel.has_backlog(), now > 9);
        assert_eq!(wheel.now(), Tick::new(now.min(10)));
        wheel.check_invariants();
    }
    assert_eq!(expire(&mut wheel, 100_000, 30).len(), 30);
    assert_eq!(
        (wheel.has_backlog(), wheel.now()),
        (false, Tick::new(100_000))
    );
}

#[test]
fn a_backlog_is_shown_exactly_if_more_is_due() {
    for budget in 1..=31 {
        let mut wheel = thirty();
        let more = wheel.insert(Tick::new(21), 30);
        assert_eq!(expire(&mut wheel, 20, budget).len(), budget.min(30));
        assert_eq!(wheel.has_backlog(), budget < 30);
        assert_eq!(wheel.now() == Tick::new(20), budget >= 30);
        assert!(wheel.is_pending(more));
    }
}

#[test]
fn cascades_are_bounded_by_the_budget() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for number in 0..1_000 {
        wheel.insert(Tick::new(60_500), number);
    }
    let (mut seen, mut calls) = (Vec::new(), 0);
    while !wheel.is_empty() {
        let cascaded = wheel.cascaded();
        let items = expire(&mut wheel, 61_000, 10);
        assert!(items.len() <= 10 && wheel.cascaded() - cascaded <= 80);
        seen.extend(items);
        wheel.check_invariants();
        calls += 1;
    }
    assert_eq!(seen, Vec::from_iter(0..1_000));
    // 2000 cascades, from the minutes and from the seconds, and then the items.
    assert!(calls <= 25 + 1 + 100, "{calls} calls");
}

/// Its drop unwinds like a panic, without the message.
struct Bomb(u64);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic::resume_unwind(Box::new(()));
    }
}

#[test]
fn a_destructor_that_panics_takes_no_other_item_along() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for number in 0..10 {
        wheel.insert(Tick::new(10 + number / 3 * 30_000), Bomb(number));
    }
    let now = Tick::new(100_000);
    for number in 0..10 {
        let mut seen = None;
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            for (_, _, bomb) in wheel.expire(now, usize::MAX) {
                assert_eq!(seen.replace(bomb.0), None, "it goes on");
            }
        }));
        assert!(outcome.is_err());
        assert_eq!((seen, wheel.len() as u64), (Some(number), 9 - number));
        let is_more_due = wheel.next_expiration().is_some_and(|next| next <= now);
        assert_eq!(is_more_due, number < 9);
        wheel.check_invariants();
    }
    assert!(wheel.expire(now, 1).next().is_none());
    assert_eq!((wheel.now(), wheel.quiet_until()), (now, Tick::MAX));
}

#[test]
fn payloads_can_go_back_after_each_batch() {
    let mut wheel = thirty();
    let mut served = 0;
    for now in (10..2_000).step_by(7) {
        loop {
            let batch: Vec<_> = wheel.expire(Tick::new(now), 4).collect();
            assert!(batch.len() <= 4);
            for (_, deadline, number) in batch {
                let next = deadline.saturating_add(Ticks::new(50));
                wheel.insert(next, number);
                served += 1;
            }
            wheel.check_invariants();
            if !wheel.has_backlog() {
                break;
            }
        }
        assert!(wheel.next_expiration() > Some(Tick::new(now)));
    }
    // Each fires 40 times, at 10, 60 … 1960 and so on; the last hand has passed all of them.
    assert_eq!((served, wheel.len()), (30 * 40, 30));
}

#[test]
fn months_of_cascades_come_up_in_order() {
    for resolution in edges::resolutions() {
        let second = edges::second(resolution);
        let mut wheel = Wheel::starting_at(resolution, Tick::new(12_345));
        let delays = edges::delays(resolution).into_iter().rev();
        let delays: Vec<u64> = delays.chain([500 * 86_400 * second]).collect();
        let mut expected = Vec::new();
        for copy in 0..3 {
            for &delay in &delays {
                wheel.insert(Tick::new(12_345 + delay), (delay, copy));
                expected.push((delay, copy));
            }
        }
        expected.sort_unstable();
        let mut seen = Vec::new();
        while !wheel.is_empty() {
            // A few at a time, and from far away.
            let items = wheel.expire(Tick::new(12_345 + 600 * 86_400 * second), 5);
            for (_, deadline, (delay, copy)) in items.take(4) {
                assert_eq!(deadline.get(), 12_345 + delay);
                seen.push((delay, copy));
            }
            wheel.check_invariants();
        }
        assert_eq!(seen, expected);
    }
}

#[test]
fn with_nothing_due_the_hand_moves_to_now() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    wheel.insert(Tick::new(YEAR), ());
    for now in [5, 999, 1_000, 3_600_000, YEAR - 1] {
        assert!(wheel.expire(Tick::new(now), usize::MAX).next().is_none());
        assert_eq!(wheel.now(), Tick::new(now));
        wheel.check_invariants();
    }
    // Time does not go backwards.
    assert!(wheel.expire(Tick::new(3), usize::MAX).next().is_none());
    assert_eq!(wheel.now(), Tick::new(YEAR - 1));
    assert_eq!(wheel.expire(Tick::new(YEAR), usize::MAX).count(), 1);
}

#[test]
fn an_insert_in_the_past_is_due_at_the_hand() {
    let mut wheel = thirty();
    assert_eq!(expire(&mut wheel, 11, 15).len(), 15);
    wheel.insert(Tick::new(3), 100);
    // Given an old time, the wheel hands out what is due by its own.
    let rest = expire(&mut wheel, 3, usize::MAX);
    assert_eq!(rest, [15, 16, 17, 18, 19, 100]);
    assert_eq!((wheel.now(), wheel.len()), (Tick::new(11), 10));
    assert_eq!(expire(&mut wheel, 12, usize::MAX).len(), 10);
    wheel.insert(Tick::new(3), 101);
    assert_eq!(expire(&mut wheel, 0, usize::MAX), [101]);
    assert_eq!(wheel.now(), Tick::new(12));
}
