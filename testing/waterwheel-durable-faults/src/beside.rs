//! File operations outside SQLite, by their [paths](Disk::path).

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use super::disk::{State, Verdict, named};
use super::vfs::{cut_after, failed};
use super::{Call, Disk, Fault, Kind};

impl Disk {
    /// Reads a part of a file: up to `limit` bytes, or fewer if the file ends before.
    ///
    /// # Errors
    ///
    /// There is no such file, or no power.
    pub fn read_path(path: &Path, at: u64, limit: usize) -> Result<Vec<u8>> {
        with(path, |state, name| {
            let bytes = state.bytes(name)?;
            let at = usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
            let end = at.saturating_add(limit).min(bytes.len());
            Ok(bytes[at..end].to_vec())
        })
    }

    /// Returns the length of a file.
    ///
    /// # Errors
    ///
    /// There is no such file, or no power.
    pub fn length_path(path: &Path) -> Result<u64> {
        with(path, |state, name| Ok(state.bytes(name)?.len() as u64))
    }

    /// The number of bytes that are left for a file. `None` if a quota is the limit, which a file system does not show.
    #[must_use]
    pub fn free_path(path: &Path) -> Option<u64> {
        let left = with(path, |state, _| match state.room.is_quota {
            true => Err(ErrorKind::Unsupported.into()),
            false => Ok(state.left() as u64),
        });
        left.ok()
    }

    /// Appends to a file, creating it if it is missing.
    ///
    /// # Errors
    ///
    /// There is no space, or no power.
    pub fn append_path(path: &Path, bytes: &[u8]) -> Result<()> {
        with(path, |state, name| {
            if state.find(name).is_none() {
                let verdict = state.call(Call::Open, kind(name))?;
                match verdict {
                    Verdict::Go(call) | Verdict::GoAndCut(call) => state.create(name, call),
                    Verdict::Fail(_, fault) => return Err(refusal(state, fault)),
                };
                cut_after(verdict)?;
            }
            let file = state.find(name).ok_or(ErrorKind::NotFound)?;
            let end = state.file(file).bytes().len();
            let verdict = state.call(Call::Write, kind(name))?;
            let is_full = match verdict {
                Verdict::Go(call) | Verdict::GoAndCut(call) => state.write(file, end, bytes, call),
                Verdict::Fail(call, fault) => {
                    if let Fault::NoSpace(space) = fault {
                        state.write(file, end, &bytes[..space.min(bytes.len())], call);
                    }
                    return Err(refusal(state, fault));
                }
            };
            cut_after(verdict)?;
            match is_full {
                true => Err(refusal(state, Fault::NoSpace(0))),
                false => Ok(()),
            }
        })
    }

    /// Overwrites the beginning of a file, creating it if it is missing.
    ///
    /// # Errors
    ///
    /// There is no space, or no power.
    pub fn write_path(path: &Path, bytes: &[u8]) -> Result<()> {
        with(path, |state, name| {
            if state.find(name).is_none() {
                let verdict = state.call(Call::Open, kind(name))?;
                match verdict {
                    Verdict::Go(call) | Verdict::GoAndCut(call) => state.create(name, call),
                    Verdict::Fail(_, fault) => return Err(refusal(state, fault)),
                };
                cut_after(verdict)?;
            }
            let file = state.find(name).ok_or(ErrorKind::NotFound)?;
            let verdict = state.call(Call::Write, kind(name))?;
            let is_full = match verdict {
                Verdict::Go(call) | Verdict::GoAndCut(call) => state.write(file, 0, bytes, call),
                Verdict::Fail(_, fault) => return Err(refusal(state, fault)),
            };
            cut_after(verdict)?;
            match is_full {
                true => Err(refusal(state, Fault::NoSpace(0))),
                false => Ok(()),
            }
        })
    }

    /// Syncs a file, but not the folder.
    ///
    /// # Errors
    ///
    /// There is no such file, or no power, or it fails.
    pub fn sync_path(path: &Path) -> Result<()> {
        with(path, |state, name| {
            let file = state.find(name).ok_or(ErrorKind::NotFound)?;
            let verdict = state.call(Call::Sync, kind(name))?;
            match verdict {
                Verdict::Go(_) | Verdict::GoAndCut(_) => state.file(file).sync(),
                Verdict::Fail(_, fault) => return Err(refusal(state, fault)),
            }
            cut_after(verdict)
        })
    }

    /// Truncates a file to this length.
    ///
    /// # Errors
    ///
    /// There is no such file, or no power, or it fails.
    pub fn shorten_path(path: &Path, length: u64) -> Result<()> {
        with(path, |state, name| {
            let file = state.find(name).ok_or(ErrorKind::NotFound)?;
            let length = usize::try_from(length).map_err(|_| ErrorKind::InvalidInput)?;
            let verdict = state.call(Call::Length, kind(name))?;
            match verdict {
                Verdict::Go(call) | Verdict::GoAndCut(call) => {
                    state.file(file).set_length(length, call);
                }
                Verdict::Fail(_, fault) => return Err(refusal(state, fault)),
            }
            cut_after(verdict)
        })
    }

    /// Deletes a file.
    ///
    /// # Errors
    ///
    /// There is no such file, or no power, or it fails.
    pub fn remove_path(path: &Path) -> Result<()> {
        with(path, |state, name| match state.find(name) {
            Some(_) => state.delete(name, kind(name)),
            None => Err(ErrorKind::NotFound.into()),
        })
    }
}

/// Calls a function with the state of a file's disk, and the file's name on it.
fn with<T>(path: &Path, act: impl FnOnce(&mut State, &str) -> Result<T>) -> Result<T> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let disk = path.parent().unwrap_or(path).to_string_lossy();
    let disk = named(&disk).ok_or(ErrorKind::NotFound)?;
    let mut state = disk.state();
    act(&mut state, &name)
}

fn kind(name: &str) -> Kind {
    match name.rsplit_once('-') {
        Some((_, "wal")) => Kind::Wal,
        Some((_, "acknowledged")) => Kind::Note,
        _ => Kind::Reserve,
    }
}

fn refusal(state: &State, fault: Fault) -> Error {
    match fault {
        Fault::NoSpace(_) if state.room.is_quota => ErrorKind::QuotaExceeded.into(),
        Fault::NoSpace(_) => ErrorKind::StorageFull.into(),
        _ => failed(),
    }
}
