use std::error::Error;
use std::fmt;

use rusqlite::ErrorCode::{
    DatabaseBusy, DatabaseCorrupt, DatabaseLocked, FileLockingProtocolFailed, NotADatabase,
};

/// A file could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// Another process had the file for itself, for seconds.
    Busy(Box<dyn Error + Send + Sync>),
    /// The file is damaged: a page or a row makes no sense.
    Corrupt(Box<dyn Error + Send + Sync>),
    /// SQLite cannot read it.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl ReadError {
    pub(crate) fn of(error: rusqlite::Error) -> ReadError {
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => {
                ReadError::Busy(error.into())
            }
            // Without a code it is a value that does not fit.
            None | Some(DatabaseCorrupt | NotADatabase) => ReadError::Corrupt(error.into()),
            Some(_) => ReadError::Sqlite(error.into()),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadError::Busy(_) => "another process had the file for itself",
            ReadError::Corrupt(_) => "the file is damaged",
            ReadError::Sqlite(_) => "SQLite cannot read the file",
        })
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::Busy(source) | ReadError::Corrupt(source) | ReadError::Sqlite(source) => {
                Some(&**source)
            }
        }
    }
}
