//! How long before the first deadline arming begins.

use std::cell::Cell;
use std::time::Duration;

/// The time that was enough so far, for all contestants of a workload.
pub(crate) struct Lead(Cell<Duration>);

impl Lead {
    pub(crate) fn new(guess: Duration) -> Self {
        Self(Cell::new(guess))
    }

    /// Calls `sample` with the lead; where it answers that it was too short to arm everything, again with twice of it.
    pub(crate) fn enough<T>(&self, sample: impl Fn(Duration) -> Option<T>) -> T {
        loop {
            if let Some(taken) = sample(self.0.get()) {
                return taken;
            }
            self.0.set(self.0.get() * 2);
        }
    }
}
