use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_store::{Archived, Due, Id, Mark};

/// What is kept of a timer that was delivered: see [`Namespace::delivered`](crate::Namespace::delivered). Its payload is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    handler: Arc<str>,
    mark: Mark,
    archived: Archived,
}

impl Delivered {
    pub(super) fn new(handler: &Arc<str>, mark: Mark, archived: Archived) -> Delivered {
        Delivered {
            handler: Arc::clone(handler),
            mark,
            archived,
        }
    }

    /// Where it stands: the next page begins after it.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The timer's id.
    #[must_use]
    pub fn id(&self) -> Id {
        self.archived.id
    }

    /// The full name of its handler.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// When it was due, or was to be tried for the last time.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.archived.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Which occurrence of a [calendar](crate::Calendar) it was, by its time, if it was one.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        let (_, second) = self.archived.id.occurrence()?;
        Due::from_second(second).time()
    }

    /// When its last attempt ended.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.archived.at.time().unwrap_or(UNIX_EPOCH)
    }

    /// How many attempts it had.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.archived.failures.saturating_add(1)
    }

    /// Its business key, which is taken as long as this is kept.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.archived.key.as_deref()
    }
}
