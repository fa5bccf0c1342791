//! Who has the file open?

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::OpenError;
use super::files::{beside, for_its_user_alone, give_to_the_user_of, is_full};

/// The lock file next to the store's, locked while this lives. The operating system releases the lock when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    pub(crate) fn take(store: &Path) -> Result<Lock, OpenError> {
        let lock = lock_of(store);
        let refused = |source| OpenError::Lock {
            lock: lock.clone(),
            source,
        };
        if lock.is_symlink() {
            // The process id would be written into another file.
            let what = io::Error::other("it is a symbolic link");
            return Err(refused(what));
        }
        let mut file = open(&lock, store).map_err(refused)?;
        if !locks(&file).map_err(refused)? {
            let process = holder(&mut file);
            return Err(OpenError::Held { lock, process });
        }
        match note_process(&mut file) {
            // The file is locked, and has no process id if the disk is full.
            Err(error) if !is_full(&error) => Err(refused(error)),
            _ => Ok(Lock { file }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that is just being spawned briefly has a copy of the descriptor, which would keep the file locked.
        let _: io::Result<()> = self.file.unlock();
    }
}

fn note_process(file: &mut File) -> io::Result<()> {
    let process = format!("{}\n", std::process::id());
    // The space that the file already has is not released before.
    file.rewind()?;
    file.write_all(process.as_bytes())?;
    file.set_len(process.len() as u64)
}

/// The process that has a file open as a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// No process.
    None,
    /// The process with this id, or `None` if the id could not be read.
    Process(Option<u32>),
    /// The lock file cannot be inspected: only its owner may read it, and this process runs as another user.
    Unknown,
}

impl Holder {
    /// Returns whether the process is stopped, by `SIGSTOP` or a debugger, as far as the system reports it. A stopped
    /// process does nothing until it is resumed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let Holder::Process(Some(process)) = self else {
            return false;
        };
        // The state comes after the name, which may have any characters, in parentheses.
        let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
        let state = status.ok().and_then(|status| {
            let (_, rest) = status.rsplit_once(')')?;
            rest.trim_start().chars().next()
        });
        matches!(state, Some('T' | 't'))
    }

    /// Describes the process, for an error of this process.
    pub(crate) fn describe(&self) -> String {
        match self {
            Holder::Process(Some(process)) if self.is_stopped() => {
                format!("process {process}, which is stopped,")
            }
            Holder::Process(Some(process)) => format!("process {process}"),
            _ => "another process".to_owned(),
        }
    }

    /// The advice for such an error: what to do so that the process releases the file.
    pub(crate) fn cure(&self) -> String {
        match self {
            // A process in another container may have the same id.
            Holder::Process(Some(process)) if *process == std::process::id() => {
                "close the other store of this process first, or end the process with this id in another container".to_owned()
            }
            Holder::Process(Some(process)) if self.is_stopped() => {
                format!("resume it with `kill -CONT {process}`, or end it with `kill -KILL {process}`")
            }
            Holder::Process(Some(process)) => format!("end it first (`kill {process}`)"),
            _ => "end it first".to_owned(),
        }
    }

    /// The advice for a file that may be locked only for a while. `again` says how to try again.
    pub(crate) fn cure_or(&self, again: &str) -> String {
        match self.is_stopped() {
            true => self.cure(),
            false => format!("{again}, or {}", self.cure()),
        }
    }
}

/// Checks whether a process has the store open. That takes a shared lock for a moment, which [`Lock::take`] waits for.
pub(crate) fn inspect(store: &Path) -> Holder {
    let mut file = match File::open(lock_of(store)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Holder::None,
        Err(_) => return Holder::Unknown,
    };
    // Closing the file unlocks it.
    match file.try_lock_shared() {
        Ok(()) => Holder::None,
        Err(TryLockError::WouldBlock) => Holder::Process(holder(&mut file)),
        Err(TryLockError::Error(_)) => Holder::Unknown,
    }
}

/// Opens the lock file, and creates it if it does not exist.
fn open(lock: &Path, store: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    for_its_user_alone(&mut options);
    match options.clone().create_new(true).open(lock) {
        Ok(file) => {
            give_to_the_user_of(store, &file);
            Ok(file)
        }
        // It may have been deleted in between.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            options.create(true).truncate(false).open(lock)
        }
        Err(error) => Err(error),
    }
}

/// Tries to lock the file exclusively. Returns whether it is locked by this file now.
fn locks(file: &File) -> io::Result<bool> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // A store has an exclusive lock, while those that only look share it.
        match file.try_lock_shared() {
            Ok(()) => file.unlock()?,
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(false)
}

/// How many times an opening waits a millisecond for processes that only look.
const LOOKS: u32 = 1_000;

fn lock_of(store: &Path) -> PathBuf {
    beside(store, "-lock")
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    // Without its line end, the number may be incomplete.
    text.strip_suffix('\n')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_being_started_holds_no_lock() {
        let name = format!("waterwheel-lock-{}", std::process::id());
        let store = std::env::temp_dir().join(name);
        let lock = Lock::take(&store).unwrap();
        // A child process has such a copy until it runs another program.
        let inherited = lock.file.try_clone().unwrap();
        assert!(Lock::take(&store).is_err());
        drop(lock);
        drop(Lock::take(&store).unwrap());
        drop(inherited);
        std::fs::remove_file(lock_of(&store)).unwrap();
    }
}
