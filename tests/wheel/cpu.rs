//! No needless work: counts advances and cascades instead of measuring time.

use waterwheel::wheel::{Resolution, Tick, Ticks, Verdict, Wheel};

use crate::edges::{self, YEAR};
use crate::support::{advance, batch, sleep_until_due};

// netty#1246, netty#9710, pulsar#6414: the next deadline lay in the past, or a delay was rounded to zero,
// and the timer thread span.
#[test]
fn an_idle_wheel_has_no_next_expiration() {
    for resolution in edges::resolutions() {
        for start in edges::starts(resolution) {
            let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
            assert_eq!(
                (wheel.next_expiration(), wheel.quiet_until()),
                (None, Tick::MAX)
            );
            let cancelled = wheel.insert(Tick::new(start).saturating_add(Ticks::new(10)), ());
            let disarmed = wheel.insert(Tick::new(start), ());
            wheel.insert(Tick::ZERO, ());
            assert!(wheel.cancel(cancelled).is_some());
            assert!(wheel.disarm(disarmed));
            assert_eq!(wheel.next_expiration(), Some(Tick::new(start)));
            assert_eq!(advance(&mut wheel, start).len(), 1);
            assert_eq!(
                (wheel.next_expiration(), wheel.quiet_until()),
                (None, Tick::MAX)
            );
        }
    }
}

// netty#1246, netty#9710: after an advance, the next expiration is in the future, unless the wheel says that it
// has a backlog. Then the next advance serves it.
#[test]
fn every_expiration_has_something_to_do() {
    let resolution = Resolution::MILLISECOND;
    let mut wheel = Wheel::new(resolution);
    let delays = edges::delays(resolution);
    for &delay in &delays {
        wheel.insert(Tick::new(delay), ());
        wheel.insert(Tick::new(delay + 500), ());
    }
    let mut left = 2 * delays.len();
    while let Some(next) = wheel.next_expiration() {
        assert!(wheel.has_backlog() || next > wheel.now());
        let cascaded = wheel.cascaded();
        let handed = batch(&mut wheel, next.get(), 1).len();
        assert!(
            handed > 0 || wheel.cascaded() > cascaded,
            "an advance to {next} for nothing"
        );
        left -= handed;
    }
    assert_eq!(left, 0);
}

// pulsar#6414: an owner that sleeps from one expiration to the next wakes once for each dial, not once a tick.
#[test]
fn a_timer_takes_one_advance_for_each_dial_at_most() {
    for resolution in edges::resolutions() {
        let [second, minute, hour, day, all] = edges::revolutions(resolution);
        for start in [
            0,
            1,
            second - 1,
            minute + 1,
            70 * day + 3 * hour + 5 * minute + 1,
        ] {
            for (delay, most) in [(second, 1), (minute, 2), (hour, 3), (day, 4), (all, 6)] {
                for delay in [delay / 2, delay - 1, delay] {
                    let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                    wheel.insert(Tick::new(start + delay.max(1)), ());
                    let (_, advances) = sleep_until_due(&mut wheel);
                    assert!(
                        advances <= most,
                        "{advances} advances for {delay} from {start}"
                    );
                }
            }
        }
    }
}

// The promise of the module: a timer of up to a second never moves, one of up to a minute moves
// at most once, one of up to an hour at most twice, one of up to a day at most three times. Here the wheel is
// advanced far more often than needed.
#[test]
fn a_timer_moves_once_a_dial_at_most() {
    for resolution in edges::resolutions() {
        let [second, minute, hour, day, _] = edges::revolutions(resolution);
        for start in [0, 1, second - 1, second, minute - 1, hour + 1, 64 * day - 1] {
            for (delay, most) in [(second, 0), (minute, 1), (hour, 2), (day, 3)] {
                for delay in [
                    1,
                    delay / 2,
                    delay - second.min(delay - 1),
                    delay - 1,
                    delay,
                ] {
                    let delay = delay.max(1);
                    for step in [delay, delay / 100, delay / 7 + 1] {
                        let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                        wheel.insert(Tick::new(start + delay), ());
                        let mut now = start;
                        while !wheel.is_empty() {
                            now += step.max(1);
                            advance(&mut wheel, now);
                        }
                        let moved = wheel.cascaded();
                        assert!(moved <= most, "{delay} from {start} moved {moved} times");
                    }
                }
            }
        }
    }
}

// Likewise after an idle time over which the hand was moved: half a second is still less than a second away.
#[test]
fn a_timer_armed_after_an_idle_time_is_filed_on_the_finest_dial() {
    let resolution = Resolution::MILLISECOND;
    let [second, minute, hour, ..] = edges::revolutions(resolution);
    for idle in [1_700, 30 * minute, 5 * hour + 1, 3 * YEAR] {
        for (delay, most) in [(second / 2, 0), (second, 0), (minute, 1), (hour, 2)] {
            let mut wheel = Wheel::new(resolution);
            wheel.insert(Tick::new(10 * YEAR), "far");
            wheel.skip_to(Tick::new(idle));
            // As near as the far timer allows.
            assert_eq!(wheel.now().get(), idle.min(wheel.quiet_until().get() - 1));
            let now = wheel.now().get();
            wheel.insert(Tick::new(now + delay), "near");
            while sleep_until_due(&mut wheel).0 != ["near"] {}
            let far = u64::from(now + delay >= 64 * 86_400_000);
            assert!(wheel.cascaded() <= most + far, "{delay} after {idle}");
        }
    }
}

// golang#41699: re-arming earlier and later again and again woke the driver each time. Here `quiet_until` may be
// too early after it, once.
#[test]
fn many_resets_cost_one_needless_advance_at_most() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(900), ());
    for round in 0..1_000 {
        assert!(wheel.reset(key, Tick::new(100 + round % 7)));
        assert!(wheel.reset(key, Tick::new(900 - round % 11)));
    }
    assert!(wheel.reset(key, Tick::new(900)));
    assert_eq!(wheel.next_expiration(), Some(Tick::new(900)));
    assert_eq!(wheel.quiet_until(), Tick::new(100));
    assert!(advance(&mut wheel, 100).is_empty());
    assert_eq!(wheel.quiet_until(), Tick::new(900));
    assert_eq!(wheel.cascaded(), 0);
    assert_eq!(sleep_until_due(&mut wheel), (vec![()], 1));
}

// golang#41699: a timer that is postponed with each packet and never reaches its deadline is filed each time, and
// does not move otherwise.
#[test]
fn a_timer_that_is_always_postponed_never_moves_by_itself() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(900), ());
    for now in (0..100_000).step_by(10) {
        assert!(advance(&mut wheel, now).is_empty());
        assert!(wheel.reset(key, Tick::new(now + 900)));
    }
    assert_eq!(wheel.cascaded(), 0);
}

// Netty replayed a long suspend tick by tick. If the wheel did, this test would not end.
#[test]
fn a_jump_moves_each_timer_once_at_most() {
    for resolution in edges::resolutions() {
        for jump in [
            64 * 86_400_000,
            YEAR,
            100 * YEAR,
            100_000_000 * YEAR,
            u64::MAX / 2,
        ] {
            let mut wheel = Wheel::new(resolution);
            let delays = edges::delays(resolution);
            for &delay in &delays {
                wheel.insert(Tick::new(delay), delay);
            }
            wheel.insert(Tick::new(jump + 1), 0);
            wheel.insert(Tick::MAX, 0);
            let timers = wheel.len() as u64;
            let handed = advance(&mut wheel, jump);
            assert_eq!(
                handed.len(),
                delays.iter().filter(|&&delay| delay <= jump).count()
            );
            assert!(wheel.cascaded() <= timers, "{} moves", wheel.cascaded());
            wheel.check_invariants();
            assert!(!advance(&mut wheel, jump + 1).is_empty());
            assert!(wheel.cascaded() <= 2 * timers, "{} moves", wheel.cascaded());
        }
    }
}

// Netty: an idle century, with one timer after it, is one jump, with no advance in between.
#[test]
fn an_idle_century_is_one_jump() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let mut asked = 0;
    for century in 1..=1_000 {
        wheel.insert(Tick::new(century * 100 * YEAR), ());
        let now = Tick::new(century * 100 * YEAR);
        let judge = |_, _, _: &mut ()| {
            asked += 1;
            Verdict::Due
        };
        assert_eq!(wheel.advance(now, 1, judge, |_, ()| ()).expired, 1);
    }
    assert_eq!((asked, wheel.cascaded()), (1_000, 1_000));
}

// There is one list for what lies beyond the last dial. The wheel looks at it once in 64 days, and not at each
// revolution of the other dials.
#[test]
fn the_wheel_looks_beyond_the_last_dial_once_a_revolution() {
    let resolution = Resolution::MILLISECOND;
    let [.., day, all] = edges::revolutions(resolution);
    let mut wheel = Wheel::new(resolution);
    wheel.insert(Tick::new(10 * all + 5), "far");
    for half_days in 1..20 * 64 {
        assert!(advance(&mut wheel, half_days * day / 2).is_empty());
        assert!(wheel.cascaded() <= half_days * day / 2 / all);
    }
    assert_eq!(advance(&mut wheel, 10 * all + 5), ["far"]);
}

// A tick that is too early would cost the owner a needless advance at each insertion.
#[test]
fn an_insertion_asks_for_no_advance_before_its_slot_comes_up() {
    for resolution in edges::resolutions() {
        for delay in edges::delays(resolution) {
            let mut wheel = Wheel::new(resolution);
            wheel.insert(Tick::new(delay), ());
            assert_eq!(
                Some(wheel.quiet_until()),
                wheel.next_expiration(),
                "{delay}"
            );
        }
    }
}
