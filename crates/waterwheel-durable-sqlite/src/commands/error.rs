use std::error::Error;
use std::fmt;
use std::path::Path;

use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};

use crate::OpenError;
use crate::lock::{self, Holder};

/// No command could be sent to the process that has a file open. The message contains the cause and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum SendError {
    /// The file cannot be opened.
    Open(OpenError),
    /// Another process kept the file locked, or was stopped while it had it locked.
    Busy {
        /// The process that has the file open as a store.
        holder: Holder,
        /// The error of SQLite.
        source: Box<dyn Error + Send + Sync>,
    },
    /// SQLite cannot write the command, for example because of missing permissions or a full disk.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl SendError {
    pub(crate) fn of(error: rusqlite::Error, file: &Path) -> SendError {
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => SendError::Busy {
                holder: lock::inspect(file),
                source: error.into(),
            },
            _ => match OpenError::of(error).of_file(file, true) {
                OpenError::Sqlite(source) => SendError::Sqlite(source),
                open => SendError::Open(open),
            },
        }
    }
}

impl From<OpenError> for SendError {
    fn from(error: OpenError) -> SendError {
        SendError::Open(error)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Open(error) => write!(f, "the request cannot be written: {error}"),
            SendError::Busy { holder, source } => write!(
                f,
                "the request cannot be written, because {} has kept the file locked ({source}): {}",
                holder.describe(),
                holder.cure_or("try again with a longer wait")
            ),
            SendError::Sqlite(what) => write!(
                f,
                "the request cannot be written: {what}: check the system log for problems with the disk, and try again"
            ),
        }
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SendError::Open(source) => Some(source),
            SendError::Busy { source, .. } | SendError::Sqlite(source) => Some(&**source),
        }
    }
}
