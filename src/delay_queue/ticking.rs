use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::wheel::Tick;

/// What turns a queue's ticks into instants, without its clock: an item that was handed out takes it along.
#[derive(Clone, Copy)]
pub(super) struct Ticking {
    epoch: Instant,
    tick_nanos: u32,
}

impl Ticking {
    pub(super) fn of(clock: &Clock) -> Ticking {
        Ticking {
            epoch: clock.epoch(),
            tick_nanos: clock.resolution().nanos(),
        }
    }

    /// The start of a tick. Beyond the range of `Instant` it is the last instant.
    pub(super) fn instant_of(self, tick: Tick) -> Instant {
        let nanos = u128::from(tick.get()) * u128::from(self.tick_nanos);
        let second = u128::from(NANOS_A_SECOND);
        // 2⁶⁴ ticks of a second are as many seconds.
        let since = Duration::new((nanos / second) as u64, (nanos % second) as u32);
        let instant = self.epoch.checked_add(since);
        instant.unwrap_or_else(|| end_of_time(self.epoch))
    }
}

const NANOS_A_SECOND: u32 = 1_000_000_000;

/// The last instant. std has no name for it.
#[cold]
pub(super) fn end_of_time(now: Instant) -> Instant {
    let (mut end, mut step) = (now, Duration::from_secs(1 << 63));
    while step > Duration::ZERO {
        match end.checked_add(step) {
            Some(later) => end = later,
            None => step /= 2,
        }
    }
    end
}
