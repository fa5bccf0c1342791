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

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::{Clock, Duration, Resolution, Tick, Ticks};

    #[test]
    fn what_is_due_is_late_after_some_tenths_of_a_millisecond() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
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
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let clock = Clock::new(
            runtime.handle().clone(),
            None,
            Some(Resolution::MILLISECOND),
        );
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
