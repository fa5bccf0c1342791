use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_store::{ArchiveCursor, Archived, Due, Id};

/// The retained record of a delivered timer: see [`Namespace::delivered`](crate::Namespace::delivered). The payload is
/// not retained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    handler: Arc<str>,
    cursor: ArchiveCursor,
    archived: Archived,
}

impl Delivered {
    pub(super) fn new(handler: &Arc<str>, cursor: ArchiveCursor, archived: Archived) -> Delivered {
        Delivered {
            handler: Arc::clone(handler),
            cursor,
            archived,
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
        self.archived.id
    }

    /// Returns the full name of its handler.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// Returns when the timer was due; after a failure, when its last attempt was due.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.archived.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the time of the [calendar](crate::Calendar) occurrence, or `None` if the timer was not an occurrence.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        let (_, second) = self.archived.id.occurrence()?;
        Due::from_second(second).time()
    }

    /// Returns when the last attempt ended.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.archived.at.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the number of attempts that were made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.archived.failures.saturating_add(1)
    }

    /// Returns the business key, which stays taken as long as this record is retained.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.archived.key.as_deref()
    }
}
