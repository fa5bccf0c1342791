//! How is a file copied while a service uses it?
//!
//! SQLite writes the state after one commit to a new file, in a single read of the tables (`VACUUM INTO`). The file has a temporary name next to the target
//! until it is synced, so a file with the target's name is a whole copy.

mod error;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use self::error::BackupError;
use super::error::boxed;
use super::files::{beside, resolve, wal_of};
use super::meta;
use super::reader::Reader;
use super::sqlite::Sqlite;

/// The number of bytes after which a copy is synced, and how often its size is checked.
const PART: u64 = 4 << 20;
const PAUSE: Duration = Duration::from_millis(5);

/// A completed copy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// The absolute path of the copy.
    pub path: PathBuf,
    /// The size of the copy in bytes.
    pub bytes: u64,
    /// The epoch of the copy. It is [ahead](crate::EPOCHS_AHEAD) of that of the original file, and may be raised
    /// further when the copy is first opened.
    pub epoch: u64,
}

/// Copies the file of a store, even while a process has it open. The copy contains the state after one commit, without
/// free pages. It is synced to disk, and is a single file without a WAL, with the permissions of the original file and
/// owned by the user of this process.
///
/// Commits continue meanwhile. The WAL cannot be started again until the copy is complete, so it grows by what is
/// committed. It shrinks later: after the copy, a thread of the store copies the WAL into the file while commits
/// continue.
///
/// To restore a copy, stop the service, delete the file together with its `-wal` and `-shm`, put the copy in its place,
/// and start the service. A WAL that is left there would be taken for that of the copy. Timers inserted after the copy
/// was made are then missing, and timers delivered after it are delivered again.
///
/// # Errors
///
/// [`BackupError`]; also if acknowledged work is gone from the file and no store has been opened yet that accepts the
/// loss. After an error, no file has the name of the target, unless only the sync of its directory failed, and a file
/// that already had that name is unchanged.
pub fn backup(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Backup, BackupError> {
    // Otherwise the copy of a file with lost acknowledged work would look as if nothing was lost.
    Sqlite::new(&from).prepare().map_err(BackupError::Open)?;
    let reader = Reader::open(from).map_err(BackupError::Open)?;
    let to = to.as_ref();
    let path = resolve(to).map_err(|source| BackupError::io(to, source))?;
    for taken in [path.clone(), wal_of(&path), beside(&path, "-journal")] {
        refuse_existing(&taken)?;
    }
    let partial = Partial::create(beside(&path, "-partial"))?;
    partial.fill(|name| reader.copy_to(name))?;
    let epoch = make_ready(&partial.path).map_err(|error| BackupError::Sqlite(boxed(error)))?;
    // Whoever may read the file may read its copy.
    let rights = fs::metadata(reader.path()).map(|file| file.permissions());
    let synced = rights.and_then(|rights| {
        partial.file.set_permissions(rights)?;
        partial.file.sync_all()?;
        Ok(partial.file.metadata()?.len())
    });
    let bytes = synced.map_err(|source| BackupError::io(&partial.path, source))?;
    partial.publish(&path)?;
    Ok(Backup { path, bytes, epoch })
}

impl Reader {
    fn copy_to(&self, name: &str) -> Result<(), BackupError> {
        let copied = self.connection.execute("VACUUM INTO ?1", [name]);
        copied.map_err(|error| BackupError::Sqlite(boxed(error)))?;
        Ok(())
    }
}

/// Raises the epoch of a copy, and returns it. Deletes the commands in its file.
fn make_ready(copy: &Path) -> rusqlite::Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags)?;
    // An aborted copy is deleted, and a complete one is synced as a whole, so the journal may be in memory.
    connection.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    let epoch = meta::raise_in_copy(&connection)?;
    // The commands are not meant for the service that starts with the copy.
    connection.execute("DELETE FROM commands", [])?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(epoch)
}

/// A copy in progress, under a temporary name that is deleted.
struct Partial {
    path: PathBuf,
    file: File,
    is_renamed: bool,
}

impl Partial {
    fn create(path: PathBuf) -> Result<Partial, BackupError> {
        match private().open(&path) {
            Ok(file) => Ok(Partial {
                path,
                file,
                is_renamed: false,
            }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(BackupError::Partial(path))
            }
            Err(source) => Err(BackupError::Io { path, source }),
        }
    }

    /// The path in the form that SQLite accepts.
    fn name(&self) -> Result<&str, BackupError> {
        let name = self.path.to_str();
        name.ok_or_else(|| BackupError::io(&self.path, io::ErrorKind::InvalidFilename.into()))
    }

    /// Writes the copy, and syncs it part by part meanwhile: syncing a gigabyte at the end would delay the service's own syncs for as long as that takes.
    fn fill(&self, write: impl FnOnce(&str) -> Result<(), BackupError>) -> Result<(), BackupError> {
        let name = self.name()?;
        let is_written = AtomicBool::new(false);
        thread::scope(|scope| {
            let syncing = scope.spawn(|| {
                let mut synced = 0;
                while !is_written.load(Ordering::Acquire) {
                    let length = self.file.metadata()?.len();
                    if length >= synced + PART {
                        self.file.sync_data()?;
                        synced = length;
                    }
                    thread::sleep(PAUSE);
                }
                Ok(())
            });
            let written = write(name);
            is_written.store(true, Ordering::Release);
            // A panic of that thread was already reported, and the final sync is still to come.
            let synced: io::Result<()> = syncing.join().unwrap_or(Ok(()));
            written.and(synced.map_err(|source| BackupError::io(&self.path, source)))
        })
    }

    /// Gives the copy its name, unless that is taken by now.
    fn publish(mut self, path: &Path) -> Result<(), BackupError> {
        // A rename would replace another file.
        match fs::hard_link(&self.path, path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists(path.to_owned()));
            }
            // Not all file systems support hard links.
            Err(_) => {
                refuse_existing(path)?;
                fs::rename(&self.path, path).map_err(|source| BackupError::io(path, source))?;
                self.is_renamed = true;
            }
        }
        drop(self);
        sync_folder_of(path).map_err(|source| BackupError::io(path, source))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _: io::Result<()> = fs::remove_file(&self.path);
        }
    }
}

/// Options that create a file that only its user may read until it is complete: it contains payloads.
fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn refuse_existing(path: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(BackupError::Exists(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(BackupError::io(path, source)),
    }
}

/// Syncs the directory of a path; otherwise a power cut may undo the new name.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        // Elsewhere, a directory cannot be opened, and names are not synced.
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}
