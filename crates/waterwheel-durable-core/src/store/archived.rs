use std::sync::Arc;

use super::{Due, Id};

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
