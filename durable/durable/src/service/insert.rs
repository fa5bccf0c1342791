use std::sync::Arc;

use super::Durable;
use crate::answer::Inserted;
use crate::error::Error;
use crate::new_timer::NewTimer;

/// A timer that is about to be inserted: see [`Durable::at`].
#[derive(Debug)]
#[must_use = "a timer has to be inserted: call `insert`"]
pub struct Insert<'a> {
    timers: &'a Durable,
    timer: NewTimer,
}

impl<'a> Insert<'a> {
    pub(crate) fn new(timers: &'a Durable, timer: NewTimer) -> Insert<'a> {
        Insert { timers, timer }
    }

    /// As [`NewTimer::key`].
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Insert<'a> {
        self.timer = self.timer.key(key);
        self
    }

    /// As [`NewTimer::payload`].
    pub fn payload(mut self, value: &(impl serde::Serialize + ?Sized)) -> Insert<'a> {
        self.timer = self.timer.payload(value);
        self
    }

    /// As [`NewTimer::bytes`].
    pub fn bytes(mut self, payload: impl Into<Arc<[u8]>>) -> Insert<'a> {
        self.timer = self.timer.bytes(payload);
        self
    }

    /// Inserts the timer. It is durable, synced to the disk, when this resolves.
    ///
    /// Calls that are made at the same time share a commit.
    ///
    /// # Errors
    ///
    /// Each [`Error`] but [`Error::NamespaceName`], [`Error::Policy`] and [`Error::Calendar`]: [what to do](Error#what-to-do). After [`Error::Unknown`], the timer may be there
    /// or not: insert it again with the same key, once the store is opened again.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the timer may be inserted or not.
    pub async fn insert(self) -> Result<Inserted, Error> {
        self.timers.insert(self.timer).await
    }
}
