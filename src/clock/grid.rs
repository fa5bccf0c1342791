//! The grid on which timers that allow slack come due together.
//!
//! Its origin is one instant of the process, so the grid is the same for all timers in real time. A manual clock's grid begins with the clock,
//! and that of a clock that tokio may pause with the timer: so a simulation has the same outcome each time.

use tokio::time::{Duration, Instant};

/// How far apart the lines are, where that is less than a second: it divides one.
const NANOS: [u32; 9] = {
    const MS: u32 = 1_000_000;
    [
        MS,
        2 * MS,
        5 * MS,
        10 * MS,
        20 * MS,
        50 * MS,
        100 * MS,
        200 * MS,
        500 * MS,
    ]
};

/// And where it is a second or more.
const SECONDS: [u64; 4] = [1, 5, 15, 60];

/// The first line that is not before `deadline`, of the coarsest grid whose lines are at most `slack` apart. So it is not after
/// `deadline + slack`. The deadline itself if the slack is less than the finest grid takes, and at the end of the range of `Instant`.
pub(super) fn align(origin: Instant, deadline: Instant, slack: Duration) -> Instant {
    let wait = match deadline.checked_duration_since(origin) {
        Some(since) => until_line(since, slack),
        None => since_line(origin - deadline, slack),
    };
    deadline.checked_add(wait).unwrap_or(deadline)
}

/// How long after `since` the next line is; zero on a line.
fn until_line(since: Duration, slack: Duration) -> Duration {
    let passed = since_line(since, slack);
    if passed.is_zero() {
        return passed;
    }
    distance(slack) - passed
}

/// How long before `since` the last line was; zero on a line.
fn since_line(since: Duration, slack: Duration) -> Duration {
    let distance = distance(slack);
    match distance.as_secs() {
        0 if distance.is_zero() => distance,
        0 => Duration::from_nanos(u64::from(since.subsec_nanos() % distance.subsec_nanos())),
        seconds => Duration::new(since.as_secs() % seconds, since.subsec_nanos()),
    }
}

/// How far apart the lines of the coarsest grid are that the slack allows; zero if it allows none.
fn distance(slack: Duration) -> Duration {
    let seconds = SECONDS.iter().rev().find(|&&it| it <= slack.as_secs());
    if let Some(&seconds) = seconds {
        return Duration::from_secs(seconds);
    }
    let nanos = NANOS.iter().rev().find(|&&it| it <= slack.subsec_nanos());
    nanos.map_or(Duration::ZERO, |&nanos| Duration::from_nanos(nanos.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Duration, Instant, NANOS, SECONDS, align, distance};

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_grid_is_the_coarsest_that_the_slack_allows() {
        let lines: Vec<u64> = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500].to_vec();
        let seconds = SECONDS.map(|seconds| seconds * 1_000);
        let lines = [lines, seconds.to_vec()].concat();
        assert_eq!(lines.len(), 1 + NANOS.len() + SECONDS.len());
        for (at, &millis) in lines.iter().enumerate() {
            assert_eq!(distance(ms(millis)), ms(millis));
            let most = lines
                .get(at + 1)
                .map_or(Duration::MAX, |&next| ms(next) - Duration::from_nanos(1));
            assert_eq!(distance(most), ms(millis));
        }
    }

    #[test]
    fn a_deadline_on_a_line_stays() {
        let origin = Instant::now() + Duration::from_secs(1_000);
        for slack in [ms(1), ms(500), ms(60_000), Duration::MAX] {
            assert_eq!(align(origin, origin, slack), origin);
            for line in [origin + ms(120_000), origin - ms(120_000)] {
                assert_eq!(align(origin, line, slack), line);
            }
        }
    }

    #[test]
    fn a_deadline_without_slack_stays() {
        let origin = Instant::now();
        let deadline = origin + Duration::from_nanos(1_234_567);
        for slack in [Duration::ZERO, ms(1) - Duration::from_nanos(1)] {
            assert_eq!(align(origin, deadline, slack), deadline);
        }
    }

    proptest! {
        #[test]
        fn it_moves_to_the_next_line_and_not_beyond_the_slack(
            nanos in 0..u64::MAX / 4,
            is_before in any::<bool>(),
            slack in prop_oneof![0..2_000_000_u64, 0..2_000_000_000_u64, 0..100_000_000_000_u64],
        ) {
            let base = Instant::now();
            // Both instants lie within the range of `Instant`.
            let (near, far) = (base, base + Duration::from_nanos(nanos));
            let (origin, deadline) = if is_before { (far, near) } else { (near, far) };
            let slack = Duration::from_nanos(slack);
            let aligned = align(origin, deadline, slack);
            prop_assert!(deadline <= aligned && aligned <= deadline + slack);
            let lines = distance(slack).as_nanos();
            if lines == 0 {
                prop_assert_eq!(aligned, deadline);
            } else {
                let (late, early) = if aligned > origin { (aligned, origin) } else { (origin, aligned) };
                prop_assert_eq!((late - early).as_nanos() % lines, 0);
                prop_assert!((aligned - deadline).as_nanos() < lines);
            }
        }
    }
}
