//! The results of requests.

use waterwheel_durable_core::store::Handle;

use crate::error::Error;
use waterwheel_durable_core::engine::Answer;

/// The result of an insert. In both cases the timer exists, and the result can be used in place of its handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// A new timer was created.
    Created(Handle),
    /// Another timer of the same handler has the key: this one. Nothing was inserted.
    Existing(Handle),
}

/// The result of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The timer was cancelled and will not be delivered.
    Done,
    /// The handler of the timer is running, or has just returned. The timer is unaffected: it will be settled or
    /// retried.
    AlreadyFired,
    /// There is no such timer: it was settled or cancelled, is a dead letter, or never existed.
    NotFound,
}

/// The result of cancelling many timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CancelledTimers {
    /// The number of timers that were cancelled and will not be delivered.
    pub done: u64,
    /// The number of timers that are unaffected, because their handlers are running or have just returned.
    pub already_fired: u64,
}

/// The result of [erasing](crate::Durable::erase) a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// The result of cancelling the pending timer with the key, or [`NotFound`](Cancelled::NotFound) if there was none.
    pub pending: Cancelled,
    /// The number of dead letters with the key that were deleted.
    pub dead_letters: u64,
    /// Whether an archived record had the key. The record stays without it.
    pub is_archived: bool,
}

/// The result of a reschedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescheduled {
    /// The timer has the new due time.
    Done,
    /// The handler of the timer is running, or has just returned. The timer is unaffected.
    AlreadyFired,
    /// There is no such timer: it was settled or cancelled, is a dead letter, or never existed.
    NotFound,
}

/// The result of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redriven {
    /// The dead letter is a pending timer again.
    Done,
    /// There is no such dead letter.
    NotFound,
}

impl Inserted {
    /// Returns the handle of the timer, with which it can be cancelled or rescheduled. It can be stored as text.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        match self {
            Inserted::Created(handle) | Inserted::Existing(handle) => handle,
        }
    }

    /// Converts the result into the handle of the timer.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        match self {
            Inserted::Created(handle) | Inserted::Existing(handle) => handle,
        }
    }

    /// Returns whether the insert created the timer.
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self, Inserted::Created(_))
    }

    pub(crate) fn from_answer(answer: Answer) -> Result<Inserted, Error> {
        match answer {
            Answer::Created(handle) => Ok(Inserted::Created(handle)),
            Answer::Existing(handle) => Ok(Inserted::Existing(handle)),
            other => Err(Error::from_answer(other)),
        }
    }
}

impl AsRef<Handle> for Inserted {
    fn as_ref(&self) -> &Handle {
        self.handle()
    }
}

impl Cancelled {
    pub(crate) fn from_answer(answer: Answer) -> Result<Cancelled, Error> {
        match answer {
            Answer::Done => Ok(Cancelled::Done),
            Answer::AlreadyFired => Ok(Cancelled::AlreadyFired),
            Answer::NotFound => Ok(Cancelled::NotFound),
            other => Err(Error::from_answer(other)),
        }
    }
}

impl Rescheduled {
    pub(crate) fn from_answer(answer: Answer) -> Result<Rescheduled, Error> {
        match answer {
            Answer::Done => Ok(Rescheduled::Done),
            Answer::AlreadyFired => Ok(Rescheduled::AlreadyFired),
            Answer::NotFound => Ok(Rescheduled::NotFound),
            other => Err(Error::from_answer(other)),
        }
    }
}

impl Redriven {
    pub(crate) fn from_answer(answer: Answer) -> Result<Redriven, Error> {
        match answer {
            Answer::Done => Ok(Redriven::Done),
            Answer::NotFound => Ok(Redriven::NotFound),
            other => Err(Error::from_answer(other)),
        }
    }
}
