use std::sync::Arc;

use super::{Due, Id};

/// What is kept of a timer that was [archived](crate::Op::Archive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The timer.
    pub id: Id,
    /// When it was due, or was tried for the last time.
    pub due: Due,
    /// When it was settled.
    pub at: Due,
    /// How many attempts had failed before the last one.
    pub failures: u32,
    /// Its business key, which stays taken as long as this is kept.
    pub key: Option<Arc<[u8]>>,
}

/// Where what is archived stands among what is archived of a handler: by the day, and in the order of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The day on which it was settled, counted from the start of 1970 (UTC).
    pub day: i64,
    /// The commit, counted from 0 on each day.
    pub block: u32,
    /// The place in the commit.
    pub index: u32,
}

impl Mark {
    /// Before all.
    pub const START: Mark = Mark::before(i64::MIN);

    /// Before all of this day.
    #[must_use]
    pub const fn before(day: i64) -> Mark {
        Mark {
            day,
            block: 0,
            index: 0,
        }
    }

    /// The one that follows it in its commit, if there is one.
    #[must_use]
    pub const fn next(self) -> Mark {
        Mark {
            index: self.index.saturating_add(1),
            ..self
        }
    }
}
