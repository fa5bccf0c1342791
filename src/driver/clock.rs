//! Where time enters: the clock of the timer's home runtime, in instants and in ticks.
//!
//! `now` and `sleep_until` are here, and the third door, being rung from outside, is the `bell`.
//! They stand on `host`, which another host of the driver, a simulation say, replaces.
//!
//! A timer's time is that of the runtime it was started on, whichever thread asks. On a
//! multi-thread runtime that is the machine's monotonic clock, always. A current-thread runtime's
//! clock can be paused and moved (`tokio::time::pause`), and what tokio calls now then depends
//! on the runtime that the thread is in; so there now is read in the home runtime's context.

use std::future::Future;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Duration, Instant};

use super::host;
use super::test_util::CLOCKS_CAN_PAUSE;
use crate::wheel::{Divisor, Resolution, Tick};

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    epoch: Instant,
    resolution: Resolution,
    /// The resolution's nanoseconds.
    tick_nanos: Divisor,
    home: Handle,
    /// Whether the home runtime has one thread.
    single: bool,
}

impl Clock {
    /// The clock of a runtime; tick zero is now.
    pub(crate) fn new(home: Handle, resolution: Resolution) -> Clock {
        let epoch = {
            let _entered = home.enter();
            host::tokio_now()
        };
        // Any flavor but the one that is known to have more is taken for one.
        let single = !matches!(home.runtime_flavor(), RuntimeFlavor::MultiThread);
        Clock {
            epoch,
            resolution,
            tick_nanos: Divisor::new(resolution.nanos()),
            home,
            single,
        }
    }

    pub(crate) fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Whether the home runtime has one thread.
    pub(super) fn is_single(&self) -> bool {
        self.single
    }

    /// Whether now may jump; then a clock read of a while ago says little about now. tokio pauses clocks of
    /// runtimes of one thread only.
    #[inline]
    pub(crate) fn is_pausable(&self) -> bool {
        CLOCKS_CAN_PAUSE && self.single
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if self.is_pausable() {
            return self.now_at_home();
        }
        Instant::from_std(host::machine_now())
    }

    /// [`now`](Clock::now), for a caller that is in the home runtime's context for sure.
    #[inline]
    pub(crate) fn now_here(&self) -> Instant {
        if self.is_pausable() {
            return host::tokio_now();
        }
        Instant::from_std(host::machine_now())
    }

    #[cold]
    fn now_at_home(&self) -> Instant {
        self.at_home(|now| now())
    }

    /// Whether the home runtime's clock stands still: it is paused, or too coarse to tell.
    #[cold]
    pub(super) fn is_standing(&self) -> bool {
        self.is_pausable()
            && self.at_home(|now| {
                let before = now();
                now() == before
            })
    }

    /// Hands out what reads the clock in the home runtime's context.
    #[inline]
    fn at_home<T>(&self, read: impl FnOnce(fn() -> Instant) -> T) -> T {
        match Handle::try_current() {
            Ok(here) if here.id() == self.home.id() => read(host::tokio_now),
            // A thread on its way out has no context to enter any more.
            Err(error) if error.is_thread_local_destroyed() => {
                read(|| Instant::from_std(host::machine_now()))
            }
            _ => {
                let _entered = self.home.enter();
                read(host::tokio_now)
            }
        }
    }

    /// A sleep on the home runtime's own clock; to be made in its context.
    pub(super) fn sleep_until(&self, at: Instant) -> host::Sleep {
        host::sleep_until(at)
    }

    /// Has the home runtime run a task of ours.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        host::spawn(&self.home, task);
    }

    /// Now, rounded down to a tick.
    pub(crate) fn now_tick(&self) -> Tick {
        self.tick_before(self.now())
    }

    /// Whether the home runtime's clock is not the machine's: it is paused, or was.
    pub(super) fn is_warped(&self) -> bool {
        if !self.is_pausable() {
            return false;
        }
        let before = host::machine_now();
        let now = self.now().into_std();
        now < before || now > host::machine_now()
    }

    /// An instant, rounded up to a tick: what a deadline is filed under.
    #[inline]
    pub(crate) fn tick_after(&self, instant: Instant) -> Tick {
        let rounding = self.tick_nanos.get() - 1;
        self.tick(instant, |subsecond| {
            self.tick_nanos.divide(subsecond + rounding)
        })
    }

    /// An instant, rounded down to a tick: what now is.
    #[inline]
    pub(crate) fn tick_before(&self, instant: Instant) -> Tick {
        self.tick(instant, |subsecond| self.tick_nanos.divide(subsecond))
    }

    /// Whether the tick of `deadline` has come at `now`. One that is after `now` costs no conversion.
    #[inline]
    pub(crate) fn is_due(&self, deadline: Instant, now: Instant) -> bool {
        now >= deadline && self.is_tick_due(deadline, now)
    }

    /// Apart, so that what is not due costs no more than the comparison above.
    #[inline(never)]
    fn is_tick_due(&self, deadline: Instant, now: Instant) -> bool {
        self.tick_after(deadline) <= self.tick_before(now)
    }

    /// The start of a tick; `None` for [`Tick::MAX`], which is never, and for one that lies beyond
    /// what an `Instant` can tell.
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

    /// Nanoseconds since tick zero.
    pub(crate) fn nanos(&self, instant: Instant) -> u128 {
        instant.saturating_duration_since(self.epoch).as_nanos()
    }

    /// How many of these nanoseconds lie behind the start of `tick`; none if it is after them.
    #[inline]
    pub(crate) fn nanos_since(&self, nanos: u128, tick: Tick) -> u64 {
        let start = u128::from(tick.get()) * u128::from(self.resolution.nanos());
        u64::try_from(nanos.saturating_sub(start)).unwrap_or(u64::MAX)
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

    /// Seconds and the part of one are converted apart, so that no multiplication needs 128
    /// bits: a resolution divides a second. What is too far for 64 bits of ticks is the last tick.
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

    use super::{Clock, Duration, Resolution};

    #[test]
    fn ticks_cover_a_duration_from_wherever_it_starts() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let clock = Clock::new(runtime.handle().clone(), Resolution::MILLISECOND);
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
