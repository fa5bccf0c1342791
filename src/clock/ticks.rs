//! Every conversion between instants, durations and ticks.
//!
//! A deadline rounds *up* to a tick and now rounds *down*, so no timer is early. A timer is due when
//! `tick_after(deadline) <= tick_before(now)`: polls, resets and the driver all ask this.
//!
//! Seconds and the part of a second are converted apart, since a resolution divides a second. So no multiplication
//! needs 128 bits.

use tokio::time::{Duration, Instant};

use super::Clock;
use crate::wheel::{Resolution, Tick, Ticks};

impl Clock {
    pub(crate) fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Tick zero.
    pub(crate) fn epoch(&self) -> Instant {
        self.epoch
    }

    /// Now, rounded down to a tick.
    pub(crate) fn now_tick(&self) -> Tick {
        self.tick_before(self.now())
    }

    /// An instant, rounded up to a tick: the tick of a deadline.
    #[inline]
    pub(crate) fn tick_after(&self, instant: Instant) -> Tick {
        let rounding = self.tick_nanos.get() - 1;
        self.tick(instant, |subsecond| {
            self.tick_nanos.divide(subsecond + rounding)
        })
    }

    /// An instant, rounded down to a tick: the tick of now.
    #[inline]
    pub(crate) fn tick_before(&self, instant: Instant) -> Tick {
        self.tick(instant, |subsecond| self.tick_nanos.divide(subsecond))
    }

    /// Whether the tick of `deadline` has come at `now`. A deadline after `now` costs no conversion.
    #[inline]
    pub(crate) fn is_due(&self, deadline: Instant, now: Instant) -> bool {
        now >= deadline && self.is_tick_due(deadline, now)
    }

    /// Not inlined, so that a timer that is not due costs the comparison above alone.
    #[inline(never)]
    fn is_tick_due(&self, deadline: Instant, now: Instant) -> bool {
        self.tick_after(deadline) <= self.tick_before(now)
    }

    /// The start of a tick. `None` for [`Tick::MAX`], which is never, and for a tick beyond the range of `Instant`.
    pub(crate) fn instant_of(&self, tick: Tick) -> Option<Instant> {
        if tick == Tick::MAX {
            return None;
        }
        let per_second = u64::from(self.resolution.ticks_per_second());
        let (seconds, ticks) = (tick.get() / per_second, tick.get() % per_second);
        // Less than a second in nanoseconds.
        let nanos = ticks as u32 * self.resolution.nanos();
        self.epoch.checked_add(Duration::new(seconds, nanos))
    }

    /// The earliest instant that rounds up to the tick that starts at `start`.
    pub(crate) fn earliest_of_tick(&self, start: Instant) -> Option<Instant> {
        start.checked_sub(self.resolution.tick() - Duration::from_nanos(1))
    }

    /// The time between two ticks, zero if `earlier` is the later one. At most 2³² ticks.
    pub(crate) fn duration_between(&self, earlier: Tick, tick: Tick) -> Duration {
        let ticks = u32::try_from(tick.saturating_since(earlier).get()).unwrap_or(u32::MAX);
        self.resolution.tick().saturating_mul(ticks)
    }

    /// Nanoseconds since tick zero.
    pub(crate) fn nanos(&self, instant: Instant) -> u128 {
        instant.saturating_duration_since(self.epoch).as_nanos()
    }

    /// How many of `nanos` nanoseconds since tick zero lie behind the start of `tick`; zero if it is after them.
    #[inline]
    pub(crate) fn nanos_since(&self, nanos: u128, tick: Tick) -> u64 {
        let start = u128::from(tick.get()) * u128::from(self.resolution.nanos());
        u64::try_from(nanos.saturating_sub(start)).unwrap_or(u64::MAX)
    }

    /// The fewest ticks that are as long as a duration of less than a second, one at least.
    pub(crate) fn ticks_in(resolution: Resolution, duration: Duration) -> Ticks {
        let ticks = duration.subsec_nanos().div_ceil(resolution.nanos());
        Ticks::new(u64::from(ticks.max(1)))
    }

    /// How many ticks cover a duration wherever it starts; `None` if 32 bits do not hold it.
    #[inline]
    pub(crate) fn ticks_covering(&self, duration: Duration) -> Option<u32> {
        let per_second = u64::from(self.resolution.ticks_per_second());
        let nanos = u64::from(duration.subsec_nanos());
        // One more for the part of a tick, and one for the rounding up of the deadline.
        let part = self.tick_nanos.divide(nanos) + 2;
        let ticks = duration.as_secs().checked_mul(per_second)?;
        u32::try_from(ticks.checked_add(part)?).ok()
    }

    /// An instant beyond 64 bits of ticks becomes the last tick.
    #[inline]
    fn tick(&self, instant: Instant, part: impl FnOnce(u64) -> u64) -> Tick {
        let since = instant.saturating_duration_since(self.epoch);
        let per_second = u64::from(self.resolution.ticks_per_second());
        Tick::new(
            since
                .as_secs()
                .saturating_mul(per_second)
                .saturating_add(part(u64::from(since.subsec_nanos()))),
        )
    }
}

// The grid on which timers that allow slack come due together.
//
// Its origin is one instant of the process, so the grid is the same for all timers in real time. A manual clock's grid begins with the clock,
// and that of a clock that tokio may pause with the timer: so a simulation has the same outcome each time.

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

/// The time until the next multiple of this many seconds.
#[inline]
fn until_second<const SECONDS: u64>(seconds: u64, nanos: u32) -> Duration {
    match (seconds % SECONDS, nanos) {
        (0, 0) => Duration::ZERO,
        (passed, 0) => Duration::from_secs(SECONDS - passed),
        (passed, nanos) => Duration::new(SECONDS - 1 - passed, 1_000 * MS - nanos),
    }
}

/// The time until the next multiple of this many milliseconds.
#[inline]
fn until_milli<const MILLIS: u32>(nanos: u32) -> u32 {
    match nanos % (MILLIS * MS) {
        0 => 0,
        passed => MILLIS * MS - passed,
    }
}

#[cfg(test)]
mod tests {

    use super::{Clock, Duration, Resolution, Tick, Ticks};
    use crate::tests::{clock_of, current_thread};

    #[test]
    fn what_is_due_is_late_after_some_tenths_of_a_millisecond() {
        let runtime = current_thread();
        // The resolution in µs, and the first tick in which a timer is late.
        for (micros, late) in [(100, 3), (250, 2), (500, 1), (1_000, 1), (1_000_000, 1)] {
            let resolution = Resolution::new(Duration::from_micros(micros)).unwrap();
            let clock = Clock::new(runtime.handle().clone(), None, Some(resolution));
            let due = Tick::new(1_000);
            let is_late = |ticks| clock.is_late(due, due.saturating_add(Ticks::new(ticks)));
            assert_eq!([late - 1, late].map(is_late), [false, true], "{micros}");
            assert!(!clock.is_late(due, Tick::new(999)));
            assert!(!clock.is_late(Tick::MAX, due));
        }
    }

    #[test]
    fn ticks_cover_a_duration_from_wherever_it_starts() {
        let runtime = current_thread();
        let clock = clock_of(&runtime);
        let covering = |micros| clock.ticks_covering(Duration::from_micros(micros));
        // One for the part of a tick that it starts in, and one for the rounding up of its end.
        assert_eq!(covering(0), Some(2));
        assert_eq!([1, 999, 1_000].map(covering), [Some(2), Some(2), Some(3)]);
        assert_eq!(covering(61_000_999), Some(61_002));
        let most = u64::from(u32::MAX) * 1_000;
        assert_eq!(covering(most - 2_000), Some(u32::MAX));
        assert_eq!([covering(most - 1_000), covering(u64::MAX)], [None, None]);
        assert_eq!(clock.ticks_covering(Duration::MAX), None);
    }
}

#[cfg(test)]
mod grid_tests {
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
