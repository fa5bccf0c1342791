use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Choice;
use super::content::{Content, rename};
use super::file::File;
use super::vfs::{cut_after, failed};

/// SQLite's calls to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Opens it, and creates it if it is not there.
    Open,
    /// Reads from it.
    Read,
    /// Writes to it.
    Write,
    /// Makes it longer or shorter.
    Length,
    /// Syncs it.
    Sync,
    /// Deletes it.
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

/// A call, by what it is: the `after`th and those that follow are meant, 0 for the next one.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The call. `None` is any.
    pub call: Option<Call>,
    /// With a file of this kind. `None` is any.
    pub kind: Option<Kind>,
    /// How many such calls go well before.
    pub after: u64,
}

impl Moment {
    /// The next call of a sort.
    #[must_use]
    pub fn next(call: Call, kind: Kind) -> Moment {
        Moment {
            call: Some(call),
            kind: Some(kind),
            after: 0,
        }
    }

    /// Whether it has come.
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
    /// An I/O error. What a sync was to make durable is there after a power cut, or not; of a write, nothing was done.
    Error,
    /// An I/O error of a sync, after which the system takes what was not synced for clean: a second sync says that all is well, and it is lost.
    Dropped,
    /// There is no space. So many bytes of the write were written.
    NoSpace(usize),
}

/// The power was cut in this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The call that was under way.
    pub call: Call,
    /// With which file.
    pub kind: Kind,
}

/// A disk, and a VFS of SQLite on it. A clone is the same disk.
#[derive(Debug, Clone)]
pub struct Disk {
    name: Arc<str>,
    state: Arc<Mutex<State>>,
}

/// All disks, by their names.
static DISKS: Mutex<BTreeMap<String, Disk>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
pub(crate) struct State {
    content: Content,
    cut_at: Option<(Moment, bool)>,
    cut: Option<Cut>,
    fault: Option<(Moment, Fault)>,
    /// The fault is gone once the reserve is.
    ends_with_reserve: bool,
    counts: BTreeMap<(Call, Kind), u64>,
    /// How many bytes all files have together at most, by a fault.
    space: Option<usize>,
    pub(crate) room: Room,
}

/// How much fits on the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Room {
    /// How many bytes all files have together at most. `None` is any number.
    capacity: Option<usize>,
    /// How many of them are another's files.
    foreign: usize,
    /// Overwritten pages are kept until the file is synced, so they take space as well.
    copies_on_write: bool,
    /// It is a quota that is used up, and not the disk.
    pub(crate) is_quota: bool,
}

impl Disk {
    /// An empty disk.
    ///
    /// # Errors
    ///
    /// SQLite does not take the VFS.
    pub fn new() -> Result<Disk, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("waterwheel-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let disk = Disk {
            name: name.as_str().into(),
            state: Arc::default(),
        };
        // SQLite has it for as long as the process lives.
        sqlite_vfs::register(&name, disk.clone(), false).map_err(|error| error.to_string())?;
        lock(&DISKS).insert(name, disk.clone());
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

    /// Has this on it from now on, and power, and no faults.
    pub fn put(&self, content: Content) {
        *self.state() = State {
            content,
            ..State::default()
        };
    }

    /// The bytes of a file, as the system has them. `None` if there is no such file.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.content.names.get(name)?;
        Some(state.content.files[file].bytes().to_vec())
    }

    /// Cuts the power at that moment, before the call takes effect or after it. Of a write that has taken effect, nothing is durable.
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

    /// In what the power was cut. From then on each call fails, until [`restart`](Disk::restart).
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.state().cut
    }

    /// The power is there again. What was not synced is there, or not.
    pub fn restart(&self, choice: &mut dyn Choice) {
        let mut state = self.state();
        let left = state.content.left(choice);
        *state = State {
            content: left,
            room: state.room,
            ..State::default()
        };
    }

    /// Lets the calls fail from that moment on, until [`mend`](Disk::mend).
    pub fn fail(&self, from: Moment, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((from, fault));
        state.ends_with_reserve = false;
    }

    /// Lets calls fail like this until the reserve is deleted.
    pub fn fail_beside_reserve(&self, from: Moment, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((from, fault));
        state.ends_with_reserve = true;
    }

    /// Lets all files together have so many bytes at most.
    pub fn limit(&self, bytes: usize) {
        self.state().space = Some(bytes);
    }

    /// The disk has so many bytes from now on, of which `foreign` are another's files; also after a restart, until the next [`put`](Disk::put).
    pub fn set_capacity(&self, bytes: usize, foreign: usize) {
        let mut state = self.state();
        state.room.capacity = Some(bytes);
        state.room.foreign = foreign;
    }

    /// Another's file takes all that is left. Returns how much that is.
    pub fn fill(&self) -> usize {
        let mut state = self.state();
        let left = state.left();
        state.room.foreign += left;
        left
    }

    /// How many bytes another's files have.
    #[must_use]
    pub fn foreign(&self) -> usize {
        self.state().room.foreign
    }

    /// Another's files have so many bytes from now on.
    pub fn set_foreign(&self, bytes: usize) {
        self.state().room.foreign = bytes;
    }

    /// Whether a write over old bytes takes space as well, until the file is synced.
    pub fn set_copies_on_write(&self, copies: bool) {
        self.state().room.copies_on_write = copies;
    }

    /// Whether what is missing is a quota.
    pub fn set_quota(&self, is_quota: bool) {
        self.state().room.is_quota = is_quota;
    }

    /// How many bytes all files have together.
    #[must_use]
    pub fn used(&self) -> usize {
        self.state().content.used()
    }

    /// Nothing fails any more, and there is space.
    pub fn mend(&self) {
        let mut state = self.state();
        state.fault = None;
        state.space = None;
    }

    /// How many calls of a sort there were, whatever came of them.
    #[must_use]
    pub fn count(&self, call: Call, kind: Kind) -> u64 {
        self.state().counts.get(&(call, kind)).copied().unwrap_or(0)
    }

    /// How many calls there were since the last [`put`](Disk::put), for [`Chance::new`](crate::Chance::new).
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
    /// It succeeds. It is the call of this number.
    Go(u64),
    /// That, and then the power is cut.
    GoAndCut(u64),
    /// Not that: this goes wrong.
    Fail(u64, Fault),
}

impl State {
    /// Counts a call, and says what becomes of it.
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

    /// The bytes of a file, as the system has them.
    pub(crate) fn bytes(&self, name: &str) -> Result<&[u8], Error> {
        match self.cut {
            Some(_) => Err(no_power()),
            None => {
                let file = self.find(name).ok_or(ErrorKind::NotFound)?;
                Ok(self.content.files[file].bytes())
            }
        }
    }

    /// Deletes a file that is there.
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

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        let limit = [self.space, self.room.capacity].into_iter().flatten().min();
        let copied = self.content.files.iter().map(File::copied).sum::<usize>();
        let used = self.content.used() + self.room.foreign + copied;
        limit.map_or(usize::MAX, |limit| limit.saturating_sub(used))
    }

    /// How many of the bytes of a write there is space for.
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
    lock(&DISKS).get(name).cloned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn no_power() -> Error {
    Error::new(ErrorKind::BrokenPipe, "the power was cut")
}
