use std::collections::BTreeMap;
use std::io::{self, Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Choice;
use super::content::{Content, rename};
use super::file::File;
use super::vfs::{cut_after, failed};

/// SQLite's calls to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Opens the file, creating it if it is missing.
    Open,
    /// Reads from the file.
    Read,
    /// Writes to the file.
    Write,
    /// Changes the length of the file.
    Length,
    /// Syncs the file.
    Sync,
    /// Deletes the file.
    Delete,
}

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The tables.
    Main,
    /// The WAL.
    Wal,
    /// The file that reserves space.
    Reserve,
    /// The record of acknowledged commits.
    Note,
    /// SQLite's older journal, and temporary files.
    Other,
}

/// A call to match: the one after the first `after` matching calls, and all that follow it.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The type of call. `None` matches any.
    pub call: Option<Call>,
    /// The kind of file. `None` matches any.
    pub kind: Option<Kind>,
    /// The number of matching calls that succeed before.
    pub after: u64,
}

impl Moment {
    /// The next call of this type to a file of this kind.
    #[must_use]
    pub fn next(call: Call, kind: Kind) -> Moment {
        Moment {
            call: Some(call),
            kind: Some(kind),
            after: 0,
        }
    }

    /// Counts a call, and returns whether the moment has come.
    fn comes(&mut self, call: Call, kind: Kind) -> bool {
        let is_meant =
            self.call.is_none_or(|it| it == call) && self.kind.is_none_or(|it| it == kind);
        if is_meant && self.after > 0 {
            self.after -= 1;
            return false;
        }
        is_meant
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error. After a failed sync, a power cut may lose the changes or not; a failed write has written nothing.
    Error,
    /// An I/O error of a sync, after which the system considers the unsynced changes clean: a second sync succeeds, and they are lost.
    Dropped,
    /// No space is left. This many bytes of the write were written.
    NoSpace(usize),
}

/// The call in which the power was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The call that was in progress.
    pub call: Call,
    /// The kind of its file.
    pub kind: Kind,
}

/// A disk with an SQLite VFS. A clone is the same disk, which lasts until the last clone is dropped and the last file is closed.
#[derive(Debug, Clone)]
pub struct Disk {
    name: Arc<str>,
    state: Arc<Mutex<State>>,
}

/// A disk as SQLite knows it, for as long as the process lives. It does not keep the contents.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    name: Arc<str>,
    state: Weak<Mutex<State>>,
}

impl Registered {
    /// The disk, if something still uses it.
    pub(crate) fn disk(&self) -> io::Result<Disk> {
        let state = self.state.upgrade().ok_or(ErrorKind::NotFound)?;
        let name = Arc::clone(&self.name);
        Ok(Disk { name, state })
    }
}

/// All disks, by name.
static DISKS: Mutex<BTreeMap<String, Registered>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
pub(crate) struct State {
    content: Content,
    cut_at: Option<(Moment, bool)>,
    cut: Option<Cut>,
    fault: Option<(Moment, Fault)>,
    /// Whether the fault ends when the reserve is deleted.
    ends_with_reserve: bool,
    counts: BTreeMap<(Call, Kind), u64>,
    /// The maximum size of all files together, in bytes, because of a fault.
    space: Option<usize>,
    pub(crate) room: Room,
}

/// The space on the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Room {
    /// The maximum size of all files together, in bytes. `None` if unlimited.
    capacity: Option<usize>,
    /// The number of these bytes that belong to foreign files.
    foreign: usize,
    /// Whether overwritten pages are kept until the file is synced, and so take up space as well.
    copies_on_write: bool,
    /// Whether a quota is used up, instead of the disk.
    pub(crate) is_quota: bool,
}

impl Disk {
    /// Creates an empty disk.
    ///
    /// # Errors
    ///
    /// SQLite rejects the VFS.
    pub fn new() -> Result<Disk, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("waterwheel-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let disk = Disk {
            name: name.as_str().into(),
            state: Arc::default(),
        };
        let registered = Registered {
            name: Arc::clone(&disk.name),
            state: Arc::downgrade(&disk.state),
        };
        sqlite_vfs::register(&name, registered.clone(), false)
            .map_err(|error| error.to_string())?;
        lock(&DISKS).insert(name, registered);
        Ok(disk)
    }

    /// The path of a file on this disk.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(&*self.name).join(name)
    }

    /// The name of the VFS.
    #[must_use]
    pub fn vfs(&self) -> &str {
        &self.name
    }

    /// The contents of the disk.
    #[must_use]
    pub fn content(&self) -> Content {
        self.state().content.clone()
    }

    /// Replaces the contents of the disk. It has power and no faults.
    pub fn put(&self, content: Content) {
        *self.state() = State {
            content,
            ..State::default()
        };
    }

    /// The bytes of a file, as the system sees them. `None` if there is no such file.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.content.names.get(name)?;
        Some(state.content.files[file].bytes().to_vec())
    }

    /// Cuts the power at that moment, before the call takes effect or after it. A write that has taken effect is not durable.
    pub fn cut_at(&self, moment: Moment, after_it: bool) {
        self.state().cut_at = Some((moment, after_it));
    }

    /// Cuts the power between two calls.
    pub fn cut_now(&self) {
        let mut state = self.state();
        state.cut_at = None;
        state.cut.get_or_insert(Cut {
            call: Call::Read,
            kind: Kind::Other,
        });
    }

    /// The call in which the power was cut. From then on each call fails, until [`restart`](Disk::restart).
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.state().cut
    }

    /// Turns the power on again. Unsynced changes survive as the choice decides.
    pub fn restart(&self, choice: &mut dyn Choice) {
        let mut state = self.state();
        let left = state.content.left(choice);
        *state = State {
            content: left,
            room: state.room,
            ..State::default()
        };
    }

    /// Makes calls fail from that moment on, until [`mend`](Disk::mend).
    pub fn fail(&self, from: Moment, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((from, fault));
        state.ends_with_reserve = false;
    }

    /// Makes calls fail from that moment on, until the reserve is deleted.
    pub fn fail_beside_reserve(&self, from: Moment, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((from, fault));
        state.ends_with_reserve = true;
    }

    /// Limits the size of all files together to this many bytes.
    pub fn limit(&self, bytes: usize) {
        self.state().space = Some(bytes);
    }

    /// Sets the size of the disk, of which `foreign` bytes belong to foreign files. It holds across restarts, until the next [`put`](Disk::put).
    pub fn set_capacity(&self, bytes: usize, foreign: usize) {
        let mut state = self.state();
        state.room.capacity = Some(bytes);
        state.room.foreign = foreign;
    }

    /// Lets a foreign file take up all free space. Returns its size.
    pub fn fill(&self) -> usize {
        let mut state = self.state();
        let left = state.left();
        state.room.foreign += left;
        left
    }

    /// The size of the foreign files in bytes.
    #[must_use]
    pub fn foreign(&self) -> usize {
        self.state().room.foreign
    }

    /// Sets the size of the foreign files in bytes.
    pub fn set_foreign(&self, bytes: usize) {
        self.state().room.foreign = bytes;
    }

    /// Sets whether overwriting bytes takes up space as well, until the file is synced.
    pub fn set_copies_on_write(&self, copies: bool) {
        self.state().room.copies_on_write = copies;
    }

    /// Sets whether missing space is reported as a quota.
    pub fn set_quota(&self, is_quota: bool) {
        self.state().room.is_quota = is_quota;
    }

    /// The size of all files together in bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.state().content.used()
    }

    /// Ends all faults, including a lack of space.
    pub fn mend(&self) {
        let mut state = self.state();
        state.fault = None;
        state.space = None;
    }

    /// The number of calls of this type to files of this kind, successful or not.
    #[must_use]
    pub fn count(&self, call: Call, kind: Kind) -> u64 {
        self.state().counts.get(&(call, kind)).copied().unwrap_or(0)
    }

    /// The number of calls since the last [`put`](Disk::put), for [`Chance::new`](crate::Chance::new).
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().content.calls
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The effect of a call.
pub(crate) enum Verdict {
    /// The call of this number succeeds.
    Go(u64),
    /// The call succeeds, and then the power is cut.
    GoAndCut(u64),
    /// The call has this fault.
    Fail(u64, Fault),
}

impl State {
    /// Counts a call, and decides its effect.
    pub(crate) fn call(&mut self, call: Call, kind: Kind) -> Result<Verdict, Error> {
        if self.cut.is_some() {
            return Err(no_power());
        }
        *self.counts.entry((call, kind)).or_default() += 1;
        self.content.calls += 1;
        let number = self.content.calls;
        if let Some((moment, after_it)) = &mut self.cut_at
            && moment.comes(call, kind)
        {
            self.cut = Some(Cut { call, kind });
            return match after_it {
                true => Ok(Verdict::GoAndCut(number)),
                false => Err(no_power()),
            };
        }
        if let Some((moment, fault)) = &mut self.fault
            && moment.comes(call, kind)
        {
            return Ok(Verdict::Fail(number, *fault));
        }
        Ok(Verdict::Go(number))
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.content.names.get(name).copied()
    }

    pub(crate) fn create(&mut self, name: &str, call: u64) -> usize {
        let file = self.content.files.len();
        self.content.files.push(File::default());
        self.name(name, Some(file), call);
        file
    }

    pub(crate) fn name(&mut self, name: &str, file: Option<usize>, call: u64) {
        rename(&mut self.content.names, name, file);
        let change = (call, name.to_owned(), file);
        self.content.name_changes.push(change);
    }

    /// The bytes of a file, as the system sees them.
    pub(crate) fn bytes(&self, name: &str) -> Result<&[u8], Error> {
        match self.cut {
            Some(_) => Err(no_power()),
            None => {
                let file = self.find(name).ok_or(ErrorKind::NotFound)?;
                Ok(self.content.files[file].bytes())
            }
        }
    }

    /// Deletes an existing file.
    pub(crate) fn delete(&mut self, name: &str, kind: Kind) -> Result<(), Error> {
        let verdict = self.call(Call::Delete, kind)?;
        match verdict {
            Verdict::Go(call) | Verdict::GoAndCut(call) => self.name(name, None, call),
            Verdict::Fail(..) => return Err(failed()),
        }
        if kind == Kind::Reserve && self.ends_with_reserve {
            self.fault = None;
        }
        cut_after(verdict)
    }

    pub(crate) fn file(&mut self, file: usize) -> &mut File {
        &mut self.content.files[file]
    }

    /// Syncs a file, and the folder if the file may be new in it.
    pub(crate) fn sync(&mut self, file: usize, kind: Kind) {
        self.content.files[file].sync();
        let is_new = |(_, _, of): &(u64, String, Option<usize>)| *of == Some(file);
        if kind != Kind::Main && self.content.name_changes.iter().any(is_new) {
            for (_, name, file) in self.content.name_changes.drain(..) {
                rename(&mut self.content.synced_names, &name, file);
            }
        }
    }

    /// The number of bytes that are left.
    pub(crate) fn left(&self) -> usize {
        let limit = [self.space, self.room.capacity].into_iter().flatten().min();
        let copied = self.content.files.iter().map(File::copied).sum::<usize>();
        let used = self.content.used() + self.room.foreign + copied;
        limit.map_or(usize::MAX, |limit| limit.saturating_sub(used))
    }

    /// The number of bytes of a write that there is space for.
    pub(crate) fn space_for(&self, file: usize, at: usize, length: usize) -> usize {
        let file = &self.content.files[file];
        let left = self.left();
        match self.room.copies_on_write {
            true => file.fits_copied(at, length, left),
            false => {
                let limit = file.bytes().len().saturating_add(left);
                limit.saturating_sub(at).min(length)
            }
        }
    }

    /// Writes to a file. Returns whether there was no space for some of it.
    pub(crate) fn write(&mut self, file: usize, at: usize, bytes: &[u8], call: u64) -> bool {
        let space = self.space_for(file, at, bytes.len());
        let copies = self.room.copies_on_write;
        self.content.files[file].write(at, &bytes[..space], call, copies);
        space < bytes.len()
    }
}

/// The disk of this name.
pub(crate) fn named(name: &str) -> Option<Disk> {
    lock(&DISKS).get(name)?.disk().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn no_power() -> Error {
    Error::new(ErrorKind::BrokenPipe, "the power was cut")
}
