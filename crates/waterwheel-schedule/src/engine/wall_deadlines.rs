//! Which jobs wait for a time of day, earliest first? A map alone: the caller says which of them still wait.

use std::collections::BTreeMap;
use std::time::SystemTime;

use waterwheel::wheel::Key;

/// The jobs by the machine's wall clock. Those that have gone stay until they come up, or are too many. A job and a time are one place in it.
#[derive(Default)]
pub(crate) struct WallDeadlines(BTreeMap<(SystemTime, u32), Key>);

impl WallDeadlines {
    /// Adds a job, of `jobs` that there are. Where the map is far larger than that, those that do not wait any more leave it.
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
