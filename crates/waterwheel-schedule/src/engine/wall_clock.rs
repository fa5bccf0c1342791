//! The wall clock, which may be set at any time, and the jobs that wait for a time that it shows.

use std::collections::BTreeMap;
use std::time::SystemTime;

use tokio::time::Instant;
use waterwheel::Timer;
use waterwheel::wheel::Key;

use super::plan::saturating_add;

/// The source of wall-clock time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WallClock {
    /// The clock of the system.
    System,
    /// A clock for tests: it showed `start` at the instant `since`, and advances with the scheduler's timer.
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

    /// The instant at which the clock shows, or showed, this time if it is not set meanwhile.
    pub(crate) fn instant_of(&self, wall: SystemTime, timer: &Timer) -> Instant {
        let now = timer.now();
        match wall.duration_since(self.now(timer)) {
            Ok(left) => saturating_add(now, left),
            Err(past) => now.checked_sub(past.duration()).unwrap_or(now),
        }
    }
}

/// The jobs that wait for the system's wall clock, earliest first.
///
/// A job that no longer waits for its time is removed lazily: when the time comes up, or when there are too many such entries. The caller
/// tells by `waits` whether a job still waits for a time.
#[derive(Default)]
pub(crate) struct WallDeadlines(BTreeMap<(SystemTime, u32), Key>);

impl WallDeadlines {
    /// Adds a job. `jobs` is the number of jobs in the table; if the map is far larger, stale entries are removed.
    pub(super) fn insert(
        &mut self,
        key: Key,
        wall: SystemTime,
        jobs: usize,
        waits: impl Fn(Key, SystemTime) -> bool,
    ) {
        if self.0.len() > 2 * jobs + 64 {
            self.0.retain(|&(wall, _), &mut key| waits(key, wall));
        }
        self.0.insert((wall, key.index()), key);
    }

    /// The earliest time that a job still waits for, and the job.
    pub(super) fn first(
        &mut self,
        waits: impl Fn(Key, SystemTime) -> bool,
    ) -> Option<(SystemTime, Key)> {
        loop {
            let first = self.0.first_entry()?;
            let ((wall, _), key) = (*first.key(), *first.get());
            if waits(key, wall) {
                return Some((wall, key));
            }
            first.remove();
        }
    }

    pub(super) fn remove(&mut self, key: Key, wall: SystemTime) {
        self.0.remove(&(wall, key.index()));
    }
}
