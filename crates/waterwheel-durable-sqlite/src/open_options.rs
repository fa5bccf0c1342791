use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::keys::Sizes;
use super::lock::{for_its_user_alone, give_to_the_user_of};
use super::schema::Step;
use super::vacuum::Vacuum;

/// All options for opening a file. [`Options`](super::Options) sets some of them for users; tests also set the others, to inject faults and to reach limits sooner.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The name of the VFS, or `None` for SQLite's own.
    pub vfs: Option<&'a str>,
    /// The file operations that do not go through SQLite.
    pub files: Files,
    /// The value of `PRAGMA synchronous`. Tests lower it to see that they fail.
    pub synchronous: &'a str,
    /// How many pages the WAL has before they are copied into the file.
    pub long_wal: i64,
    /// How many of them that are not in the file are for a thread of its own. On a VFS, none are.
    pub far_wal: i64,
    /// How the index of the keys is kept.
    pub key_sizes: Sizes,
    /// When the file becomes shorter.
    pub vacuum: Vacuum,
    /// The steps from older versions of the tables.
    pub steps: &'a [Step],
    /// How long the reserve is, at least and at most. None, if both are 0.
    pub reserve: (u64, u64),
    /// How long a full disk is taken to be full before it is looked at again.
    pub full: Duration,
    /// The wall clock, which the first opening of a copy asks for its epoch.
    pub now: fn() -> SystemTime,
    /// How long the file may be.
    pub limit: Option<u64>,
    /// Whether a file is opened though acknowledged work is gone.
    pub accept_loss: bool,
}

/// What is done with files beside SQLite: its WAL is read, and the reserve is written.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Files {
    /// What a file has from this byte on: so many, or fewer if it ends before.
    pub read: fn(&Path, u64, usize) -> io::Result<Vec<u8>>,
    /// How long a file is. A link is none.
    pub length: fn(&Path) -> io::Result<u64>,
    /// Writes at the end of a file, and creates it if it is not there. A part may be written though it fails.
    pub append: fn(&Path, &[u8]) -> io::Result<()>,
    /// Writes over the begin of a file, and creates it if it is not there.
    pub write: fn(&Path, &[u8]) -> io::Result<()>,
    /// Lets what was written take its space.
    pub sync: fn(&Path) -> io::Result<()>,
    /// Cuts a file off at this length, or lets it have zeros up to it.
    pub set_length: fn(&Path, u64) -> io::Result<()>,
    /// Deletes a file, and gives its space to the disk.
    pub remove: fn(&Path) -> io::Result<()>,
    /// How many bytes more the disk of a file has space for, as its file system says. `None` if that says nothing.
    pub free: fn(&Path) -> Option<u64>,
    /// How many bytes the disk of a file has in all. `None` if its file system does not say it.
    pub size: fn(&Path) -> Option<u64>,
    /// How many bytes a file of this process may have. `None` is any number.
    pub longest: fn() -> Option<u64>,
}

impl OpenOptions<'_> {
    /// The options of [`SqliteStore::open`](super::SqliteStore::open).
    pub const DEFAULT: OpenOptions<'static> = OpenOptions {
        vfs: None,
        files: Files {
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
        },
        synchronous: "EXTRA",
        long_wal: 1_000,
        far_wal: 8_192,
        key_sizes: Sizes::USUAL,
        vacuum: Vacuum::USUAL,
        steps: &super::schema::STEPS,
        reserve: (1 << 20, 16 << 20),
        full: Duration::from_secs(1),
        now: SystemTime::now,
        limit: None,
        accept_loss: false,
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
        // By a link, another file would be written to.
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

/// Its user is that of the store, which is the first part of its name: else a command that root runs would keep the service from it.
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
    // A file system with a journal may have the space only once the journal has it. It may fail: then a later commit finds it.
    if let Some(folder) = path.parent() {
        let _: io::Result<()> = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

#[cfg(unix)]
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path.parent()?).ok()?;
    // A part is root's.
    let blocks = match rustix::process::geteuid().is_root() {
        true => disk.f_bfree,
        false => disk.f_bavail,
    };
    // There are file systems that do not say it.
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
