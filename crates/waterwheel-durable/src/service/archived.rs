use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_durable_core::store::{self as store, ArchiveCursor, Id};

/// The archived record of a settled timer: see [`Namespace::archived`](crate::Namespace::archived). The payload is
/// not archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    handler: Arc<str>,
    cursor: ArchiveCursor,
    record: store::Archived,
}

impl Archived {
    pub(super) fn new(
        handler: &Arc<str>,
        cursor: ArchiveCursor,
        record: store::Archived,
    ) -> Archived {
        Archived {
            handler: Arc::clone(handler),
            cursor,
            record,
        }
    }

    /// Returns the position of the record: the next page starts after it.
    #[must_use]
    pub fn cursor(&self) -> ArchiveCursor {
        self.cursor
    }

    /// Returns the id of the timer.
    #[must_use]
    pub fn id(&self) -> Id {
        self.record.id
    }

    /// Returns the full name of its handler.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// Returns when the timer was due; after a failure, when its last attempt was due.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.record.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the time of the [calendar](crate::Calendar) occurrence, or `None` if the timer was not an occurrence.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        self.record.id.occurrence_time()
    }

    /// Returns when the last attempt ended.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.record.at.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the number of attempts that were made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.record.failures.saturating_add(1)
    }

    /// Returns the business key, which stays taken as long as this record is archived.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.record.key.as_deref()
    }
}
