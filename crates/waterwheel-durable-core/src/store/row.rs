use std::sync::Arc;

use super::{Due, Handle, Id};

/// A timer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The id, which never changes.
    pub id: Id,
    /// When the timer is due, or is to be retried.
    pub due: Due,
    /// The full name of its handler.
    pub handler: Arc<str>,
    /// The number of failed attempts.
    pub failures: u32,
    /// The recorded [starts](crate::store::Op::Start): their number in the lower 32 bits, and above them the series of runs to
    /// which they belong. At most 2⁶³ − 1. A retry and a reschedule reset it.
    pub starts: u64,
    /// Whether the store records that the timer is no longer due at the time in its [`Handle`].
    pub has_moved: bool,
    /// The business key, which only one timer has at a time.
    pub key: Option<Arc<[u8]>>,
    /// The payload for the handler.
    pub payload: Arc<[u8]>,
}

impl Row {
    /// Creates the row of a timer without a key, as it is inserted.
    #[must_use]
    pub fn new(
        id: Id,
        due: Due,
        handler: impl Into<Arc<str>>,
        payload: impl Into<Arc<[u8]>>,
    ) -> Row {
        Row {
            id,
            due,
            handler: handler.into(),
            failures: 0,
            starts: 0,
            has_moved: false,
            key: None,
            payload: payload.into(),
        }
    }

    /// Returns the handle of the timer, unless it [has moved](Row::has_moved) since its insert.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            id: self.id,
            due: self.due,
            handler: Arc::clone(&self.handler),
        }
    }

    /// Returns the number of recorded [starts](Row::starts), in whichever series.
    #[must_use]
    pub fn start_count(&self) -> u32 {
        u32::try_from(self.starts & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// Returns the size in bytes of the key and the payload.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.key.as_ref().map_or(0, |key| key.len())
    }

    /// Returns the record of the timer if it is archived at this time.
    #[must_use]
    pub fn archived(&self, at: Due) -> Archived {
        Archived {
            id: self.id,
            due: self.due,
            at,
            failures: self.failures,
            key: self.key.clone(),
        }
    }

    /// Returns the cursor of the row once it is in a bucket of [`Level::Second`](crate::store::Level::Second).
    #[must_use]
    pub fn cursor(&self) -> RowCursor {
        RowCursor {
            second: self.due.second(),
            id: self.id,
        }
    }
}

/// A dead letter: a timer that is no longer retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// The timer as it was in its last attempt.
    pub row: Row,
    /// When it became a dead letter.
    pub at: Due,
    /// The error of the last attempt.
    pub error: Arc<str>,
}

impl Dead {
    /// Returns the size in bytes of the key, the payload and the error.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.row.bytes() + self.error.len()
    }
}

/// A position among the rows of a handler in the buckets of [`Level::Second`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowCursor {
    /// The number of the bucket.
    pub second: i64,
    /// The id of the row.
    pub id: Id,
}

impl RowCursor {
    /// The position before all rows.
    pub const START: RowCursor = RowCursor::before(i64::MIN);

    /// Returns the position before all rows of this bucket.
    #[must_use]
    pub const fn before(second: i64) -> RowCursor {
        RowCursor {
            second,
            id: Id::NONE,
        }
    }
}

/// The record of a delivered timer that was [archived](crate::store::Op::Archive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The id of the timer.
    pub id: Id,
    /// When the timer was due; after a failure, when its last attempt was due.
    pub due: Due,
    /// When the timer was settled.
    pub at: Due,
    /// The number of failed attempts before the last one.
    pub failures: u32,
    /// The business key of the timer, which stays taken as long as this record exists.
    pub key: Option<Arc<[u8]>>,
}

/// A position in the archive of a handler: by day, and within a day in the order of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveCursor {
    /// The day on which the timer was settled: days since the start of 1970 (UTC).
    pub day: i64,
    /// The number of the commit, counted from 0 on each day.
    pub block: u32,
    /// The position within the commit.
    pub index: u32,
}

impl ArchiveCursor {
    /// The position before all records.
    pub const START: ArchiveCursor = ArchiveCursor::before(i64::MIN);

    /// Returns the position before all records of this day.
    #[must_use]
    pub const fn before(day: i64) -> ArchiveCursor {
        ArchiveCursor {
            day,
            block: 0,
            index: 0,
        }
    }

    /// Returns the next position within the same commit, whether or not there is a record.
    #[must_use]
    pub const fn next(self) -> ArchiveCursor {
        ArchiveCursor {
            index: self.index.saturating_add(1),
            ..self
        }
    }
}
