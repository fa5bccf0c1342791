use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::OpenError;
use crate::error::cure;

/// A file could not be copied. The message contains the cause and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The file cannot be read.
    Open(OpenError),
    /// The target, or a WAL or journal next to it, already exists.
    Exists(PathBuf),
    /// This file exists: another copy for the same target is in progress, or one was interrupted. In that case, the
    /// file can be deleted.
    Partial(PathBuf),
    /// The operating system reported an error.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// SQLite cannot read the tables or write the copy, for example because the tables are damaged or the disk is full.
    Sqlite(Box<dyn Error + Send + Sync>),
}

impl BackupError {
    pub(crate) fn io(path: &Path, source: io::Error) -> BackupError {
        let path = path.to_owned();
        BackupError::Io { path, source }
    }
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Open(error) => write!(f, "the file cannot be copied: {error}"),
            BackupError::Exists(path) => {
                write!(
                    f,
                    "{} already exists: choose another name for the copy",
                    path.display()
                )
            }
            BackupError::Partial(path) => write!(
                f,
                "{} exists: another copy is in progress, or one was interrupted (then delete this file)",
                path.display()
            ),
            BackupError::Io { path, source } => write!(
                f,
                "{} cannot be written: {source}: {}",
                path.display(),
                cure(source)
            ),
            BackupError::Sqlite(what) => write!(
                f,
                "the copy could not be made: {what}: free space on its disk if that is full; if the file is damaged, run `waterwheel FILE check` to see where"
            ),
        }
    }
}

impl Error for BackupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BackupError::Open(source) => Some(source),
            BackupError::Io { source, .. } => Some(source),
            BackupError::Sqlite(source) => Some(&**source),
            BackupError::Exists(_) | BackupError::Partial(_) => None,
        }
    }
}
