use std::error::Error;
use std::fmt;
use std::path::Path;

use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};

use crate::OpenError;
use crate::lock::{self, Holder};
use crate::schema::VERSION;

/// Nothing could be asked of the process that has a file open. Its text says the cause and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The file cannot be opened.
    Open(OpenError),
    /// The file is of a version that has no orders: it was opened last by a program of that version.
    Older {
        /// The version of its tables.
        found: i64,
    },
    /// Another process has written all the time, or was stopped as it did.
    Busy {
        /// Who has the file open as a store.
        holder: Holder,
        /// What SQLite says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// SQLite cannot write the order: missing rights, a full disk.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl AskError {
    pub(crate) fn of(error: rusqlite::Error, file: &Path) -> AskError {
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => AskError::Busy {
                holder: lock::look(file),
                source: error.into(),
            },
            _ => match OpenError::of(error).of_file(file, true) {
                OpenError::Sqlite(source) => AskError::Sqlite(source),
                open => AskError::Open(open),
            },
        }
    }
}

impl From<OpenError> for AskError {
    fn from(error: OpenError) -> AskError {
        AskError::Open(error)
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Open(error) => write!(f, "the order cannot be written: {error}"),
            AskError::Older { found } => write!(
                f,
                "the file has tables of version {found}, and orders begin with version {VERSION}: start a service of this version on it first"
            ),
            AskError::Busy { holder, source } => write!(
                f,
                "the order cannot be written, {} has kept the file to itself ({source}): try again, with more time to wait, or end that process",
                holder.in_words()
            ),
            AskError::Sqlite(what) => write!(
                f,
                "the order cannot be written: {what}: look at what the system says of the disk, and try again"
            ),
        }
    }
}

impl Error for AskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            AskError::Open(source) => Some(source),
            AskError::Busy { source, .. } | AskError::Sqlite(source) => Some(&**source),
            AskError::Older { .. } => None,
        }
    }
}
