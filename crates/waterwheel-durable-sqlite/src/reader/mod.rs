//! Reads a file while another process may have it open.
//!
//! Each call reads one point in time: the state after one commit. It delays no commit. While it lasts, the WAL is not restarted, so it grows by what is
//! committed meanwhile: [`Reader::count`] and [`backup`](super::backup()) take as long as reading the file does.

mod count;
mod error;
mod extent;
mod find;
mod pending;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
#[cfg(doc)]
use waterwheel_durable_core::store::Store;
use waterwheel_durable_core::store::{
    Dead, Due, Handle, HandlePage, Id, PageLimit, PendingCursor, Scope, Setting,
};

pub use self::count::Count;
pub use self::error::ReadError;
pub use self::extent::Extent;
pub use self::find::{Keyed, Pending};
use self::snapshot::Snapshot;
use super::connection::open_to_read;
use super::error::OpenError;
use super::files::resolve;
use super::lock::{self, Holder};
use super::{handles, read};

/// Reads the file of a store without changing it.
///
/// A reader takes no lock, so it works with or without a process that has the store open. It requires permission to
/// read the file. If the WAL and its index do not exist, SQLite creates them, which requires permission to write to the
/// directory.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl Reader {
    /// The position before all timers, for [`Reader::pending`].
    pub const START: (Due, Id) = (Due::from_millis(i64::MIN), Id::NONE);

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the file does not exist, is empty, is not a timer database, is damaged, or has a newer
    /// or an older version.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, OpenError> {
        let path = resolve(path.as_ref()).map_err(|error| OpenError::io(path.as_ref(), error))?;
        let connection = open_to_read(&path).map_err(|error| error.of_file(&path, false))?;
        Ok(Reader { connection, path })
    }

    /// Returns the absolute path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns which process has the file open as a store, according to its lock file.
    #[must_use]
    pub fn holder(&self) -> Holder {
        lock::inspect(&self.path)
    }

    /// Returns the size of the file, and other properties of the file as a whole.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn extent(&self) -> Result<Extent, ReadError> {
        self.read(|snapshot| extent::extent(snapshot, &self.path))
    }

    /// Counts the timers of each handler that has ever had one, in order of their names.
    ///
    /// This reads all timers: a few tenths of a second per million.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn count(&self, now: Due) -> Result<Vec<Count>, ReadError> {
        self.read(|snapshot| count::count(snapshot, now))
    }

    /// Returns the first pending timers in order of their due times, and of their ids if these are equal: those after
    /// `after`, which is the last timer of the previous page or [`Reader::START`], and due at `until` or earlier.
    ///
    /// This reads the buckets that contain the timers completely: those of timers far ahead span up to 32 days. A timer that
    /// is moved between two calls may be in both pages, or in neither.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn pending(
        &self,
        scope: &Scope,
        after: (Due, Id),
        until: Due,
        limit: PageLimit,
    ) -> Result<Vec<Pending>, ReadError> {
        self.read(|snapshot| {
            let of = snapshot.numbers(scope);
            pending::First::new(of, after, until, limit).of(snapshot)
        })
    }

    /// Returns a page of the [handles](Pending::handle) of pending timers, as [`Store::handles`] does.
    ///
    /// This reads no payloads, and no timer twice, so it is suited for large pages of all timers, while
    /// [`pending`](Reader::pending) is for those that are due first.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn handles(
        &self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, ReadError> {
        // While a page is read, the WAL of a service cannot start again.
        let examined = HandlePage::EXAMINED.max(limit);
        self.read(|it| handles::page(it.connection, &it.handlers, scope, after, limit, examined))
    }

    /// Finds a pending timer by its handle, with a fast lookup.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn find(&self, handle: &Handle) -> Result<Option<Pending>, ReadError> {
        self.read(|snapshot| find::by_handle(snapshot, handle))
    }

    /// Returns the handles of at most `limit` timers that have this tag, in order of their ids: those with ids after `after`, of
    /// any handler.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn tagged(&self, tag: &str, after: Id, limit: usize) -> Result<Vec<Handle>, ReadError> {
        self.read(|it| read::tagged(it.connection, &it.handlers, tag, after, limit))
    }

    /// Finds the timer of a handler that has this key. This reads the filters of the index of the keys: 1 to 2 bytes
    /// per key, about 4 ms per million.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn find_key(&self, handler: &str, key: &[u8]) -> Result<Option<Keyed>, ReadError> {
        self.read(|snapshot| find::by_key(snapshot, handler, key))
    }

    /// Finds a pending timer by its id alone. This reads all timers until it is found.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn search(&self, id: Id) -> Result<Option<Pending>, ReadError> {
        self.read(|snapshot| find::by_id(snapshot, id))
    }

    /// Returns the first dead letters with ids after `after`, in order of their ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn dead(&self, scope: &Scope, after: Id, limit: PageLimit) -> Result<Vec<Dead>, ReadError> {
        self.read(|snapshot| find::dead_page(snapshot, *scope, after, limit))
    }

    /// Returns the dead letter with this id.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn dead_letter(&self, id: Id) -> Result<Option<Dead>, ReadError> {
        self.read(|snapshot| find::dead_by_id(snapshot, id))
    }

    /// Returns the names of all handlers that have ever had a timer.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn handlers(&self) -> Result<Vec<Arc<str>>, ReadError> {
        self.read(|snapshot| Ok(snapshot.handlers.all()))
    }

    /// Returns the settings of the service: its namespaces and calendars.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settings(&self) -> Result<Vec<Setting>, ReadError> {
        self.read(|snapshot| read::settings(snapshot.connection))
    }

    /// Returns the names of the [settings](Reader::settings) in order, without their values.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn setting_names(&self) -> Result<Vec<Arc<str>>, ReadError> {
        self.read(|snapshot| {
            let mut names = snapshot.prepare("SELECT name FROM settings ORDER BY name")?;
            let names = names.query_map([], |row| row.get(0))?;
            names.collect()
        })
    }

    /// Reads one point in time.
    fn read<T>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, ReadError> {
        let transaction = self.connection.unchecked_transaction();
        let of_file = |error| ReadError::of(error, &self.path);
        let transaction = transaction.map_err(of_file)?;
        let snapshot = Snapshot::new(&transaction).map_err(of_file)?;
        read(&snapshot).map_err(of_file)
    }
}
