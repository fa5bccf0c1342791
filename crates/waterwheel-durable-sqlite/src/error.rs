//! The errors of the store: what each says, and what is certain after it.
//!
//! The errors of SQLite's binding refer to columns by number and to types by its own names, while the reader of a log knows the tables and the rows.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rusqlite::types::Type;
use rusqlite::{Error as Sqlite, ErrorCode};
use waterwheel_durable_core::store::StoreError;

use super::files::{index_of, wal_of};
use super::lock::Holder;
use super::schema::VERSION;

/// A file could not be opened as a store. The file is unchanged, unless it was of an older version.
///
/// The message contains the cause and what to do, including the error of the operating system or of SQLite.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another store has the file open.
    Held {
        /// The lock file.
        lock: PathBuf,
        /// The id of its process, if the lock file could be read.
        process: Option<u32>,
    },
    /// The lock file could not be created, locked or written.
    Lock {
        /// The lock file.
        lock: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refused access to the file or its directory: it does not exist, the user has no permission,
    /// it is read-only, or the disk is full.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process kept the file locked for seconds.
    Busy {
        /// The process that has the file open as a store.
        holder: Holder,
        /// The error of SQLite.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file is empty: no store has been created in it. A [`SqliteStore`](super::SqliteStore) would create one, but
    /// a [`Reader`](super::Reader) has nothing to read.
    Empty,
    /// The file is not a SQLite database.
    NotADatabase,
    /// The file is a SQLite database of another application.
    NotOurs,
    /// The file was written by a newer version of this crate.
    Newer {
        /// The version of its tables.
        found: i64,
    },
    /// The file was written by an older version of this crate. A [`SqliteStore`](super::SqliteStore) upgrades it when
    /// it is opened; a [`Reader`](super::Reader) and others that do not change its tables refuse it.
    Older {
        /// The version of its tables.
        found: i64,
    },
    /// The file was written by a development version, from before the first release.
    Development,
    /// The file is damaged: a table or a part of one is missing, or cannot be read.
    Corrupt(Box<dyn Error + Send + Sync>),
    /// Acknowledged work is gone. [`Sqlite::accept_loss`](super::Sqlite::accept_loss) opens the file nevertheless.
    AcknowledgedLost(Loss),
    /// After an unclean exit, the WAL is older than the file, so reading the file with it would give wrong results.
    /// Opening the file as a store deletes it.
    StaleWal(PathBuf),
    /// SQLite cannot open the file, and the operating system does not say why.
    Sqlite(Box<dyn Error + Send + Sync>),
}

/// Acknowledged work that is gone, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The last commits are neither in the file nor in its WAL, which is missing, truncated or damaged.
    #[non_exhaustive]
    Commits {
        /// The opening that acknowledged the last of them.
        opening: u64,
        /// The first missing commit, counted since the file has had a record of acknowledged commits. The actual first
        /// one may be earlier, if a part of the WAL was already in the file.
        first: u64,
        /// The last missing commit.
        last: u64,
        /// Whether the WAL was being copied into the file: it may contain pages of different commits.
        is_torn: bool,
    },
    /// The file is an older copy: a later opening than its own has acknowledged commits.
    #[non_exhaustive]
    OlderFile {
        /// The last opening of the file.
        opening: u64,
        /// The last opening that has acknowledged a commit.
        acknowledged: u64,
    },
    /// It is not known whether something is gone: the record of acknowledged commits is damaged.
    #[non_exhaustive]
    Unknown {
        /// The file with the record.
        note: PathBuf,
    },
}

impl Loss {
    /// The advice on how to recover the work.
    fn cure(&self) -> &'static str {
        match self {
            Loss::Commits { .. } => "put the original `-wal` of the file back, or restore a backup",
            Loss::OlderFile { .. } => "put the newer file back, together with its `-wal`",
            Loss::Unknown { .. } => {
                "put the original `-acknowledged` of the file back if you have it, or restore a backup"
            }
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Commits {
                opening,
                first,
                last,
                is_torn,
            } => {
                let torn = match is_torn {
                    true => ", and the file may contain parts of them",
                    false => "",
                };
                write!(
                    f,
                    "acknowledged work is gone: the `-wal` is missing, truncated or damaged, and commits {first} to {last} are lost with it (the last of them was \
                     acknowledged after the file was opened for the {} time){torn}",
                    ordinal(*opening)
                )
            }
            Loss::OlderFile {
                opening,
                acknowledged,
            } => write!(
                f,
                "acknowledged work is gone: the file is an older copy: it has been opened {}, but commits were acknowledged after it was opened for the {} time",
                times(*opening),
                ordinal(*acknowledged)
            ),
            Loss::Unknown { note } => write!(
                f,
                "it is not known whether acknowledged work is gone: {} is damaged",
                note.display()
            ),
        }
    }
}

impl OpenError {
    pub(crate) fn of(error: rusqlite::Error) -> OpenError {
        use ErrorCode::{
            DatabaseBusy, DatabaseCorrupt, DatabaseLocked, FileLockingProtocolFailed, NotADatabase,
        };
        match error.sqlite_error_code() {
            Some(NotADatabase) => OpenError::NotADatabase,
            Some(DatabaseCorrupt) => OpenError::Corrupt(boxed(error)),
            Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => OpenError::Busy {
                holder: Holder::Unknown,
                source: error.into(),
            },
            None if describe_damage(&error).is_some() => OpenError::Corrupt(boxed(error)),
            _ => OpenError::Sqlite(error.into()),
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> OpenError {
        let path = path.to_owned();
        OpenError::Io { path, source }
    }

    /// Adds the reason that the operating system gives, and the process that has the file open: SQLite uses the same words for many reasons. The file must not
    /// be open in this process.
    pub(crate) fn of_file(self, path: &Path, is_written: bool) -> OpenError {
        match self {
            OpenError::Busy { source, .. } => {
                let holder = super::lock::inspect(path);
                OpenError::Busy { holder, source }
            }
            OpenError::Sqlite(source) => match why_refused(path, is_written, &*source) {
                Some((path, source)) => OpenError::Io { path, source },
                None => OpenError::Sqlite(source),
            },
            other => other,
        }
    }

    /// Whether the disk may be full: SQLite has several errors for that when it opens a file.
    pub(crate) fn may_be_full(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, SystemIoFailure};
        let OpenError::Sqlite(source) = self else {
            return false;
        };
        let error = source.downcast_ref::<rusqlite::Error>();
        let code = error.and_then(rusqlite::Error::sqlite_error_code);
        matches!(code, Some(CannotOpen | DiskFull | SystemIoFailure))
    }

    /// Converts an error of a file that was recognised as a store: a missing part is damage.
    pub(crate) fn in_tables(error: rusqlite::Error) -> OpenError {
        use rusqlite::ErrorCode::{DatabaseCorrupt, Unknown};
        let is_damage = match error.sqlite_error_code() {
            Some(code) => matches!(code, DatabaseCorrupt | Unknown),
            None => true,
        };
        match is_damage {
            true => OpenError::Corrupt(boxed(error)),
            false => OpenError::of(error),
        }
    }
}

/// Why the operating system refuses access to one of the files or the directory, if it does.
fn why_refused(
    path: &Path,
    is_written: bool,
    error: &(dyn Error + Send + Sync + 'static),
) -> Option<(PathBuf, io::Error)> {
    let code = error.downcast_ref::<rusqlite::Error>()?.sqlite_error_code();
    if code == Some(ErrorCode::DiskFull) {
        return Some((path.to_owned(), io::ErrorKind::StorageFull.into()));
    }
    let is_there = |file: &&PathBuf| file.exists();
    let files = [path.to_owned(), wal_of(path), index_of(path)];
    let refused = |file: &PathBuf| {
        let mut options = File::options();
        let opened = options.read(true).write(is_written).open(file);
        Some((file.clone(), opened.err()?))
    };
    if let Some(refused) = files.iter().filter(is_there).find_map(refused) {
        return Some(refused);
    }
    let folder = path.parent()?;
    if let Err(refused) = writable(folder) {
        return Some((folder.to_owned(), refused));
    }
    let missing = path.metadata().err()?;
    Some((path.to_owned(), missing))
}

/// Whether files can be created in a directory.
#[cfg(unix)]
fn writable(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(not(unix))]
fn writable(folder: &Path) -> io::Result<()> {
    std::fs::metadata(folder).map(drop)
}

/// The advice about an error of the operating system.
pub(crate) fn cure(error: &io::Error) -> &'static str {
    use io::ErrorKind::{
        FileTooLarge, IsADirectory, NotADirectory, NotFound, PermissionDenied, QuotaExceeded,
        ReadOnlyFilesystem, StorageFull,
    };
    match error.kind() {
        NotFound | NotADirectory => "correct the path, or create its directory",
        IsADirectory => "give the path of a file in it",
        PermissionDenied => {
            "give the user of this process access to the file, to the files next to it and to their directory"
        }
        ReadOnlyFilesystem => "mount its file system read-write",
        StorageFull => "free some space on its disk",
        QuotaExceeded => "free some space, or raise the quota",
        FileTooLarge => "raise the file size limit (`ulimit -f`)",
        _ => "check the system log for the cause, and try again",
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Held { lock, process } => {
                let holder = Holder::Process(*process);
                write!(
                    f,
                    "{} has the file open (it holds the lock on {}): {}, or open another file",
                    holder.describe(),
                    lock.display(),
                    holder.cure()
                )
            }
            // The lock file is a link or a directory.
            OpenError::Lock { lock, source }
                if matches!(
                    source.kind(),
                    io::ErrorKind::Other | io::ErrorKind::IsADirectory
                ) => write!(
                f,
                "the lock file {} cannot be locked: {source}: delete it while no process has the file open",
                lock.display()
            ),
            OpenError::Lock { lock, source } => write!(
                f,
                "the lock file {} cannot be locked: {source}: {}",
                lock.display(),
                cure(source)
            ),
            OpenError::Io { path, source } => {
                write!(f, "{} cannot be opened: {source}: {}", path.display(), cure(source))
            }
            OpenError::Busy { holder, source } => write!(
                f,
                "{} kept the file locked ({source}): {}",
                holder.describe(),
                holder.cure_or("try again")
            ),
            OpenError::Empty => f.write_str(
                "the file is empty: correct the path, or start a service on it first",
            ),
            OpenError::NotADatabase => f.write_str(
                "the file is not a SQLite database: correct the path; if it contained timers, it was overwritten: restore a backup",
            ),
            OpenError::NotOurs => f.write_str(
                "the file is a SQLite database of another application: use a separate file for the timers",
            ),
            OpenError::Newer { found } => write!(
                f,
                "the file has tables of version {found}, but this program supports versions up to {VERSION}: use a program that is at least as new as the one \
                 that wrote the file, or restore a backup from before"
            ),
            OpenError::Older { found } => write!(
                f,
                "the file has tables of version {found}, but this program supports version {VERSION}: start a service of the same release on it, which upgrades the file"
            ),
            OpenError::Development => f.write_str(
                "the file was written by a development version from before the first release, whose tables are not supported: let that version deliver its timers, and start with \
                 a new file",
            ),
            OpenError::Corrupt(what) => write!(
                f,
                "the file is damaged: {what}: restore a backup; before you delete the file and its `-wal`, run `waterwheel FILE check` to see what else is damaged"
            ),
            OpenError::AcknowledgedLost(loss) => write!(
                f,
                "{loss}: {}; to continue without what is gone, open the file with `accept_loss(true)`, or run a `waterwheel` command that changes \
                 something with `--accept-loss`",
                loss.cure()
            ),
            OpenError::StaleWal(wal) => write!(
                f,
                "{} is truncated or damaged and older than the file, which cannot be read with it: start the service, which deletes it; nothing is lost by that",
                wal.display()
            ),
            OpenError::Sqlite(what) => write!(
                f,
                "SQLite cannot open the file: {what}: check the system log for problems with its disk, and try again"
            ),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Lock { source, .. } | OpenError::Io { source, .. } => Some(source),
            OpenError::Busy { source, .. }
            | OpenError::Corrupt(source)
            | OpenError::Sqlite(source) => Some(&**source),
            _ => None,
        }
    }
}

/// The damage of a row: see [`damaged`].
#[derive(Debug)]
struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Damage {}

/// The error of a row that no store has written.
pub(crate) fn damaged(what: impl Into<String>) -> Sqlite {
    let what = Damage(what.into());
    Sqlite::FromSqlConversionFailure(0, Type::Null, what.into())
}

/// A value that was read from a row. If it is invalid, the error names the table and the row.
pub(crate) fn in_row<T>(
    table: &str,
    row: impl fmt::Display,
    read: rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    read.map_err(|error| match describe_damage(&error) {
        Some(what) => damaged(format!("table `{table}`, row {row}: {what}")),
        None => error,
    })
}

/// The description of a damaged value or row, or `None` if it is an error of SQLite itself, which describes itself.
pub(crate) fn describe_damage(error: &Sqlite) -> Option<String> {
    Some(match error {
        Sqlite::FromSqlConversionFailure(_, _, what) if what.is::<Damage>() => what.to_string(),
        Sqlite::FromSqlConversionFailure(..) | Sqlite::Utf8Error(..) => {
            "a value is not valid for its column".to_owned()
        }
        Sqlite::InvalidColumnType(_, name, found) => {
            format!("the column `{name}` has {}", describe_type(*found))
        }
        Sqlite::IntegralValueOutOfRange(_, number) => {
            format!("the number {number} is out of the range of its column")
        }
        Sqlite::QueryReturnedNoRows => "a row that every file has is missing".to_owned(),
        _ => return None,
    })
}

pub(crate) fn describe_type(found: Type) -> &'static str {
    match found {
        Type::Null => "no value",
        Type::Integer => "a whole number",
        Type::Real => "a number with a fraction",
        Type::Text => "text",
        Type::Blob => "bytes",
    }
}

/// `3 times`.
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    }
}

/// `3rd`.
pub(crate) fn ordinal(number: u64) -> String {
    let is_teen = (11..=13).contains(&(number % 100));
    let ending = match number % 10 {
        1 if !is_teen => "st",
        2 if !is_teen => "nd",
        3 if !is_teen => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Boxes an error as the source of one of ours.
pub(crate) fn boxed(error: Sqlite) -> Box<dyn Error + Send + Sync> {
    match describe_damage(&error) {
        Some(what) => Damage(what).into(),
        None => error.into(),
    }
}

/// The error of a read, or of a step of a commit that was rolled back.
///
/// Such a step has left nothing, whatever its error is: no commit was tried. But only a temporary condition is retried: another connection, no space, no
/// memory. Anything else would be refused forever, and the store would silently stand still: an I/O error, an invalid page or row, a file that has become
/// read-only, a value that is too large.
pub(crate) fn rolled_back(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory,
        ) => StoreError::definite(boxed(error)),
        _ => StoreError::indeterminate(boxed(error)),
    }
}

/// The error of a write that found no space and was rolled back.
pub(crate) fn no_space(error: &rusqlite::Error) -> StoreError {
    StoreError::definite(format!(
        "no space is left: free space on the disk, or raise the quota, the limit of the file or `ulimit -f` ({error})"
    ))
}

/// The error of a `COMMIT` that was rolled back.
///
/// A full disk shows in a write to the WAL. The last frame, which makes the others a commit, is written last: it is missing, unless the WAL already had it, and
/// the next commit begins where this one began. A full disk that shows in the sync is an I/O error to SQLite.
pub(crate) fn of_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull) => StoreError::definite(boxed(error)),
        _ => StoreError::indeterminate(boxed(error)),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_number_has_its_ending() {
        for (number, words) in [
            (0, "0th"),
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (11, "11th"),
            (112, "112th"),
            (4_101, "4101st"),
        ] {
            assert_eq!(ordinal(number), words);
        }
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }

    #[test]
    fn a_value_of_another_type_is_named_by_table_row_and_column() {
        let connection = Connection::open_in_memory().unwrap();
        let read = |sql: &str| {
            let read = connection.query_row(sql, [], |row| row.get::<_, u32>("failures"));
            boxed(in_row("timers", 7, read).unwrap_err()).to_string()
        };
        for (sql, words) in [
            (
                "SELECT 'x' AS failures",
                "table `timers`, row 7: the column `failures` has text",
            ),
            (
                "SELECT -1 AS failures",
                "table `timers`, row 7: the number -1 is out of the range of its column",
            ),
        ] {
            assert_eq!(read(sql), words);
        }
        let sqlite = read("SELECT failures");
        assert!(sqlite.starts_with("no such column"), "{sqlite}");
    }
}
