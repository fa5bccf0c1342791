//! Nothing comes up before its deadline.

use waterwheel::wheel::{Resolution, Tick, Ticks, Verdict, Wheel};

use crate::edges::{self, YEAR};
use crate::support::advance;

// folly c53bda788, akka-core#1016, netty#1959: a slot held timers of this revolution and of the next, and both
// were drained.
#[test]
fn a_timer_of_the_next_revolution_does_not_come_up_in_this_one() {
    for resolution in edges::resolutions() {
        for start in edges::starts(resolution) {
            for delay in edges::delays(resolution) {
                let Some(deadline) = start.checked_add(delay) else {
                    continue;
                };
                let others = [1, delay % edges::second(resolution), delay / 2, delay - 1];
                for other in others
                    .into_iter()
                    .filter(|other| (1..delay).contains(other))
                {
                    let case = format!("{delay} from {start}, after {other}, at {resolution:?}");
                    let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                    wheel.insert(Tick::new(start + other), "other");
                    wheel.insert(Tick::new(deadline), "timer");
                    assert!(advance(&mut wheel, start + other - 1).is_empty(), "{case}");
                    assert_eq!(advance(&mut wheel, start + other), ["other"], "{case}");
                    assert!(advance(&mut wheel, deadline - 1).is_empty(), "{case}");
                    assert_eq!(advance(&mut wheel, deadline), ["timer"], "{case}");
                }
            }
        }
    }
}

// folly c53bda788: as above, when the hand stands anywhere in its second, minute, hour and day.
#[test]
fn a_revolution_of_a_dial_from_anywhere_is_a_whole_one() {
    let resolution = Resolution::MILLISECOND;
    let [second, minute, hour, day, _] = edges::revolutions(resolution);
    for start in (0..2 * day).step_by(7_919_993).chain(0..1_100) {
        for delay in [second, minute, hour, day, 64 * day] {
            let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
            wheel.insert(Tick::new(start + delay), ());
            assert!(
                advance(&mut wheel, start + delay - 1).is_empty(),
                "{delay} from {start}"
            );
            assert_eq!(
                advance(&mut wheel, start + delay).len(),
                1,
                "{delay} from {start}"
            );
        }
    }
}

// folly 09a84b282, libuv#4245: a timer that was armed again as it fired, into the slot that was being drained or
// with no delay, fired again in the same drain, and so on forever.
#[test]
fn a_timer_put_back_into_the_slot_being_served_waits() {
    let resolution = Resolution::MILLISECOND;
    let [second, minute, ..] = edges::revolutions(resolution);
    // Start from slot 500 of the first dial, in which both deadlines belong.
    for later in [second, minute] {
        let mut wheel = Wheel::new(resolution);
        wheel.insert(Tick::new(500), ());
        for now in [500, 500 + later, 500 + 2 * later] {
            let mut asked = 0;
            let judge = |_, deadline, _: &mut ()| {
                assert_eq!(deadline, Tick::new(now));
                asked += 1;
                assert_eq!(asked, 1, "it comes up again and again");
                Verdict::Postpone(Tick::new(now + later))
            };
            let not_due = |_, ()| panic!("it has been put back");
            let progress = wheel.advance(Tick::new(now), usize::MAX, judge, not_due);
            assert_eq!((asked, progress.expired, progress.postponed), (1, 0, 1));
            assert!(!progress.backlog);
            assert!(advance(&mut wheel, now + later - 1).is_empty());
            wheel.check_invariants();
        }
    }
}

// folly 09a84b282, libuv#4245: with no delay, the timer is due at once, and is handed out once.
#[test]
fn a_timer_that_is_put_back_with_no_delay_comes_up_once() {
    for back in [0, 1, 499, 500] {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        wheel.insert(Tick::new(500), ());
        let (mut asked, mut handed) = (0, 0);
        let judge = |_, _, _: &mut ()| {
            asked += 1;
            assert_eq!(asked, 1, "it comes up again and again");
            Verdict::Postpone(Tick::new(back))
        };
        let progress = wheel.advance(Tick::new(500), usize::MAX, judge, |_, ()| handed += 1);
        assert_eq!((asked, handed), (1, 1));
        assert_eq!((progress.expired, progress.postponed), (1, 0));
        assert!(wheel.is_empty());
    }
}

// akka-core#1547: the driver overslept. A timer that was added just before it caught up was filed by the old hand,
// and drained as if it were older.
#[test]
fn a_timer_added_just_before_the_hand_catches_up_is_not_early() {
    for resolution in edges::resolutions() {
        for overslept in edges::delays(resolution) {
            for delay in edges::delays(resolution) {
                let mut wheel = Wheel::new(resolution);
                wheel.insert(Tick::new(1), "old");
                wheel.insert(Tick::new(overslept + delay), "new");
                assert_eq!(advance(&mut wheel, overslept), ["old"]);
                assert!(advance(&mut wheel, overslept + delay - 1).is_empty());
                assert_eq!(advance(&mut wheel, overslept + delay), ["new"]);
            }
        }
    }
}

// Linux, "timers: Prevent base->clk from moving backward": an insert that was due already moved the clock back, and
// what was filed afterwards came up at the wrong time.
#[test]
fn an_insert_that_is_due_already_does_not_move_the_hand_back() {
    for resolution in edges::resolutions() {
        let start = 3 * edges::revolutions(resolution)[4];
        for ago in edges::delays(resolution).into_iter().chain([0, 1, start]) {
            let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
            wheel.insert(Tick::new(start - ago), "past");
            assert_eq!(wheel.now(), Tick::new(start));
            wheel.skip_to(Tick::new(start - ago));
            assert_eq!(wheel.now(), Tick::new(start));
            wheel.insert(Tick::new(start + 10), "future");
            wheel.check_invariants();
            // Given an old time, the wheel hands out what is due by its own.
            assert_eq!(advance(&mut wheel, start - ago), ["past"]);
            assert_eq!(wheel.now(), Tick::new(start));
            assert!(advance(&mut wheel, start + 9).is_empty());
            assert_eq!(advance(&mut wheel, start + 10), ["future"]);
        }
    }
}

// netty#7760, JDK-6725789: a huge delay wrapped into the past and was due at once.
#[test]
fn a_huge_delay_is_not_due_at_once() {
    for resolution in edges::resolutions() {
        for start in edges::starts(resolution) {
            let now = Tick::new(start);
            let mut wheel = Wheel::starting_at(resolution, now);
            for delay in [u64::MAX, u64::MAX - 1, 1 << 63, i64::MAX as u64] {
                wheel.insert(now.saturating_add(Ticks::new(delay)), delay);
            }
            wheel.insert(Tick::MAX, 0);
            wheel.check_invariants();
            let last = wheel
                .iter()
                .filter(|&(_, deadline, _)| deadline == Tick::MAX)
                .count();
            assert!(last >= 2);
            let first = wheel.iter().map(|(_, deadline, _)| deadline.get()).min();
            let first = first.expect("some are pending");
            if first > start {
                // In small steps at first, then all the way.
                for later in [1, 1_000, YEAR, 100 * YEAR, u64::MAX] {
                    let later = start.saturating_add(later).min(first - 1);
                    assert!(
                        advance(&mut wheel, later).is_empty(),
                        "{later} from {start}"
                    );
                }
            }
            advance(&mut wheel, u64::MAX - 1);
            if start < u64::MAX {
                assert_eq!(wheel.len(), last);
            }
            advance(&mut wheel, u64::MAX);
            assert!(wheel.is_empty());
        }
    }
}

// JDK-6725789: the end of time is a time like any other; arithmetic near it must not wrap.
#[test]
fn a_wheel_works_until_the_last_tick() {
    for resolution in edges::resolutions() {
        for start in [0, u64::MAX - 1, u64::MAX] {
            let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
            wheel.insert(Tick::MAX, "last");
            assert_eq!(advance(&mut wheel, u64::MAX), ["last"]);
            assert_eq!(wheel.next_expiration(), None);
            let key = wheel.insert(Tick::MAX, "after the last");
            assert_eq!(wheel.next_expiration(), Some(Tick::MAX));
            assert_eq!(wheel.cancel(key), Some("after the last"));
            assert!(advance(&mut wheel, u64::MAX).is_empty());
            wheel.check_invariants();
        }
    }
}

// Moving the hand over empty time must not make a timer due, and must not pass a slot that holds one.
#[test]
fn skipping_never_passes_a_timer() {
    for resolution in edges::resolutions() {
        for delay in edges::delays(resolution) {
            let mut wheel = Wheel::new(resolution);
            wheel.insert(Tick::new(delay), ());
            for by in [0, 1, delay - 1, delay, delay + 1, 100 * delay, u64::MAX] {
                wheel.skip_to(Tick::new(by));
                assert!(wheel.now() < Tick::new(delay));
                wheel.check_invariants();
            }
            assert!(advance(&mut wheel, delay - 1).is_empty());
            assert_eq!(advance(&mut wheel, delay).len(), 1);
        }
    }
}
