//! What is there to see of a job?

use tokio::time::Instant;
use waterwheel::wheel::Key;

use super::table::{Entry, Status, Table};

/// Of a job that has ended, nothing.
impl Table {
    pub(crate) fn is_done(&self, key: Key) -> bool {
        self.look(key, |_| ()).is_none()
    }

    pub(crate) fn is_periodic(&self, key: Key) -> bool {
        self.look(key, Entry::is_periodic).unwrap_or(false)
    }

    pub(crate) fn is_running(&self, key: Key) -> bool {
        self.look(key, |entry| entry.status == Status::Running)
            .unwrap_or(false)
    }

    pub(crate) fn is_paused(&self, key: Key) -> bool {
        self.look(key, |entry| entry.status == Status::Paused || entry.pauses)
            .unwrap_or(false)
    }

    /// When the next run is due, if it is known.
    pub(crate) fn next_run(&self, key: Key) -> Option<Instant> {
        self.look(key, |entry| match entry.status {
            Status::Running | Status::Paused => None,
            _ => Some(entry.deadline),
        })?
    }

    fn look<R>(&self, key: Key, look: impl FnOnce(&Entry) -> R) -> Option<R> {
        self.state().wheel.get(key).map(look)
    }
}
