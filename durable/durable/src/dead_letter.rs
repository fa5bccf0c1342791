use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_store::{Dead, Due, Handle, Id};

/// A timer that was given up: see [`Durable::dead_letters`](crate::Durable::dead_letters).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter(Dead);

impl DeadLetter {
    pub(crate) fn new(dead: Dead) -> DeadLetter {
        DeadLetter(dead)
    }

    /// The timer's id.
    #[must_use]
    pub fn id(&self) -> Id {
        self.0.row.id
    }

    /// What names the timer once it is [redriven](crate::Durable::redrive), to cancel or to move it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.row.handle()
    }

    /// The handler that it was delivered to.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.0.row.handler
    }

    /// When it was due, or was to be tried for the last time.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.0.row.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// How many attempts it had.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.row.failures.saturating_add(1)
    }

    /// Which occurrence of a [calendar](crate::Calendar) it is, by its time, if it is one.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        let (_, second) = self.0.row.id.occurrence()?;
        Due::from_second(second).time()
    }

    /// What the last attempt said.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.0.error
    }

    /// When it was given up.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.0.at.time().unwrap_or(UNIX_EPOCH)
    }

    /// The business key that it had. The key is free again.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.0.row.key.as_deref()
    }

    /// What it was inserted with.
    #[must_use]
    pub fn payload(&self) -> &Arc<[u8]> {
        &self.0.row.payload
    }
}
