//! The valid lengths of a tick, and the error for the others.

use std::time::Duration;

use waterwheel::wheel::{Resolution, Tick, Wheel};

use crate::support::advance;

#[test]
fn a_resolution_is_from_100_us_to_1_s_and_divides_a_second() {
    for (micros, ticks_per_second) in [
        (100, 10_000),
        (125, 8_000),
        (1_000, 1_000),
        (4_000, 250),
        (10_000, 100),
        (500_000, 2),
        (1_000_000, 1),
    ] {
        let tick = Duration::from_micros(micros);
        let resolution = Resolution::new(tick).expect("it divides a second");
        assert_eq!(resolution.tick(), tick);
        assert_eq!(resolution.ticks_per_second(), ticks_per_second);
    }
    let fine = Resolution::new(Duration::from_nanos(156_250)).expect("6400 make a second");
    assert_eq!(fine.ticks_per_second(), 6_400);
    assert_eq!(Resolution::default(), Resolution::MILLISECOND);
    assert_eq!(
        Resolution::new(Duration::from_millis(1)),
        Ok(Resolution::MILLISECOND)
    );
}

#[test]
fn another_resolution_is_refused_with_a_reason() {
    for (tick, named) in [
        (Duration::ZERO, "0ns"),
        (Duration::from_millis(3), "3ms"),
        (Duration::from_micros(50), "50µs"),
        (Duration::from_nanos(99_999), "99.999µs"),
        (Duration::from_nanos(1_000_001), "1.000001ms"),
        (Duration::from_secs(2), "2s"),
        (Duration::new(1, 1), "1.000000001s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        let error = Resolution::new(tick).expect_err("it is refused");
        assert_eq!(
            error.to_string(),
            format!(
                "a resolution of {named} is not possible: choose one from 100 µs to 1 s that \
                 divides a second into whole ticks, such as 100 µs, 1 ms, 10 ms or 1 s"
            )
        );
        let _: &dyn std::error::Error = &error;
    }
}

// The dials above the first stay seconds, minutes, hours and days at any resolution.
#[test]
fn a_wheel_of_any_resolution_keeps_time() {
    for micros in [100, 125, 4_000, 20_000, 250_000, 500_000, 1_000_000] {
        let resolution = Resolution::new(Duration::from_micros(micros)).expect("it divides one");
        let second = u64::from(resolution.ticks_per_second());
        let mut wheel = Wheel::new(resolution);
        assert_eq!(wheel.resolution(), resolution);
        for seconds in [
            1,
            59,
            60,
            61,
            3_599,
            3_601,
            86_399,
            86_401,
            64 * 86_400,
            65 * 86_400,
        ] {
            let now = wheel.now().get();
            wheel.insert(Tick::new(now + seconds * second), seconds);
            assert!(advance(&mut wheel, now + seconds * second - 1).is_empty());
            assert_eq!(advance(&mut wheel, now + seconds * second), [seconds]);
        }
    }
}
