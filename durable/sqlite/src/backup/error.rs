use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::OpenError;

/// A file could not be copied.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The file cannot be read.
    Open(OpenError),
    /// The target, or a log beside its name, is there.
    Exists(PathBuf),
    /// This file is there: another copy is being made for the same target, or one was broken off. Then it can be deleted.
    Partial(PathBuf),
    /// The operating system refuses something.
    Io {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// SQLite cannot read the tables, or write the copy: they are damaged, the disk is full.
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
            BackupError::Open(_) => f.write_str("the file cannot be copied"),
            BackupError::Exists(path) => write!(f, "{} is there already", path.display()),
            BackupError::Partial(path) => write!(
                f,
                "{} is there: another copy is being made, or one was broken off (then delete it)",
                path.display()
            ),
            BackupError::Io { path, .. } => write!(f, "{} cannot be written", path.display()),
            BackupError::Sqlite(_) => f.write_str("the copy could not be made"),
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
