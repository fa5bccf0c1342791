use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_durable_core::store::{Handle, Id, PendingCursor, Row};

/// A page of pending timers: see [`Durable::pending`](crate::Durable::pending).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingPage {
    /// The timers.
    pub timers: Vec<PendingTimer>,
    /// The position after which the next page starts, or `None` if this is the last page.
    pub next: Option<PendingCursor>,
}

/// A timer that is pending, as it is stored: see [`Durable::get`](crate::Durable::get),
/// [`find`](crate::Durable::find) and [`pending`](crate::Durable::pending). It can be passed wherever a [`Handle`] is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTimer {
    row: Row,
    handle: Handle,
}

impl PendingTimer {
    pub(crate) fn new(row: Row) -> PendingTimer {
        let handle = row.handle();
        PendingTimer { row, handle }
    }

    /// Returns the id of the timer.
    #[must_use]
    pub fn id(&self) -> Id {
        self.row.id
    }

    /// Returns the handle that the insert of the timer returned.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the handle that the insert of the timer returned.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        self.handle
    }

    /// Returns the full name of its handler.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.row.handler
    }

    /// Returns when the timer is due, or is to be retried. It may be in the past: the timer may be with its handler, or
    /// waits for one, or its namespace is paused or at a limit.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.row.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns when the timer was due at its insert, whatever has moved it since.
    #[must_use]
    pub fn first_due(&self) -> SystemTime {
        self.row.first_due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the number of attempts that have failed. An attempt that is running or was ended by a crash does not
    /// count.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.row.failures
    }

    /// Returns the time of the [calendar](crate::Calendar) occurrence, or `None` if the timer is not an occurrence.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        self.row.id.occurrence_time()
    }

    /// Returns the business key of the timer, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.row.key.as_deref()
    }

    /// Returns the [tag](crate::NewTimer::tag) of the timer, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.row.tag()
    }

    /// Returns the payload that the timer was inserted with.
    #[must_use]
    pub fn payload(&self) -> &Arc<[u8]> {
        &self.row.payload
    }
}

impl AsRef<Handle> for PendingTimer {
    fn as_ref(&self) -> &Handle {
        &self.handle
    }
}
