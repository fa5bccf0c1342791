use std::borrow::Cow;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::time::Duration;

use sqlite_vfs::wip::{WalIndex, WalIndexLock};
use sqlite_vfs::{DatabaseHandle, LockKind, OpenAccess, OpenKind, OpenOptions, Vfs};

use super::disk::{Registered, Verdict, no_power};
use super::{Call, Disk, Fault, Kind};

/// A file that a connection has open.
#[derive(Debug)]
pub(crate) struct Handle {
    disk: Disk,
    file: usize,
    kind: Kind,
    lock: LockKind,
}

impl Vfs for Registered {
    type Handle = Handle;

    fn open(&self, name: &str, options: OpenOptions) -> Result<Handle> {
        let kind = match options.kind {
            OpenKind::MainDb => Kind::Main,
            OpenKind::Wal => Kind::Wal,
            _ => Kind::Other,
        };
        let name = file_name(name);
        let disk = self.disk()?;
        let mut state = disk.state();
        let verdict = state.call(Call::Open, kind)?;
        let call = match verdict {
            Verdict::Go(call) | Verdict::GoAndCut(call) => call,
            Verdict::Fail(..) => return Err(failed()),
        };
        let creates = matches!(options.access, OpenAccess::Create | OpenAccess::CreateNew);
        let file = match state.find(name) {
            Some(file) => file,
            None if creates => state.create(name, call),
            None => return Err(ErrorKind::NotFound.into()),
        };
        cut_after(verdict)?;
        drop(state);
        Ok(Handle {
            disk,
            file,
            kind,
            lock: LockKind::None,
        })
    }

    fn delete(&self, name: &str) -> Result<()> {
        let name = file_name(name);
        let disk = self.disk()?;
        let mut state = disk.state();
        if state.find(name).is_none() {
            return Err(ErrorKind::NotFound.into());
        }
        let kind = match name.ends_with("-wal") {
            true => Kind::Wal,
            false => Kind::Other,
        };
        state.delete(name, kind)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let disk = self.disk()?;
        // SQLite asks whether a file exists, not how long it is: it does not know about an empty WAL.
        Ok(disk.state().find(file_name(name)).is_some())
    }

    fn temporary_name(&self) -> String {
        "temporary".to_owned()
    }

    fn random(&self, buffer: &mut [i8]) {
        buffer.fill(0);
    }

    fn sleep(&self, duration: Duration) -> Duration {
        duration
    }

    fn full_pathname<'a>(&self, name: &'a str) -> Result<Cow<'a, str>> {
        Ok(name.into())
    }
}

impl DatabaseHandle for Handle {
    type WalIndex = Index;

    fn size(&self) -> Result<u64> {
        let mut state = self.disk.state();
        Ok(state.file(self.file).bytes().len() as u64)
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], at: u64) -> Result<()> {
        let mut state = self.disk.state();
        let verdict = state.call(Call::Read, self.kind)?;
        if let Verdict::Fail(..) = verdict {
            return Err(failed());
        }
        let bytes = state.file(self.file).bytes();
        let bytes = bytes.get(position(at)?..).unwrap_or_default();
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        // Missing bytes read as zeros: SQLite relies on it.
        buffer[length..].fill(0);
        cut_after(verdict)?;
        match length < buffer.len() {
            true => Err(ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    fn write_all_at(&mut self, bytes: &[u8], at: u64) -> Result<()> {
        let at = position(at)?;
        let mut state = self.disk.state();
        let verdict = state.call(Call::Write, self.kind)?;
        let is_full = match verdict {
            Verdict::Go(call) | Verdict::GoAndCut(call) => state.write(self.file, at, bytes, call),
            Verdict::Fail(call, Fault::NoSpace(space)) => {
                state.write(self.file, at, &bytes[..space.min(bytes.len())], call);
                true
            }
            Verdict::Fail(..) => return Err(failed()),
        };
        cut_after(verdict)?;
        match is_full {
            // SQLite has no error code for a quota.
            true if state.room.is_quota => Err(failed()),
            true => Err(ErrorKind::WriteZero.into()),
            false => Ok(()),
        }
    }

    fn sync(&mut self, _: bool) -> Result<()> {
        let mut state = self.disk.state();
        let verdict = state.call(Call::Sync, self.kind)?;
        match verdict {
            Verdict::Go(_) | Verdict::GoAndCut(_) => state.sync(self.file, self.kind),
            Verdict::Fail(_, fault) => {
                if fault == Fault::Dropped {
                    state.file(self.file).drop_changes();
                }
                return Err(failed());
            }
        }
        cut_after(verdict)
    }

    fn set_len(&mut self, length: u64) -> Result<()> {
        let length = position(length)?;
        let mut state = self.disk.state();
        // A hint at the future length of the file. SQLite's own VFS ignores it, too.
        if length >= state.file(self.file).bytes().len() {
            return Ok(());
        }
        let verdict = state.call(Call::Length, self.kind)?;
        match verdict {
            Verdict::Go(call) | Verdict::GoAndCut(call) => {
                state.file(self.file).set_length(length, call);
            }
            Verdict::Fail(..) => return Err(failed()),
        }
        cut_after(verdict)
    }

    fn lock(&mut self, lock: LockKind) -> Result<bool> {
        self.lock = lock;
        Ok(true)
    }

    fn reserved(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn current_lock(&self) -> Result<LockKind> {
        Ok(self.lock)
    }

    fn wal_index(&self, _: bool) -> Result<Index> {
        Ok(Index)
    }
}

/// The index of the WAL. Each connection has its own.
#[derive(Debug)]
pub(crate) struct Index;

impl WalIndex for Index {
    fn map(&mut self, _: u32) -> Result<[u8; 32_768]> {
        Ok([0; 32_768])
    }

    fn lock(&mut self, _: Range<u8>, _: WalIndexLock) -> Result<bool> {
        Ok(true)
    }

    fn delete(self) -> Result<()> {
        Ok(())
    }
}

/// Ends a call that has taken effect.
pub(crate) fn cut_after(verdict: Verdict) -> Result<()> {
    match verdict {
        Verdict::GoAndCut(_) => Err(no_power()),
        _ => Ok(()),
    }
}

/// The name of a file, without that of its disk.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn position(at: u64) -> Result<usize> {
    usize::try_from(at).map_err(|_| ErrorKind::InvalidInput.into())
}

pub(crate) fn failed() -> Error {
    Error::new(ErrorKind::BrokenPipe, "the call was made to fail")
}
