use std::error::Error;
use std::fmt;

use super::{Store, StoreError};

/// Opens a store, for `Durable::builder().store(…)`. Every [`Store`] implements this trait too, and opens as itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be opened as a store",
    label = "set a store with `.store(…)`, such as `Sqlite::new(path)` or `MemoryStore::new()`"
)]
pub trait OpenStore: Send + 'static {
    /// The store.
    type Store: Store + 'static;

    /// Opens the store, on a thread that may block. `is_wanted` returns whether the caller still waits for it: an opening
    /// that waits, for example for another process, calls it at least every 100 ms or so, and ends if it is not wanted.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    fn open_store(self, is_wanted: &dyn Fn() -> bool) -> Result<Self::Store, OpenError>;
}

impl<S: Store + 'static> OpenStore for S {
    type Store = S;

    fn open_store(self, _: &dyn Fn() -> bool) -> Result<S, OpenError> {
        Ok(self)
    }
}

/// A store could not be opened.
///
/// The message contains the file or the database, the cause and what to do. The `Debug` output is the same message, since that
/// is what is printed by a `main` that returns the error and by `unwrap`; `{:#?}` prints the structure.
pub struct OpenError {
    kind: Kind,
    cause: Box<dyn Error + Send + Sync>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Held(Option<u32>),
    Corrupt,
    AcknowledgedLost,
    Newer,
    Other,
}

impl OpenError {
    /// Creates an error with a message that says what to do.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
        OpenError::of(Kind::Other, cause)
    }

    /// Creates an error for a store that another service has open, with the id of its process.
    pub fn held(process: Option<u32>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
        OpenError::of(Kind::Held(process), cause)
    }

    /// Creates an error for a store that is damaged.
    pub fn corrupt(cause: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
        OpenError::of(Kind::Corrupt, cause)
    }

    /// Creates an error for a store in which acknowledged work is missing.
    pub fn acknowledged_lost(cause: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
        OpenError::of(Kind::AcknowledgedLost, cause)
    }

    /// Creates an error for a store that a newer version has written.
    pub fn newer(cause: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
        OpenError::of(Kind::Newer, cause)
    }

    fn of(kind: Kind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
        let cause = cause.into();
        OpenError { kind, cause }
    }

    /// Returns whether another service, in this process or another one, has the store open. It can be opened once that
    /// service has ended.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.kind, Kind::Held(_))
    }

    /// Returns the id of the process that has the store open, if [that is the cause](OpenError::is_held) and the id is
    /// known. It may be a process of another machine, which the message names.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        match self.kind {
            Kind::Held(process) => process,
            _ => None,
        }
    }

    /// Returns whether the store is one of timers, but damaged.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.kind == Kind::Corrupt
    }

    /// Returns whether acknowledged work is missing from the store. A file is opened nevertheless with `Sqlite::accept_loss`.
    #[must_use]
    pub fn is_acknowledged_lost(&self) -> bool {
        self.kind == Kind::AcknowledgedLost
    }

    /// Returns whether the store was written by a newer version of waterwheel.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        self.kind == Kind::Newer
    }
}

impl From<StoreError> for OpenError {
    /// The store has failed immediately after it was opened.
    fn from(error: StoreError) -> OpenError {
        OpenError::new(FirstCall(error))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => f
                .debug_struct("OpenError")
                .field("kind", &self.kind)
                .field("cause", &self.cause)
                .finish(),
            false => fmt::Display::fmt(self, f),
        }
    }
}

impl Error for OpenError {
    /// The source of the cause, since the message is that of the cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

/// A call failed while the store was opened.
#[derive(Debug)]
struct FirstCall(StoreError);

impl fmt::Display for FirstCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.0.cause();
        match self.0.is_definite() {
            true => write!(
                f,
                "the store refused a request while it was opened, and nothing was written: {cause}: open it again later"
            ),
            false => write!(
                f,
                "the store failed while it was opened: {cause}: check the log of the system, or of the database server, and open it again"
            ),
        }
    }
}

impl Error for FirstCall {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
