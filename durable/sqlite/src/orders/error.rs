use std::error::Error;
use std::fmt;

use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};

use crate::OpenError;
use crate::schema::VERSION;

/// Nothing could be asked of the process that has a file open.
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
    /// The process has written all the time.
    Busy(Box<dyn Error + Send + Sync>),
    /// SQLite cannot write the order: missing rights, a full disk.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl AskError {
    pub(crate) fn of(error: rusqlite::Error) -> AskError {
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => AskError::Busy(error.into()),
            _ => AskError::Sqlite(error.into()),
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
            AskError::Open(_) => f.write_str("the file cannot be opened"),
            AskError::Older { found } => write!(
                f,
                "the file has tables of version {found}, and orders begin with version {VERSION}"
            ),
            AskError::Busy(_) => f.write_str("the file was being written to all the time"),
            AskError::Sqlite(_) => f.write_str("the order cannot be written"),
        }
    }
}

impl Error for AskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            AskError::Open(source) => Some(source),
            AskError::Busy(source) | AskError::Sqlite(source) => Some(&**source),
            AskError::Older { .. } => None,
        }
    }
}
