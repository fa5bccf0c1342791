//! No timer comes up later than the first advance to its deadline, and an owner that sleeps until the next
//! expiration is in time.

use waterwheel::wheel::{Resolution, Tick, Wheel};

use crate::edges::{self, YEAR};
use crate::support::{advance, sleep_until_due};

// caffeine 7cc9f1f41: a timer lay in the slot of the current tick, one whole revolution ahead. The search began
// behind that slot and reported it a revolution too late, or not at all.
#[test]
fn a_timer_in_the_hands_own_slot_is_one_revolution_away() {
    for resolution in edges::resolutions() {
        let [second, minute, hour, day, all] = edges::revolutions(resolution);
        let units = [(second, 1), (minute, second), (hour, minute), (day, hour)];
        for start in [0, 7 * day + 5 * hour + 3 * minute + 2 * second] {
            for (whole, unit) in units {
                let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                // A whole revolution away, then the slot before it, then the hand's next slot.
                for delay in [whole, (whole - unit).max(1), unit] {
                    wheel.insert(Tick::new(start + delay), ());
                    let (_, unit) = *units
                        .iter()
                        .find(|&&(whole, _)| delay <= whole)
                        .expect("a day at most");
                    let comes_up = (start + delay) / unit * unit;
                    assert_eq!(
                        wheel.next_expiration(),
                        Some(Tick::new(comes_up)),
                        "{delay}"
                    );
                }
                wheel.check_invariants();
            }
            let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
            wheel.insert(Tick::new(start + all), ());
            let today = start / day * day;
            assert_eq!(wheel.next_expiration(), Some(Tick::new(today + all)));
        }
    }
}

// caffeine 7cc9f1f41: a timer that cascades may be due before all that the first dial holds.
#[test]
fn a_cascade_may_reveal_an_earlier_timer() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    wheel.insert(Tick::new(61_010), "from the minutes");
    wheel.insert(Tick::new(60_020), "from the seconds");
    assert!(advance(&mut wheel, 59_500).is_empty());
    wheel.insert(Tick::new(60_400), "near");
    // The earliest timer is due at 60 020; the second that holds it comes up before.
    assert_eq!(wheel.next_expiration(), Some(Tick::new(60_000)));
    assert!(advance(&mut wheel, 60_000).is_empty());
    assert_eq!(wheel.next_expiration(), Some(Tick::new(60_020)));
    assert_eq!(sleep_until_due(&mut wheel).0, ["from the seconds"]);
    assert_eq!(sleep_until_due(&mut wheel).0, ["near"]);
    assert_eq!(sleep_until_due(&mut wheel).0, ["from the minutes"]);
    assert_eq!(wheel.now(), Tick::new(61_010));
}

// folly ae8276598: two computations of "the next tick" differed at a boundary, and a timer there waited a full
// revolution.
#[test]
fn a_sleep_to_the_next_expiration_is_in_time_at_each_boundary() {
    for resolution in edges::resolutions() {
        for start in edges::starts(resolution) {
            for delay in edges::delays(resolution).into_iter().chain([1]) {
                let Some(deadline) = start.checked_add(delay) else {
                    continue;
                };
                let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                wheel.insert(Tick::new(deadline), ());
                let (handed, _) = sleep_until_due(&mut wheel);
                assert_eq!(handed.len(), 1);
                assert_eq!(wheel.now(), Tick::new(deadline), "{delay} from {start}");
            }
        }
    }
}

// folly ae8276598: the same for a wheel that was advanced to a boundary, or to just before or after it, and for one
// whose hand was moved over empty time.
#[test]
fn a_timer_armed_at_a_boundary_is_in_time() {
    for resolution in edges::resolutions() {
        for at in edges::delays(resolution) {
            for delay in edges::delays(resolution).into_iter().chain([1, 2]) {
                let mut turned = Wheel::new(resolution);
                assert!(advance(&mut turned, at).is_empty());
                let mut skipped = Wheel::new(resolution);
                skipped.skip_to(Tick::new(at));
                for mut wheel in [turned, skipped] {
                    assert_eq!(wheel.now(), Tick::new(at));
                    wheel.insert(Tick::new(at + delay), ());
                    sleep_until_due(&mut wheel);
                    assert_eq!(wheel.now(), Tick::new(at + delay), "{delay} from {at}");
                }
            }
        }
    }
}

// tokio#6683, storm#4830, as far as they concern a wheel: a timer that is earlier than all others shows at once, and
// so does one that was moved there.
#[test]
fn an_earlier_timer_shows_in_the_next_expiration_at_once() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(YEAR), ());
    for deadline in [YEAR / 2, 3_600_000, 60_000, 59_000, 1_000, 999, 1] {
        wheel.insert(Tick::new(deadline), ());
        assert!(wheel.next_expiration() <= Some(Tick::new(deadline)));
        assert!(wheel.quiet_until() <= Tick::new(deadline));
    }
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    assert_eq!(
        wheel.insert(Tick::new(YEAR), ()),
        key,
        "the same steps, the same key"
    );
    assert!(wheel.reset(key, Tick::new(7)));
    assert_eq!(wheel.next_expiration(), Some(Tick::new(7)));
    assert_eq!(wheel.quiet_until(), Tick::new(7));
    sleep_until_due(&mut wheel);
    assert_eq!(wheel.now(), Tick::new(7));
}

// tokio#8334, tokio-util#5536: a timer beyond the last dial came up late or never.
#[test]
fn a_timer_beyond_the_last_dial_is_in_time() {
    for resolution in edges::resolutions() {
        let [.., day, all] = edges::revolutions(resolution);
        for start in [
            0,
            1,
            all - 1,
            all,
            all + 1,
            1_000 * all + 63 * day,
            5_000 * all - 1,
        ] {
            for delay in [
                all + day,
                2 * all,
                2 * all + 1,
                10 * all - 1,
                100 * all + 17,
            ] {
                let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                wheel.insert(Tick::new(start + delay), ());
                sleep_until_due(&mut wheel);
                assert_eq!(
                    wheel.now(),
                    Tick::new(start + delay),
                    "{delay} from {start}"
                );
                // Likewise with one jump, over the revolutions of the last dial.
                let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                wheel.insert(Tick::new(start + delay), ());
                assert!(advance(&mut wheel, start + delay - 1).is_empty());
                assert_eq!(advance(&mut wheel, start + delay).len(), 1);
            }
        }
    }
}

// tokio-util#5536: a queue that was older than the span of its wheel.
#[test]
fn a_wheel_older_than_its_span_works_as_a_new_one() {
    let resolution = Resolution::MILLISECOND;
    let all = edges::revolutions(resolution)[4];
    let mut wheel = Wheel::new(resolution);
    let mut now = 0;
    for round in 0..200 {
        for delay in [1, 1_000, 61_000, 3_601_000, 86_401_000] {
            wheel.insert(Tick::new(now + delay), delay);
        }
        for delay in [1, 1_000, 61_000, 3_601_000, 86_401_000] {
            let (handed, _) = sleep_until_due(&mut wheel);
            assert_eq!(handed, [delay], "round {round}");
            assert_eq!(wheel.now(), Tick::new(now + delay), "round {round}");
        }
        now += all / 3 + round;
        assert!(advance(&mut wheel, now).is_empty());
    }
}

// tokio#8334: a timer forever lay on the last dial. Its slot came up again and again, and no timer behind it was
// served.
#[test]
fn a_timer_for_ever_does_not_starve_the_others() {
    let resolution = Resolution::MILLISECOND;
    let [.., day, all] = edges::revolutions(resolution);
    let mut wheel = Wheel::new(resolution);
    wheel.insert(Tick::MAX, 0);
    for revolution in 1..=20 {
        // Around the start of a revolution of the last dial, where the timer forever comes up.
        let start = revolution * all;
        for deadline in [start - 1, start, start + 1, start + day] {
            wheel.insert(Tick::new(deadline), deadline);
            assert_eq!(sleep_until_due(&mut wheel).0, [deadline]);
            assert_eq!(wheel.now(), Tick::new(deadline));
        }
    }
    assert_eq!(wheel.len(), 1);
}

// embassy#4736: a timer for `Instant::MAX` was cancelled. A short one that was armed after it woke no task, since the
// next expiry stayed at "never".
#[test]
fn a_short_timer_after_a_cancelled_one_for_ever_shows() {
    for cancelled in [Tick::MAX, Tick::new(u64::MAX - 1), Tick::new(500 * YEAR)] {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        let key = wheel.insert(cancelled, "for ever");
        assert!(advance(&mut wheel, 10).is_empty());
        assert_eq!(wheel.cancel(key), Some("for ever"));
        assert_eq!(wheel.next_expiration(), None);
        wheel.insert(Tick::new(20), "short");
        assert_eq!(wheel.next_expiration(), Some(Tick::new(20)));
        assert_eq!(wheel.quiet_until(), Tick::new(20));
        assert_eq!(advance(&mut wheel, 20), ["short"]);
        assert_eq!(wheel.quiet_until(), Tick::MAX);
    }
}

// akka-core#20424: a counter wrapped after 49.7 days, and timers across the wrap were lost.
#[test]
fn timers_across_every_wrap_point_are_in_time() {
    for resolution in edges::resolutions() {
        for wrap in edges::starts(resolution) {
            for before in [
                0,
                1,
                2,
                edges::second(resolution),
                edges::second(resolution) + 1,
            ] {
                let Some(start) = wrap.checked_sub(before) else {
                    continue;
                };
                let mut wheel = Wheel::starting_at(resolution, Tick::new(start));
                let deadlines = (1..=4).filter_map(|after| start.checked_add(before + after));
                let deadlines: Vec<u64> = deadlines.collect();
                for &deadline in deadlines.iter().rev() {
                    wheel.insert(Tick::new(deadline), deadline);
                }
                for deadline in deadlines {
                    assert_eq!(sleep_until_due(&mut wheel).0, [deadline]);
                    assert_eq!(wheel.now(), Tick::new(deadline));
                }
            }
        }
    }
}

// tokio#3619: a clock that went backwards caused a panic. Here it is clamped.
#[test]
fn time_that_goes_backwards_stands_still() {
    for resolution in edges::resolutions() {
        let now = 5 * edges::revolutions(resolution)[4] + 17;
        let mut wheel = Wheel::starting_at(resolution, Tick::new(now));
        wheel.insert(Tick::new(now + 5), "soon");
        for back in edges::delays(resolution).into_iter().chain([0, 1, now]) {
            wheel.skip_to(Tick::new(now - back));
            assert!(advance(&mut wheel, now - back).is_empty());
            assert_eq!(wheel.now(), Tick::new(now));
            assert_eq!(wheel.next_expiration(), Some(Tick::new(now + 5)));
            wheel.check_invariants();
        }
        assert_eq!(advance(&mut wheel, now + 5), ["soon"]);
    }
}

// Netty replays time. A wheel that jumps must not lose what it jumps over.
#[test]
fn a_jump_hands_out_all_that_it_passes() {
    for resolution in edges::resolutions() {
        for jump in edges::delays(resolution).into_iter().chain([100 * YEAR]) {
            let mut wheel = Wheel::starting_at(resolution, Tick::new(12_345));
            let all = edges::delays(resolution).into_iter().chain([YEAR]);
            let all: Vec<u64> = all.collect();
            for &delay in &all {
                wheel.insert(Tick::new(12_345 + delay), delay);
            }
            let mut handed = advance(&mut wheel, 12_345 + jump);
            handed.sort_unstable();
            let mut passed = all;
            passed.retain(|&delay| delay <= jump);
            passed.sort_unstable();
            assert_eq!(handed, passed, "a jump by {jump}");
        }
    }
}
