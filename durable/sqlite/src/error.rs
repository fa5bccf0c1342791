use std::error::Error;
use std::path::PathBuf;
use std::{fmt, io};

use super::schema::VERSION;

/// A file could not be opened as a store. The file is as it was, unless it was of an older version.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another store has the file open.
    Held {
        /// The file that it has locked.
        lock: PathBuf,
        /// The number of its process, if the lock file could be read.
        process: Option<u32>,
    },
    /// The lock file could not be created, locked or written.
    Lock {
        /// The lock file.
        lock: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is empty: no store was created in it. A [`SqliteStore`](super::SqliteStore) creates one, and a [`Reader`](super::Reader) has nothing to read.
    Empty,
    /// The file is no SQLite database.
    NotADatabase,
    /// The file is a SQLite database of another application.
    NotOurs,
    /// The file was written by a newer version of this crate.
    Newer {
        /// The version of its tables.
        found: i64,
    },
    /// The file is damaged: a table, or a part of one, is missing or cannot be read.
    Corrupt(Box<dyn Error + Send + Sync>),
    /// SQLite cannot open the file: a folder that does not exist, missing rights, a full disk.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl OpenError {
    pub(crate) fn of(error: rusqlite::Error) -> OpenError {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match error.sqlite_error_code() {
            Some(NotADatabase) => OpenError::NotADatabase,
            Some(DatabaseCorrupt) => OpenError::Corrupt(error.into()),
            _ => OpenError::Sqlite(error.into()),
        }
    }

    /// Whether a full disk can be why: SQLite has several words for that as it opens a file.
    pub(crate) fn may_be_full(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, SystemIoFailure};
        let OpenError::Sqlite(source) = self else {
            return false;
        };
        let error = source.downcast_ref::<rusqlite::Error>();
        let code = error.and_then(rusqlite::Error::sqlite_error_code);
        matches!(code, Some(CannotOpen | DiskFull | SystemIoFailure))
    }

    /// The same, of a file that has passed for a store: what is missing in it is damage.
    pub(crate) fn in_tables(error: rusqlite::Error) -> OpenError {
        use rusqlite::ErrorCode::{DatabaseCorrupt, Unknown};
        let is_damage = match error.sqlite_error_code() {
            Some(code) => matches!(code, DatabaseCorrupt | Unknown),
            None => true,
        };
        match is_damage {
            true => OpenError::Corrupt(error.into()),
            false => OpenError::of(error),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Held { lock, process } => {
                match process {
                    Some(process) => write!(f, "process {process} has the store open")?,
                    None => f.write_str("another process has the store open")?,
                }
                write!(f, " (it has locked {})", lock.display())
            }
            OpenError::Lock { lock, .. } => {
                write!(f, "the lock file {} cannot be taken", lock.display())
            }
            OpenError::Empty => f.write_str("the file is empty: no store was created in it"),
            OpenError::NotADatabase => f.write_str("the file is no SQLite database"),
            OpenError::NotOurs => {
                f.write_str("the file is a SQLite database of another application")
            }
            OpenError::Newer { found } => write!(
                f,
                "the file has tables of version {found}; this program knows versions up to {VERSION}"
            ),
            OpenError::Corrupt(_) => f.write_str("the file is damaged"),
            OpenError::Sqlite(_) => f.write_str("SQLite cannot open the file"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Lock { source, .. } => Some(source),
            OpenError::Corrupt(source) | OpenError::Sqlite(source) => Some(&**source),
            _ => None,
        }
    }
}
