use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_durable_core::store::{Dead, Handle, Id};

/// A dead letter: a timer that is no longer retried. See [`Durable::dead_letters`](crate::Durable::dead_letters).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter(Dead);

impl DeadLetter {
    pub(crate) fn new(dead: Dead) -> DeadLetter {
        DeadLetter(dead)
    }

    /// Returns the id of the timer.
    #[must_use]
    pub fn id(&self) -> Id {
        self.0.row.id
    }

    /// Returns the handle of the timer, with which it can be cancelled or rescheduled once it is
    /// [redriven](crate::Durable::redrive).
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.row.handle()
    }

    /// Returns the full name of the handler that it was delivered to.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.0.row.handler
    }

    /// Returns when the timer was due; after a failure, when its last attempt was due.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.0.row.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns when the timer was due at its insert.
    #[must_use]
    pub fn first_due(&self) -> SystemTime {
        self.0.row.first_due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the number of attempts that were made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.row.failures.saturating_add(1)
    }

    /// Returns the time of the [calendar](crate::Calendar) occurrence, or `None` if the timer is not an occurrence.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        self.0.row.id.occurrence_time()
    }

    /// Returns the error of the last attempt.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.0.error
    }

    /// Returns when the timer became a dead letter.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.0.at.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the business key that the timer had. The key is free again.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.0.row.key.as_deref()
    }

    /// Returns the [tag](crate::NewTimer::tag) of the timer, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.0.row.tag()
    }

    /// Returns the payload that the timer was inserted with.
    #[must_use]
    pub fn payload(&self) -> &Arc<[u8]> {
        &self.0.row.payload
    }
}
