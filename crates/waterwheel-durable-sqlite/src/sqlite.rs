use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use waterwheel_durable_core::store::{OpenError, OpenStore};

use super::error::OpenError as Cause;
use super::options::OpenOptions;
use super::store::SqliteStore;

/// The minimum limit of a file: with less, the empty tables would leave no room for inserts.
const LEAST_LIMIT: u64 = 1 << 20;

/// A SQLite file with durable timers, and how to open it.
#[derive(Debug, Clone)]
#[must_use = "this does nothing until it is opened"]
pub struct Sqlite {
    path: PathBuf,
    limit: Option<u64>,
    is_brief: bool,
    accept_loss: bool,
}

impl Sqlite {
    /// Describes a file. Opening creates it if it does not exist; its directory must exist.
    pub fn new(path: impl AsRef<Path>) -> Sqlite {
        Sqlite {
            path: path.as_ref().to_owned(),
            limit: None,
            is_brief: false,
            accept_loss: false,
        }
    }

    /// Sets the maximum size of the file in bytes; at least 1 MiB. The WAL and the reserve are in addition to that: about
    /// 30 MiB together, and more while another process has a long read transaction. Default: limited only by the disk.
    ///
    /// Once the timers, dead letters and so on take seven eighths of the limit, inserts are answered with
    /// [`Full`](waterwheel_durable_core::store::Outcome::Full) until some are gone. The last eighth is for the work that the other timers
    /// need: retries, dead letters, archived records, and timers that are moved to finer buckets, which takes space for a
    /// while. If even that is used up, these are refused, while timers can still be settled and cancelled. A file that is
    /// already larger than the limit does not grow further.
    pub fn limit(mut self, bytes: u64) -> Sqlite {
        self.limit = Some(bytes.max(LEAST_LIMIT));
        self
    }

    /// Opens the file for a few commits only: the store creates no reserve. It therefore writes no more than the
    /// commits, and leaves no reserve owned by another user to the process that opens the file next. Not for services.
    pub fn brief(mut self) -> Sqlite {
        self.is_brief = true;
        self
    }

    /// Sets whether the file is opened even though acknowledged work is missing from it. By default this is [an
    /// error](crate::OpenError::AcknowledgedLost), so that it does not go unnoticed: after a crash, the `-wal` file was missing,
    /// truncated or damaged, or the database was replaced by an older file. A [`Notice`](waterwheel_durable_core::store::Notice) says what is
    /// missing. Default: `false`.
    ///
    /// Timers inserted in the missing commits are lost, and timers delivered or cancelled in them may be delivered
    /// again. No id is used twice. If the file may contain pages of different commits, it is read completely, and refused
    /// as [`Corrupt`](crate::OpenError::Corrupt) if it is damaged.
    pub fn accept_loss(mut self, accept_loss: bool) -> Sqlite {
        self.accept_loss = accept_loss;
        self
    }

    /// Opens the file: see [`SqliteStore::open`].
    ///
    /// # Errors
    ///
    /// Same as [`SqliteStore::open`].
    pub fn open(&self) -> Result<SqliteStore, Cause> {
        let mut options = OpenOptions {
            limit: self.limit,
            accept_loss: self.accept_loss,
            ..OpenOptions::DEFAULT
        };
        if self.is_brief {
            options.reserve = (0, 0);
        }
        SqliteStore::open_locked(&self.path, &options)
    }

    /// Prepares a file that no process has open for reading: deletes a WAL that must not be applied to it after an
    /// unclean exit. Does nothing to any other file.
    ///
    /// This is for programs that read the file with a [`Reader`](super::Reader) before it is opened as a store.
    ///
    /// # Errors
    ///
    /// Same as [`open`](Sqlite::open), as far as it can be detected without the tables:
    /// [`AcknowledgedLost`](crate::OpenError::AcknowledgedLost), unless that is accepted.
    pub fn prepare(&self) -> Result<(), Cause> {
        let options = OpenOptions {
            accept_loss: self.accept_loss,
            ..OpenOptions::DEFAULT
        };
        SqliteStore::prepare(&self.path, &options)
    }
}

impl OpenStore for Sqlite {
    type Store = SqliteStore;

    fn open_store(self, _: &dyn Fn() -> bool) -> Result<SqliteStore, OpenError> {
        self.open().map_err(|error| in_file(self.path, error))
    }
}

fn in_file(path: PathBuf, error: Cause) -> OpenError {
    let kind: fn(InFile) -> OpenError = match &error {
        Cause::Held { process, .. } => {
            let process = *process;
            return OpenError::held(process, InFile { path, error });
        }
        Cause::Corrupt(_) => OpenError::corrupt,
        Cause::AcknowledgedLost(_) => OpenError::acknowledged_lost,
        Cause::Newer { .. } => OpenError::newer,
        _ => OpenError::new,
    };
    kind(InFile { path, error })
}

/// An error with the file.
#[derive(Debug)]
struct InFile {
    path: PathBuf,
    error: Cause,
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Some errors name the file themselves, or the neighbouring file that is the problem.
        match &self.error {
            Cause::Io { .. } | Cause::Lock { .. } => self.error.fmt(f),
            error => write!(f, "{}: {error}", self.path.display()),
        }
    }
}

impl Error for InFile {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
