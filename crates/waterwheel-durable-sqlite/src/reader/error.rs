use std::error::Error;
use std::fmt;
use std::path::Path;

use rusqlite::ErrorCode::{
    DatabaseBusy, DatabaseCorrupt, DatabaseLocked, FileLockingProtocolFailed, NotADatabase,
};

use crate::error::boxed;
use crate::lock::{self, Holder};

/// A file could not be read. The message contains the cause and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// Another process kept the file locked for seconds.
    Busy {
        /// The process that has the file open as a store.
        holder: Holder,
        /// The error of SQLite.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file is damaged: a page or a row is invalid.
    Corrupt(Box<dyn Error + Send + Sync>),
    /// SQLite cannot read the file.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl ReadError {
    pub(crate) fn of(error: rusqlite::Error, file: &Path) -> ReadError {
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => {
                let holder = lock::inspect(file);
                let source = error.into();
                ReadError::Busy { holder, source }
            }
            // An error without a code is a value that does not fit.
            None | Some(DatabaseCorrupt | NotADatabase) => ReadError::Corrupt(boxed(error)),
            Some(_) => ReadError::Sqlite(error.into()),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Busy { holder, source } => write!(
                f,
                "{} kept the file locked ({source}): {}",
                holder.describe(),
                holder.cure_or("try again")
            ),
            ReadError::Corrupt(what) => write!(
                f,
                "the file is damaged: {what}: restore a backup; run `waterwheel FILE check` to see what else is damaged"
            ),
            ReadError::Sqlite(what) => write!(
                f,
                "SQLite cannot read the file: {what}: check the system log for problems with its disk, and try again"
            ),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::Busy { source, .. }
            | ReadError::Corrupt(source)
            | ReadError::Sqlite(source) => Some(&**source),
        }
    }
}
