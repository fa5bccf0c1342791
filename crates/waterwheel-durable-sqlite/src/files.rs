//! The files of a store: their names, and all operations on them that do not go through SQLite.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{self, Path, PathBuf};

/// The canonical path of a file that may not exist yet: without links, so that all names of the file lead to the same lock.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            break;
        };
        // A link may exist without its target, which SQLite would create.
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(fs::canonicalize(folder)?.join(name)),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The limit of Linux.
const MAX_LINKS: u32 = 40;

pub(crate) fn wal_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The index of the WAL.
pub(crate) fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The file operations that bypass SQLite: reading the WAL, and writing the reserve.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Files {
    /// Reads up to this many bytes of a file, from this offset on.
    pub read: fn(&Path, u64, usize) -> io::Result<Vec<u8>>,
    /// Returns the length of a file. Fails for a link.
    pub length: fn(&Path) -> io::Result<u64>,
    /// Appends to a file, and creates it if it does not exist. A failed call may have written a part.
    pub append: fn(&Path, &[u8]) -> io::Result<()>,
    /// Overwrites the beginning of a file, and creates it if it does not exist.
    pub write: fn(&Path, &[u8]) -> io::Result<()>,
    /// Syncs a file, so that its space is allocated.
    pub sync: fn(&Path) -> io::Result<()>,
    /// Truncates a file to this length, or extends it with zeros.
    pub set_length: fn(&Path, u64) -> io::Result<()>,
    /// Deletes a file, and frees its space.
    pub remove: fn(&Path) -> io::Result<()>,
    /// Returns the number of free bytes on the disk of a file, or `None` if its file system does not report it.
    pub free: fn(&Path) -> Option<u64>,
    /// Returns the total size of the disk of a file in bytes, or `None` if its file system does not report it.
    pub size: fn(&Path) -> Option<u64>,
    /// Returns the maximum size of a file of this process in bytes, or `None` if there is no limit.
    pub longest: fn() -> Option<u64>,
}

impl Files {
    /// The file system of the operating system.
    pub const SYSTEM: Files = Files {
        read,
        length,
        append,
        write,
        sync: |path| fs::OpenOptions::new().write(true).open(path)?.sync_all(),
        set_length: |path, length| {
            fs::OpenOptions::new()
                .write(true)
                .open(path)?
                .set_len(length)
        },
        remove,
        free,
        size,
        longest,
    };
}

fn read(path: &Path, at: u64, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn length(path: &Path) -> io::Result<u64> {
    let file = fs::symlink_metadata(path)?;
    match file.is_file() {
        true => Ok(file.len()),
        // Through a link, another file would be written to.
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match length(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    for_its_user_alone(&mut options);
    options.open(path)?.write_all(bytes)
}

/// Writes a file. A new one gets the owner of the store's file: otherwise a command run by root would lock the service out of it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    let mut file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for_its_user_alone(&mut options);
            let file = options.create_new(true).open(path)?;
            let name = path.as_os_str().to_string_lossy();
            if let Some((store, _)) = name.rsplit_once('-') {
                give_to_the_user_of(Path::new(store), &file);
            }
            file
        }
        opened => opened?,
    };
    file.write_all(bytes)
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    // A file system with a journal may free the space only once its journal is written. This may fail: then a later commit notices.
    if let Some(folder) = path.parent() {
        let _: io::Result<()> = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

#[cfg(unix)]
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path.parent()?).ok()?;
    // A part of the space is reserved for root.
    let blocks = match rustix::process::geteuid().is_root() {
        true => disk.f_bfree,
        false => disk.f_bavail,
    };
    // Some file systems do not report it.
    (disk.f_blocks > 0).then(|| blocks.saturating_mul(disk.f_frsize))
}

#[cfg(unix)]
fn size(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path.parent()?).ok()?;
    (disk.f_blocks > 0).then(|| disk.f_blocks.saturating_mul(disk.f_frsize))
}

#[cfg(unix)]
fn longest() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Fsize).current
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

#[cfg(not(unix))]
fn size(_: &Path) -> Option<u64> {
    None
}

#[cfg(not(unix))]
fn longest() -> Option<u64> {
    None
}

/// Otherwise a command run by root would lock the service of another user out of its own file. SQLite does the same with its WAL.
#[cfg(unix)]
pub(crate) fn give_to_the_user_of(store: &Path, lock: &File) {
    use std::os::unix::fs::{MetadataExt, fchown};

    if let (Ok(store), Ok(own)) = (fs::metadata(store), lock.metadata())
        && store.uid() != own.uid()
    {
        // Only root can do this.
        let _: io::Result<()> = fchown(lock, Some(store.uid()), Some(store.gid()));
    }
}

#[cfg(not(unix))]
pub(crate) fn give_to_the_user_of(_: &Path, _: &File) {}

/// Another user who could open the file could lock it, and keep the service from starting.
#[cfg(unix)]
pub(crate) fn for_its_user_alone(options: &mut fs::OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;

    options.mode(0o600);
}

#[cfg(not(unix))]
pub(crate) fn for_its_user_alone(_: &mut fs::OpenOptions) {}

/// Whether the disk or the user's quota is full, or a file has reached its maximum size.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The identity of a file, or `None` if the system does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(Option<(u64, u64)>);

impl Identity {
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;

        let file = fs::metadata(path)?;
        Ok(Identity(Some((file.dev(), file.ino()))))
    }

    /// The number of names of a file, by hard links.
    #[cfg(unix)]
    pub(crate) fn links(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;

        fs::metadata(path).map_or(1, |file| file.nlink())
    }

    #[cfg(not(unix))]
    pub(crate) fn links(_: &Path) -> u64 {
        1
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path) -> io::Result<Identity> {
        // On these systems, an open file cannot be removed.
        Ok(Identity(None))
    }
}
