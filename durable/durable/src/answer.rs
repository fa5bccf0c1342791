//! What came of a request.

use waterwheel_store::Handle;

use crate::engine::Answer;
use crate::error::Error;

/// What came of an insert. Either way there is a timer, and this is as good as its handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The timer is new.
    Created(Handle),
    /// Another timer of the handler has the key: this one.
    Existing(Handle),
}

/// What came of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is not delivered any more.
    Done,
    /// It is with its handler, or has just been. It stays to be settled, or tried again.
    AlreadyFired,
    /// There is no such timer: it was settled, cancelled or given up, or never was.
    NotFound,
}

/// What came of a reschedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescheduled {
    /// It has the new due time.
    Done,
    /// It is with its handler, or has just been.
    AlreadyFired,
    /// There is no such timer: it was settled, cancelled or given up, or never was.
    NotFound,
}

/// What came of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redriven {
    /// It is a timer again.
    Done,
    /// There is no such dead letter.
    NotFound,
}

impl Inserted {
    /// What names the timer, to cancel or to move it. It can be stored as text.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        match self {
            Inserted::Created(handle) | Inserted::Existing(handle) => handle,
        }
    }

    /// The handle itself.
    #[must_use]
    pub fn into_handle(self) -> Handle {
        match self {
            Inserted::Created(handle) | Inserted::Existing(handle) => handle,
        }
    }

    /// Whether the timer was not there before.
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
