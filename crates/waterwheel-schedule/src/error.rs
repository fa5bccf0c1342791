use std::any::Any;
use std::error::Error;
use std::fmt;

/// Why a job gave no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// It was cancelled.
    Cancelled,
    /// A run panicked.
    Panicked(Box<Panic>),
    /// A run gave this error.
    Failed(Box<dyn Error + Send + Sync>),
    /// A run took longer than its [time limit](crate::Repeat::time_limit).
    TimedOut,
    /// Its scheduler was shut down, or its runtime ended.
    Shutdown,
}

impl JobError {
    /// Whether the job was ended from outside: [`Cancelled`](JobError::Cancelled) or [`Shutdown`](JobError::Shutdown).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, JobError::Cancelled | JobError::Shutdown)
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Cancelled => f.write_str("the job was cancelled"),
            JobError::Panicked(panic) => {
                write!(f, "a run of the job panicked: {}", panic.message())
            }
            JobError::Failed(_) => f.write_str("a run of the job failed"),
            JobError::TimedOut => f.write_str("a run of the job took longer than its time limit"),
            JobError::Shutdown => f.write_str("the scheduler of the job was shut down"),
        }
    }
}

impl Error for JobError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            JobError::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}

/// What a run panicked with.
pub struct Panic {
    /// Behind a lock that is never contended, so that the error is `Sync`, as that of tokio's tasks.
    payload: std::sync::Mutex<Box<dyn Any + Send>>,
    message: Box<str>,
}

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Panic {
        let message = match payload.downcast_ref::<&str>() {
            Some(message) => *message,
            None => match payload.downcast_ref::<String>() {
                Some(message) => message.as_str(),
                None => "a payload that is no string",
            },
        };
        Panic {
            message: message.into(),
            payload: std::sync::Mutex::new(payload),
        }
    }

    /// The panic's message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The panic's payload, for [`resume_unwind`](std::panic::resume_unwind).
    #[must_use]
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        self.payload
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message).finish()
    }
}

/// Why a job was not taken. The job was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitError(pub(crate) Refusal);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Shutdown,
    AtCapacity,
}

impl SubmitError {
    /// Whether the scheduler was shut down.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.0 == Refusal::Shutdown
    }

    /// Whether the scheduler has as many jobs as its [`max_pending`](crate::Builder::max_pending) allows.
    #[must_use]
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Refusal::AtCapacity
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Refusal::Shutdown => "the scheduler was shut down: it takes no more jobs",
            Refusal::AtCapacity => {
                "the scheduler has as many jobs as its `max_pending` allows: raise it, or try again later"
            }
        })
    }
}

impl Error for SubmitError {}
