use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::OpenError;
use crate::error::cure;

/// A file could not be copied. Its text says the cause and what to do.
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
            BackupError::Open(error) => write!(f, "the file cannot be copied: {error}"),
            BackupError::Exists(path) => {
                write!(
                    f,
                    "{} is there already: give the copy another name",
                    path.display()
                )
            }
            BackupError::Partial(path) => write!(
                f,
                "{} is there: another copy is being made, or one was broken off (then delete it)",
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
                "the copy could not be made: {what}: free space on its disk if that is full; if the file is damaged, `waterwheel-timers FILE check` says where"
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
