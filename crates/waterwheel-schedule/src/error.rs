use std::any::Any;
use std::error::Error;
use std::fmt;

/// The reason why a job did not produce a value.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// The job was cancelled or aborted.
    Cancelled,
    /// A run panicked.
    Panicked(Box<Panic>),
    /// A run returned this error.
    Failed(Box<dyn Error + Send + Sync>),
    /// A run exceeded its [time limit](crate::Repeat::time_limit).
    TimedOut,
    /// The scheduler was shut down, its runtime ended, or its timer was stopped.
    Shutdown,
}

impl JobError {
    /// Returns whether the job was ended from outside: [`Cancelled`](JobError::Cancelled) or [`Shutdown`](JobError::Shutdown).
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
            JobError::TimedOut => f.write_str("a run of the job exceeded its time limit"),
            JobError::Shutdown => f.write_str(
                "the job did not complete: its scheduler was shut down, its runtime ended, or its timer was stopped",
            ),
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

/// The panic of a run.
pub struct Panic {
    /// Behind a lock, which is never contended, so that the error is `Sync` like that of tokio's tasks.
    payload: std::sync::Mutex<Box<dyn Any + Send>>,
    message: Box<str>,
}

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Panic {
        let message = match payload.downcast_ref::<&str>() {
            Some(message) => *message,
            None => match payload.downcast_ref::<String>() {
                Some(message) => message.as_str(),
                None => "the panic payload is not a string",
            },
        };
        Panic {
            message: message.into(),
            payload: std::sync::Mutex::new(payload),
        }
    }

    /// Returns the panic message. If the payload is not a string, the message says so.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the panic payload, for [`resume_unwind`](std::panic::resume_unwind).
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

/// The error that the `try_` methods return if the scheduler does not accept a job. The job was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitError(pub(crate) Refusal);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Shutdown,
    AtCapacity,
}

impl SubmitError {
    /// Returns whether the job was refused because the scheduler was shut down.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.0 == Refusal::Shutdown
    }

    /// Returns whether the job was refused because the scheduler has as many jobs as its
    /// [`max_pending`](crate::Builder::max_pending) allows.
    #[must_use]
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Refusal::AtCapacity
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Refusal::Shutdown => {
                "the scheduler accepts no more jobs: it was shut down, or its runtime or timer has ended; create another one with `Scheduler::builder()`"
            }
            Refusal::AtCapacity => {
                "the scheduler has as many jobs as its `max_pending` allows: raise that limit, or submit again when a job has ended"
            }
        })
    }
}

impl Error for SubmitError {}
