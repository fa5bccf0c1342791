//! A file that takes space, so that there is some when the disk is full.
//!
//! SQLite's WAL needs space to grow, and the file to have the WAL copied into it, also if all that is written is that rows are gone. So some MiB lie beside them,
//! and are given up when there is no other space. What is in it means nothing, so a crash may leave as much of it as it likes.

use std::io;
use std::path::{Path, PathBuf};

use super::open_options::Files;

/// How many bytes are written at a time.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Reserve {
    files: Files,
    path: PathBuf,
    length: u64,
}

impl Reserve {
    /// The one of this store, as it is.
    pub(crate) fn of(store: &Path, files: Files) -> Reserve {
        let mut path = store.as_os_str().to_owned();
        path.push("-reserve");
        let path = PathBuf::from(path);
        let length = (files.length)(&path).unwrap_or(0);
        Reserve {
            files,
            path,
            length,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Gives its space to the disk. Returns whether there was some.
    pub(crate) fn give_up(&mut self) -> bool {
        let had_some = self.length > 0;
        // One that cannot be removed is of no use.
        let is_removed = had_some && (self.files.remove)(&self.path).is_ok();
        if is_removed {
            self.length = 0;
        }
        is_removed
    }

    /// Makes it so long, if it is longer.
    pub(crate) fn shorten(&mut self, length: u64) {
        if self.length > length && (self.files.set_length)(&self.path, length).is_ok() {
            self.length = length;
        }
    }

    /// Makes it so long, if it is shorter, and only if there is space for so many bytes more. Otherwise it is as it was.
    pub(crate) fn extend(&mut self, length: u64, beyond: u64) -> io::Result<()> {
        let length = length.max(self.length);
        let extended = self.write_up_to(length + beyond);
        if extended.is_ok() && (beyond == 0 || (self.files.set_length)(&self.path, length).is_ok())
        {
            self.length = length;
            return Ok(());
        }
        // What is left of it is longer than it is known to be, at worst. Something else of its name stays as it is.
        if (self.files.length)(&self.path).is_ok() {
            let _: io::Result<()> = match self.length {
                0 => (self.files.remove)(&self.path),
                _ => (self.files.set_length)(&self.path, self.length),
            };
        }
        extended
    }

    /// Whether there may be space to [make it](Reserve::extend) so long, and for so many bytes more. Only a write shows whether there is: a quota is not
    /// looked at, and a file system may say too little.
    pub(crate) fn may_extend(&self, length: u64, beyond: u64) -> bool {
        let more = length.saturating_sub(self.length) + beyond;
        (self.files.free)(&self.path).is_none_or(|free| more <= free)
    }

    /// Whether a write fails now because a quota is used up.
    pub(crate) fn meets_quota(&self) -> bool {
        let is_quota = |error: io::Error| error.kind() == io::ErrorKind::QuotaExceeded;
        self.probe().is_err_and(is_quota)
    }

    /// Whether a write fails now for want of space on the disk.
    pub(crate) fn meets_full_disk(&self) -> bool {
        self.probe().is_err_and(|error| is_full(&error))
    }

    /// Whether no file may become longer than this by a little: a limit of the process (`ulimit -f`), or of the file system.
    pub(crate) fn meets_longest(&self, length: u64) -> bool {
        let is_too_long = |error: io::Error| error.kind() == io::ErrorKind::FileTooLarge;
        self.probe_with(|probe| {
            (self.files.append)(probe, &[0])?;
            // What is not written takes no space.
            (self.files.set_length)(probe, length + PIECE as u64)
        })
        .is_err_and(is_too_long)
    }

    /// Writes a little to a file of its own.
    fn probe(&self) -> io::Result<()> {
        self.probe_with(|probe| {
            let mut piece = vec![0; PIECE];
            fill(&mut piece, 0);
            (self.files.append)(probe, &piece)?;
            (self.files.sync)(probe)
        })
    }

    fn probe_with(&self, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let mut probe = self.path.clone().into_os_string();
        probe.push("-probe");
        let probe = PathBuf::from(probe);
        let written = write(&probe);
        let _: io::Result<()> = (self.files.remove)(&probe);
        written
    }

    fn write_up_to(&self, end: u64) -> io::Result<()> {
        let mut at = self.length;
        let mut piece = vec![0; PIECE];
        while at < end {
            let left = usize::try_from(end - at).map_or(PIECE, |left| left.min(PIECE));
            fill(&mut piece[..left], at);
            (self.files.append)(&self.path, &piece[..left])?;
            at += left as u64;
        }
        (self.files.sync)(&self.path)
    }
}

/// Bytes that no file system can compress: what it saves would not be given up.
fn fill(piece: &mut [u8], at: u64) {
    // xorshift64*, by G. Marsaglia and S. Vigna. Its state is never 0.
    let mut state = at ^ 0x9e37_79b9_7f4a_7c15;
    for eight in piece.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let number = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        eight.copy_from_slice(&number[..eight.len()]);
    }
}

/// Whether the disk, or what a user may take of it, is full, or a file may become no longer.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
