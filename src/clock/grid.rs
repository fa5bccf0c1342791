//! The grid on which timers that allow slack come due together.
//!
//! Its origin is one instant of the process, so the grid is the same for all timers in real time. A manual clock's grid begins with the clock,
//! and that of a clock that tokio may pause with the timer: so a simulation has the same outcome each time.

use tokio::time::{Duration, Instant};

const MS: u32 = 1_000_000;
/// All distances between lines divide it.
const PERIOD: u64 = 60;

/// How long after `now + delay` the next line is, of the coarsest grid whose lines are at most `slack` apart; so not more than
/// `slack`. Zero on a line, if the slack is less than the finest grid takes, and at the end of the range.
///
/// Subtracts instants once: std takes longer for that than all the rest here.
#[inline]
pub(super) fn wait_for_line(
    origin: Instant,
    now: Instant,
    delay: Duration,
    slack: Duration,
) -> Duration {
    let since = match now.checked_duration_since(origin) {
        Some(since) => since.checked_add(delay),
        None => Some(since_period(origin - now, delay)),
    };
    since.map_or(Duration::ZERO, |since| until_line(since, slack))
}

/// How far a deadline is after the origin, or after an earlier line of all grids, if `delay` begins `before` the origin. (A runtime's
/// clock may have been paused before the origin was taken.)
#[cold]
fn since_period(before: Duration, delay: Duration) -> Duration {
    delay.checked_sub(before).unwrap_or_else(|| {
        let before = before - delay;
        let periods = before.as_secs() / PERIOD + 1;
        Duration::from_secs(periods * PERIOD) - before
    })
}

/// How long after `since` the next line is. Each of these divisions is by a constant.
#[inline]
fn until_line(since: Duration, slack: Duration) -> Duration {
    let (seconds, nanos) = (since.as_secs(), since.subsec_nanos());
    let nanos = match slack.as_secs() {
        60.. => return until_second::<60>(seconds, nanos),
        15.. => return until_second::<15>(seconds, nanos),
        5.. => return until_second::<5>(seconds, nanos),
        1.. => return until_second::<1>(seconds, nanos),
        0 => match slack.subsec_nanos() / MS {
            500.. => until_milli::<500>(nanos),
            200.. => until_milli::<200>(nanos),
            100.. => until_milli::<100>(nanos),
            50.. => until_milli::<50>(nanos),
            20.. => until_milli::<20>(nanos),
            10.. => until_milli::<10>(nanos),
            5.. => until_milli::<5>(nanos),
            2.. => until_milli::<2>(nanos),
            1 => until_milli::<1>(nanos),
            0 => 0,
        },
    };
    Duration::new(0, nanos)
}

/// Until the next whole number of so many seconds.
#[inline]
fn until_second<const SECONDS: u64>(seconds: u64, nanos: u32) -> Duration {
    match (seconds % SECONDS, nanos) {
        (0, 0) => Duration::ZERO,
        (passed, 0) => Duration::from_secs(SECONDS - passed),
        (passed, nanos) => Duration::new(SECONDS - 1 - passed, 1_000 * MS - nanos),
    }
}

/// Until the next whole number of so many milliseconds.
#[inline]
fn until_milli<const MILLIS: u32>(nanos: u32) -> u32 {
    match nanos % (MILLIS * MS) {
        0 => 0,
        passed => MILLIS * MS - passed,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Duration, Instant, wait_for_line};

    /// How far apart the lines of each grid are, in milliseconds.
    const GRIDS: [u64; 13] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 15_000, 60_000,
    ];

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// How far apart the lines are that a slack allows.
    fn distance(slack: Duration) -> Duration {
        let allowed = GRIDS.map(ms).into_iter().rfind(|&grid| grid <= slack);
        allowed.unwrap_or(Duration::ZERO)
    }

    fn wait(origin: Instant, deadline: Instant, slack: Duration) -> Duration {
        wait_for_line(origin, deadline, Duration::ZERO, slack)
    }

    #[test]
    fn the_grid_is_the_coarsest_that_the_slack_allows() {
        let nano = Duration::from_nanos(1);
        let origin = Instant::now();
        for (at, &millis) in GRIDS.iter().enumerate() {
            let next = GRIDS.get(at + 1);
            let most = next.map_or(Duration::MAX, |&next| ms(next) - nano);
            for slack in [ms(millis), most] {
                // Just after a line of all grids, and just before the next of this one.
                assert_eq!(wait(origin, origin + nano, slack), ms(millis) - nano);
                assert_eq!(wait(origin, origin + ms(millis) - nano, slack), nano);
            }
        }
    }

    #[test]
    fn a_deadline_on_a_line_stays() {
        let origin = Instant::now() + Duration::from_secs(1_000);
        for slack in [ms(1), ms(500), ms(60_000), Duration::MAX] {
            for line in [origin, origin + ms(120_000), origin - ms(120_000)] {
                assert_eq!(wait(origin, line, slack), Duration::ZERO);
            }
        }
    }

    #[test]
    fn a_deadline_without_slack_stays() {
        let origin = Instant::now();
        let deadline = origin + Duration::from_nanos(1_234_567);
        for slack in [Duration::ZERO, ms(1) - Duration::from_nanos(1)] {
            assert_eq!(wait(origin, deadline, slack), Duration::ZERO);
        }
    }

    #[test]
    fn beyond_the_range_there_is_no_line() {
        let origin = Instant::now();
        let wait = wait_for_line(origin, origin + ms(1), Duration::MAX, Duration::MAX);
        assert_eq!(wait, Duration::ZERO);
    }

    proptest! {
        #[test]
        fn it_waits_for_the_next_line_and_not_beyond_the_slack(
            nanos in 0..u64::MAX / 4,
            delay in prop_oneof![Just(0), 0..100_000_000_000_u64, 0..u64::MAX / 4],
            is_before in any::<bool>(),
            slack in prop_oneof![0..2_000_000_u64, 0..2_000_000_000_u64, 0..100_000_000_000_u64],
        ) {
            let base = Instant::now();
            // All instants lie within the range of `Instant`.
            let (near, far) = (base, base + Duration::from_nanos(nanos));
            let (origin, now) = if is_before { (far, near) } else { (near, far) };
            let [delay, slack] = [delay, slack].map(Duration::from_nanos);
            let wait = wait_for_line(origin, now, delay, slack);
            prop_assert!(wait <= slack);
            let (aligned, lines) = (now + delay + wait, distance(slack).as_nanos());
            if lines == 0 {
                prop_assert_eq!(wait, Duration::ZERO);
            } else {
                let (late, early) = if aligned > origin { (aligned, origin) } else { (origin, aligned) };
                prop_assert_eq!((late - early).as_nanos() % lines, 0);
                prop_assert!(wait.as_nanos() < lines);
            }
        }
    }
}
