use std::sync::Arc;

use super::Durable;
use crate::answer::Inserted;
use crate::error::Error;
use crate::new_timer::NewTimer;

/// A timer that is about to be inserted: see [`Durable::at`].
#[derive(Debug)]
#[must_use = "a timer is not inserted until `insert` is called"]
pub struct Insert<'a> {
    timers: &'a Durable,
    timer: NewTimer,
}

impl<'a> Insert<'a> {
    pub(crate) fn new(timers: &'a Durable, timer: NewTimer) -> Insert<'a> {
        Insert { timers, timer }
    }

    /// Sets the business key: see [`NewTimer::key`].
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Insert<'a> {
        self.timer = self.timer.key(key);
        self
    }

    /// Sets the payload: see [`NewTimer::payload`].
    pub fn payload(mut self, value: &(impl serde::Serialize + ?Sized)) -> Insert<'a> {
        self.timer = self.timer.payload(value);
        self
    }

    /// Sets the payload: see [`NewTimer::bytes`].
    pub fn bytes(mut self, payload: impl Into<Arc<[u8]>>) -> Insert<'a> {
        self.timer = self.timer.bytes(payload);
        self
    }

    /// Inserts the timer. It is durable (synced to disk) when this resolves.
    ///
    /// Concurrent calls share a commit.
    ///
    /// # Errors
    ///
    /// Any [`Error`] except [`Error::NamespaceName`], [`Error::Policy`] and [`Error::Calendar`]: [what to
    /// do](Error#what-to-do). After [`Error::Unknown`], the timer may or may not be inserted: open the store again, and
    /// repeat the insert with the same key.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the timer may or may not be inserted.
    pub async fn insert(self) -> Result<Inserted, Error> {
        self.timers.insert(self.timer).await
    }
}
