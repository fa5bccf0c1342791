//! The peek shows the timer that the iterator returns next.

use waterwheel::wheel::{Resolution, Tick, Ticks, Verdict, Wheel};

use crate::edges::{self, YEAR};

#[test]
fn peek_shows_what_expire_takes_next() {
    for resolution in edges::resolutions() {
        let mut wheel = Wheel::starting_at(resolution, Tick::new(777));
        assert_eq!(wheel.peek(), None);
        for round in 0..4 {
            for delay in edges::delays(resolution).into_iter().rev() {
                wheel.insert(Tick::new(777 + delay), (delay, round));
            }
            wheel.skip_to(Tick::new(777 + round * edges::second(resolution) / 3));
        }
        wheel.insert(Tick::MAX, (0, 0));
        wheel.insert(Tick::MAX, (0, 1));
        while let Some((key, deadline, &payload)) = wheel.peek() {
            let due_at = deadline.max(wheel.now());
            let before = due_at.saturating_sub(Ticks::new(1)).max(wheel.now());
            if before < due_at {
                assert!(wheel.expire(before, usize::MAX).next().is_none());
                assert_eq!(wheel.peek(), Some((key, deadline, &payload)));
            }
            let taken = wheel.expire(due_at, usize::MAX).next();
            assert_eq!(taken, Some((key, deadline, payload)));
        }
        assert!(wheel.is_empty());
    }
}

// `advance` leaves its backlog in the order in which it came up, not in that of the deadlines.
#[test]
fn peek_and_expire_agree_on_what_an_advance_left_over() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let leave = |wheel: &mut Wheel<u64>, now| {
        wheel.advance(Tick::new(now), 0, |_, _, _| Verdict::Due, |_, _| ());
    };
    // In the backlog, among the fresh ones, and on the seconds, which the budget did not reach.
    for deadline in [10, 11, 5_900, 5_100] {
        wheel.insert(Tick::new(deadline), deadline);
    }
    leave(&mut wheel, 10);
    leave(&mut wheel, 11);
    leave(&mut wheel, 6_000);
    wheel.insert(Tick::new(1), 1);
    for expected in [10, 11, 1, 5_900, 5_100] {
        assert_eq!(wheel.peek().map(|item| *item.2), Some(expected));
        assert_eq!(
            wheel.expire(Tick::new(6_000), 1).next().map(|item| item.2),
            Some(expected)
        );
    }
}

// The first lies on the minutes, the second on the first dial.
#[test]
fn peek_keeps_equal_deadlines_in_order_over_the_dials() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let deadline = Tick::new(120_500);
    let first = wheel.insert(deadline, 1);
    wheel.skip_to(Tick::new(119_999));
    let second = wheel.insert(Tick::new(120_500), 2);
    assert_eq!(wheel.peek(), Some((first, deadline, &1)));
    assert_eq!(wheel.cancel(first), Some(1));
    assert_eq!(wheel.peek(), Some((second, deadline, &2)));
    // Earlier than both, but on a higher dial.
    let third = wheel.insert(Tick::new(120_499), 3);
    assert_eq!(wheel.peek(), Some((third, Tick::new(120_499), &3)));
}

#[test]
fn peek_does_not_show_a_disarmed_timer() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let [near, far] = [10, 90_000].map(|tick| wheel.insert(Tick::new(tick), tick));
    assert!(wheel.disarm(near));
    assert_eq!(wheel.peek().map(|item| item.0), Some(far));
    assert!(wheel.disarm(far));
    assert_eq!(wheel.peek(), None);
    assert!(wheel.reset(near, Tick::new(YEAR)));
    assert_eq!(wheel.peek(), Some((near, Tick::new(YEAR), &10)));
}
