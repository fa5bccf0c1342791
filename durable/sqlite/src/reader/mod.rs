//! What is in a file, read beside the process that has it open?
//!
//! Each call reads one point in time: what one commit has left, and nothing of the next one. It holds up no commit. While it lasts, the log is not begun
//! again, so it grows by what is committed meanwhile: [`Reader::count`] and [`backup`](super::backup()) last as long as it takes to read the file.

mod count;
mod dead;
mod error;
mod extent;
mod find;
mod handles;
mod open;
mod pending;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use waterwheel_store::{Bucket, Dead, Due, Handle, Id, Most, Row, Setting, Whose};

pub use self::count::Count;
pub use self::error::ReadError;
pub use self::extent::Extent;
pub(crate) use self::open::connect;
use self::snapshot::Snapshot;
use super::lock::{self, Holder};
use super::schema::VERSION;
use super::store::resolve;
use super::{OpenError, read};

/// Reads the file of a store, and changes nothing in it.
///
/// It takes no lock, so it works beside the process that has the store open, and when none has. The user needs the right to read the file. SQLite creates the
/// log and its index beside it if they are not there, which needs the right to write to the folder.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
}

/// A timer that waits, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The timer.
    pub row: Row,
    /// Where it lies.
    pub bucket: Bucket,
}

impl Pending {
    /// What names it. If it has moved since its insert, this is not its first handle, and is as good as that: the store looks up where the timer is.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.row.handle()
    }
}

/// The timer that has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// What an insert with the key would be answered.
    pub handle: Handle,
    /// The timer. `None` if it was delivered, and is archived.
    pub pending: Option<Pending>,
}

impl Reader {
    /// Before all timers, for [`Reader::pending`].
    pub const START: (Due, Id) = (Due::from_millis(i64::MIN), Id::NONE);

    /// Opens a file to read it.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: it is not there, it is empty, it is no file of this store, it is damaged, or of a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, OpenError> {
        let path = resolve(path.as_ref()).map_err(|error| OpenError::io(path.as_ref(), error))?;
        let connection = open::open(&path).map_err(|error| error.of_file(&path, false))?;
        Ok(Reader { connection, path })
    }

    /// The absolute path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who has the file open as a store, as its lock file says.
    #[must_use]
    pub fn holder(&self) -> Holder {
        lock::look(&self.path)
    }

    /// How large the file is, and what is true of it as a whole.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn extent(&self) -> Result<Extent, ReadError> {
        self.read(|snapshot| extent::extent(snapshot, &self.path))
    }

    /// How many timers there are of each handler that has had one, in order of their names.
    ///
    /// It reads all timers: some tenths of a second a million.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn count(&self, now: Due) -> Result<Vec<Count>, ReadError> {
        self.read(|snapshot| count::count(snapshot, now))
    }

    /// The first timers in order of their due times, and of their ids if these are equal: those after one that was read before, or after
    /// [`Reader::START`], and due until then.
    ///
    /// It reads the buckets in which they lie, as a whole: those of a far timer have up to 32 days. A timer that is moved between two calls may be in both
    /// pages, or in none.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn pending(
        &self,
        whose: &Whose,
        after: (Due, Id),
        until: Due,
        most: Most,
    ) -> Result<Vec<Pending>, ReadError> {
        self.read(|snapshot| {
            let of = snapshot.numbers(whose);
            pending::First::new(of, after, until, most).of(snapshot)
        })
    }

    /// The [handles](Pending::handle) of timers, so many at most, and where they lie: bucket by bucket, in order of the buckets' starts, and by their ids in each.
    /// `after` is what a page before has ended with.
    ///
    /// It reads no payload, and no timer twice. So it is for large pages of all timers, and [`pending`](Reader::pending) is for those that are due first. A timer
    /// that a [cascade](waterwheel_store::Op::Cascade) moves between two calls is in one of the pages, or in both.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn handles(
        &self,
        whose: &Whose,
        after: Option<(Bucket, Id)>,
        most: usize,
    ) -> Result<Vec<(Handle, Bucket)>, ReadError> {
        self.read(|snapshot| {
            let of = snapshot.numbers(whose);
            handles::Page::new(of, after, most).of(snapshot)
        })
    }

    /// A timer that waits, found at once by its handle.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn find(&self, handle: &Handle) -> Result<Option<Pending>, ReadError> {
        self.read(|snapshot| find::by_handle(snapshot, handle))
    }

    /// The timer of a handler that has a key. It reads the filters of the index of the keys: 1 to 2 bytes a key, some 4 ms a million.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn find_key(&self, handler: &str, key: &[u8]) -> Result<Option<Keyed>, ReadError> {
        self.read(|snapshot| find::by_key(snapshot, handler, key))
    }

    /// A timer that waits, found by its id alone: it reads all timers until it comes to it.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn search(&self, id: Id) -> Result<Option<Pending>, ReadError> {
        self.read(|snapshot| find::by_id(snapshot, id))
    }

    /// The first dead letters after this id, in order of their ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn dead(&self, whose: &Whose, after: Id, most: Most) -> Result<Vec<Dead>, ReadError> {
        self.read(|snapshot| dead::page(snapshot, *whose, after, most))
    }

    /// The dead letter with this id.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn dead_letter(&self, id: Id) -> Result<Option<Dead>, ReadError> {
        self.read(|snapshot| dead::one(snapshot, id))
    }

    /// The names of all handlers that have had a timer.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn handlers(&self) -> Result<Vec<Arc<str>>, ReadError> {
        self.read(|snapshot| Ok(snapshot.handlers.all()))
    }

    /// What the service keeps by a name: its namespaces and calendars. A file of an older version has none.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settings(&self) -> Result<Vec<Setting>, ReadError> {
        self.read(|snapshot| match snapshot.version {
            VERSION => read::settings(snapshot.connection),
            _ => Ok(Vec::new()),
        })
    }

    /// The names of the [settings](Reader::settings), in order, without their values.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn setting_names(&self) -> Result<Vec<Arc<str>>, ReadError> {
        self.read(|snapshot| match snapshot.version {
            VERSION => {
                let mut names = snapshot.prepare("SELECT name FROM settings ORDER BY name")?;
                let names = names.query_map([], |row| row.get(0))?;
                names.collect()
            }
            _ => Ok(Vec::new()),
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
