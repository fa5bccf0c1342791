//! What time of day is it? A clock that may be set.

use std::time::SystemTime;

use tokio::time::Instant;
use waterwheel::Timer;

use super::plan::saturating_add;

/// Where the time of day comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WallClock {
    /// The machine's clock.
    System,
    /// It showed `start` at the instant `since` of the scheduler's timer, and goes on with that.
    Virtual { start: SystemTime, since: Instant },
}

impl WallClock {
    pub(crate) fn now(&self, timer: &Timer) -> SystemTime {
        match *self {
            WallClock::System => SystemTime::now(),
            WallClock::Virtual { start, since } => {
                start + timer.now().saturating_duration_since(since)
            }
        }
    }

    pub(crate) fn can_be_set(&self) -> bool {
        matches!(self, WallClock::System)
    }

    /// When the clock shows this time, or showed it, if it is not set meanwhile.
    pub(crate) fn instant_of(&self, wall: SystemTime, timer: &Timer) -> Instant {
        let now = timer.now();
        match wall.duration_since(self.now(timer)) {
            Ok(left) => saturating_add(now, left),
            Err(past) => now.checked_sub(past.duration()).unwrap_or(now),
        }
    }
}
