use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use rusqlite::Connection;
use waterwheel_durable_core::store::{
    ArchiveCursor, Archived, Command, Counts, DeadLetters, Handle, HandlePage, Id, Level, Notice,
    Op, Outcome, PageLimit, PendingCursor, Row, RowCursor, Scope, Setting, Store, StoreError,
};

use super::acknowledged::{self, Acknowledged, Found};
use super::commands::{self, Commands};
use super::connection::{self, refuse_wal_alone};
use super::error::{Loss, OpenError, no_space, of_commit, rolled_back};
use super::files::{Files, Identity, resolve, wal_of};
use super::lock::{self, Holder, Lock};
use super::lsm::KeyIndex;
use super::options::OpenOptions;
use super::read::Handlers;
use super::space::{self, Backoff, Space};
use super::vacuum::{self, Vacuum};
use super::wal::{self, Checkpointer, Length};
use super::write::Writer;
use super::{archive, counts, handles, meta, read};

/// On a full disk, the WAL is copied once it has this many pages, so that it does not use up the last space.
const SHORT_WAL: i64 = 64;

/// The approximate size of a page in the WAL, in bytes.
const FRAME: u64 = 4_120;

/// A store in a SQLite file.
///
/// It is `Send`, and its calls block. Only one process at a time can have a file open; the lock is released when the
/// store is dropped or the process ends. A file is identified by its path after symbolic links are resolved. A file
/// with two names (a hard link) has two locks, and two processes that open it by the two names damage it: a [`Notice`]
/// reports such a file.
pub struct SqliteStore {
    // Both are dropped before the lock.
    checkpointer: Checkpointer,
    connection: Connection,
    acknowledged: Acknowledged,
    /// The accepted loss, until it is reported.
    loss: Option<Loss>,
    handlers: Handlers,
    keys: KeyIndex,
    /// The backoff after the index of the keys could not be sorted.
    keys_wait: Backoff,
    /// Whether the last maintenance after a commit has left the keys to the next one.
    keys_are_next: bool,
    last: Option<(u64, Vec<Outcome>)>,
    commands: Commands,
    /// Why nothing is written any more.
    failure: Option<Arc<str>>,
    /// Whether the last commit was refused: there may be no space for a longer WAL.
    was_refused: bool,
    /// Whether there was no commit since the last maintenance.
    is_idle: bool,
    /// Whether the file can shrink.
    gives_back: bool,
    is_giving_back: bool,
    vacuum: Vacuum,
    /// The number of pages in the WAL at which they are copied into the file.
    long_wal: i64,
    files: Files,
    now: fn() -> SystemTime,
    space: Space,
    path: PathBuf,
    /// The identity of the file when it was opened, or `None` on a VFS of a test.
    identity: Option<Identity>,
    /// The number of names of the file that the operator knows of.
    known_links: u64,
    _lock: Option<Lock>,
}

impl SqliteStore {
    /// Opens a file and creates it if it does not exist. Its directory must exist.
    ///
    /// This takes milliseconds, however many timers the file contains. After a crash, SQLite reads the WAL once, which
    /// has a few megabytes. For business keys, 1 to 2 bytes each and their last changes are read: about 4 ms per
    /// million. There are at most 64 K such changes, and more only after a disk was full for long. The first open
    /// writes the reserve of up to 16 MiB, in about 30 ms.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: another process has the file open, or it is not a timer database, is damaged, or has a newer
    /// version. The file is then unchanged. A file of an older version that cannot be upgraded has its own, the
    /// current, or an intermediate version afterwards.
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
        SqliteStore::open_locked(path.as_ref(), &OpenOptions::DEFAULT)
    }

    /// See [`Sqlite::prepare`](super::Sqlite::prepare).
    pub(crate) fn prepare(path: &Path, open: &OpenOptions<'_>) -> Result<(), OpenError> {
        let path = resolve(path).map_err(|error| OpenError::io(path, error))?;
        if !path.is_file() || !acknowledged::is_noted(&path) {
            return Ok(());
        }
        match Lock::take(&path) {
            Ok(_lock) => Found::prepare(&path, open)
                .map(drop)
                .map_err(|error| error.of_file(&path, false)),
            // A process has the file open, or this one may not access the lock file, and so may not change anything.
            Err(_) => Ok(()),
        }
    }

    /// Checks whether acknowledged work is gone from a file that no process has open as a store, as
    /// [`open`](SqliteStore::open) does, without opening it.
    ///
    /// This is for programs that only read the file. It also returns `None` if this user may not read the record of
    /// acknowledged commits.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the file or its record cannot be read, or the file [has a WAL](OpenError::StaleWal) that must not
    /// be applied to it.
    pub fn lost(path: impl AsRef<Path>) -> Result<Option<Loss>, OpenError> {
        let path = path.as_ref();
        let path = resolve(path).map_err(|error| OpenError::io(path, error))?;
        let is_free = || lock::inspect(&path) == Holder::None;
        if !path.is_file() || !acknowledged::is_noted(&path) || !is_free() {
            return Ok(None);
        }
        let found = match Found::inspect(&path, &OpenOptions::DEFAULT) {
            Err(OpenError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                return Ok(None);
            }
            found => found.map_err(|error| error.of_file(&path, false))?,
        };
        // A process that has opened the file meanwhile may have continued with the WAL.
        match found.loss {
            _ if !is_free() => Ok(None),
            _ if found.drops_wal => Err(OpenError::StaleWal(wal_of(&path))),
            loss => Ok(loss),
        }
    }

    pub(crate) fn open_locked(
        path: &Path,
        options: &OpenOptions<'_>,
    ) -> Result<SqliteStore, OpenError> {
        let path = resolve(path).map_err(|error| OpenError::io(path, error))?;
        if path.is_dir() {
            return Err(OpenError::io(&path, io::ErrorKind::IsADirectory.into()));
        }
        let lock = Lock::take(&path)?;
        refuse_wal_alone(&path)?;
        let store = SqliteStore::open_as(path.clone(), Some(lock), options);
        let mut store = store.map_err(|error| error.of_file(&path, true))?;
        let identity = Identity::of(&path).map_err(|error| OpenError::io(&path, error))?;
        store.identity = Some(identity);
        Ok(store)
    }

    /// Opens a file on another VFS, for tests: see [`OpenOptions`].
    #[doc(hidden)]
    pub fn open_with_options(
        path: &Path,
        options: &OpenOptions<'_>,
    ) -> Result<SqliteStore, OpenError> {
        SqliteStore::open_as(path.into(), None, options)
    }

    fn open_as(
        path: PathBuf,
        lock: Option<Lock>,
        options: &OpenOptions<'_>,
    ) -> Result<SqliteStore, OpenError> {
        let mut space = Space::of(&path, options);
        let open = || {
            let found = Found::prepare(&path, options)?;
            Ok((found, connection::open(&path, options)?))
        };
        let (found, (connection, handlers)) = open()
            .or_else(|error: OpenError| {
                // A full disk has no space for the index of the WAL either.
                match error.may_be_full() && space.give_up_to_open() {
                    true => open(),
                    false => Err(error),
                }
            })
            .map_err(
                |error| match error.may_be_full() && space.is_full_to_open() {
                    true => OpenError::io(&path, io::ErrorKind::StorageFull.into()),
                    false => error,
                },
            )?;
        if found.may_be_torn() {
            connection::check_pages(&connection)?;
        }
        let loss = found.loss.clone();
        let (acknowledged, least) = found.open(&connection).map_err(OpenError::in_tables)?;
        match counts::complete(&connection, loss.is_some()) {
            // A full disk keeps no store from opening: the counts stay as they are.
            Err(error) if space.is_none(&error) => {}
            counted => counted.map_err(OpenError::in_tables)?,
        }
        space.follow_limit(&connection).map_err(OpenError::of)?;
        let keys = KeyIndex::read(&connection, options.key_sizes).map_err(OpenError::in_tables)?;
        let gives_back = vacuum::is_possible(&connection).map_err(OpenError::in_tables)?;
        // On a VFS of a test, only one connection can use the index of the WAL.
        let min = options.vfs.is_none().then_some(options.checkpointer_wal);
        let mut store = SqliteStore {
            checkpointer: Checkpointer::new(min),
            connection,
            acknowledged,
            loss,
            handlers,
            keys,
            keys_wait: Backoff::new(options.full),
            keys_are_next: false,
            last: None,
            commands: Commands::default(),
            failure: None,
            was_refused: false,
            is_idle: true,
            gives_back,
            is_giving_back: false,
            vacuum: options.vacuum,
            long_wal: options.long_wal,
            files: options.files,
            now: options.now,
            space,
            path,
            identity: None,
            known_links: 1,
            _lock: lock,
        };
        if let Some(least) = least {
            // This must come first: an id of an opening that is gone must not be assigned again.
            let raised = meta::raise_to(&store.connection, least);
            raised.map_err(OpenError::of)?;
        }
        store.maintain_reserve().map_err(OpenError::of)?;
        Ok(store)
    }

    /// Returns the absolute path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn next_epoch(&mut self) -> Result<u64, Failed> {
        let begun = self.connection.unchecked_transaction();
        let begun = begun.map_err(|error| self.in_a_step(error))?;
        let epoch = meta::next_epoch(&begun, (self.now)());
        let (epoch, is_copy) = epoch.map_err(|error| self.in_a_step(error))?;
        commands::clear(&begun).map_err(|error| self.in_a_step(error))?;
        let count = self.acknowledged.count(&begun);
        let count = count.map_err(|error| self.in_a_step(error))?;
        begun.commit().map_err(|error| self.at_the_commit(error))?;
        self.look_at_wal();
        let is_noted = self.acknowledged.begun(epoch, count);
        // Once its mark is removed, the note applies to the file; without a note, the epoch must be in the file itself. Then no id is assigned twice if the WAL
        // is lost. A leftover WAL is copied so that the note is right about how far it was copied.
        let must_copy = is_copy || !is_noted;
        let is_left = || {
            self.wal()
                .is_ok_and(|wal| !self.checkpointer.is_long_enough(wal))
        };
        if must_copy || self.acknowledged.is_copying() && is_left() {
            let copied = self.copy_wal();
            let failed = copied.err().map(|error| self.in_a_step(error));
            let is_failure = |failed: &Failed| must_copy || !failed.error.is_definite();
            if let Some(failed) = failed.filter(is_failure) {
                return Err(failed);
            }
        }
        Ok(epoch)
    }

    /// Notes an epoch that a commit has begun, before an id of it is assigned. Like an opening, a store without a note copies its WAL: the epoch must then be
    /// in the file itself.
    fn note_epoch(&mut self, outcomes: &[Outcome]) -> Result<(), StoreError> {
        let begun = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Epoch(epoch) => Some(*epoch),
            Outcome::All(all) => all.iter().find_map(|it| match it {
                Outcome::Epoch(epoch) => Some(*epoch),
                _ => None,
            }),
            _ => None,
        });
        let Some(epoch) = begun else {
            return Ok(());
        };
        if self.acknowledged.has_begun(epoch) {
            return Ok(());
        }
        match self.copy_wal().map_err(|error| self.in_a_step(error).error) {
            Err(error) if !error.is_definite() => self.note(Err(error)),
            copied => {
                // Then `maintain` copies it.
                self.was_refused |= copied.is_err();
                Ok(())
            }
        }
    }

    /// Updates the length of the WAL in the note: see [`Acknowledged::is_copying`].
    fn look_at_wal(&mut self) {
        if self.acknowledged.is_copying()
            && let Ok(wal) = self.wal()
        {
            self.acknowledged.wal_has(wal);
        }
    }

    /// Executes all steps. If there is no space for that, the inserts are dropped first, and then the reserve.
    fn commit_steps(&mut self, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let has_inserts = steps.iter().any(|op| matches!(op, Op::Insert(..)));
        if has_inserts {
            self.look_for_space();
        }
        let was_full = self.space.is_full();
        let mut tried = self.attempt(false, |store| store.steps(steps));
        if let Err(failed) = &tried
            && failed.is_full
        {
            self.space.found_none(&self.connection);
            if has_inserts && !was_full {
                let in_doubt = failed.in_doubt();
                self.space.takes_no_inserts(true);
                tried = self.attempt(in_doubt, |store| store.steps(steps));
                self.space.takes_no_inserts(false);
            }
        }
        if let Err(failed) = &tried
            && failed.is_full
            && self.space.give_up(&self.connection)
        {
            let in_doubt = failed.in_doubt();
            tried = self.attempt(in_doubt, |store| store.steps(steps));
        }
        tried.map_err(|failed| failed.error)
    }

    /// Executes this in a transaction, completely or not at all. It can wait for space, so it does not use the reserve.
    fn transact<T>(
        &mut self,
        what: impl FnOnce(&mut SqliteStore) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.attempt(false, what).map_err(|failed| {
            if failed.is_full {
                self.space.found_none(&self.connection);
            }
            failed.error
        })
    }

    /// Executes this in a transaction, completely or not at all. `in_doubt` says that the WAL may contain the whole of a previous commit whose outcome was not
    /// returned; something is then written over it.
    fn attempt<T>(
        &mut self,
        in_doubt: bool,
        what: impl FnOnce(&mut SqliteStore) -> rusqlite::Result<T>,
    ) -> Result<T, Failed> {
        let handlers = self.handlers.len();
        let done = self.begin_and(in_doubt, what);
        let done = done.map_err(|error| self.in_a_step(error));
        let was_tried = done.is_ok();
        let done = done.and_then(|done| {
            let commit = self.connection.prepare_cached("COMMIT");
            let committed = commit.and_then(|mut commit| commit.execute([]));
            committed
                .map_err(|error| self.at_the_commit(error))
                .map(|_| done)
        });
        match done {
            Ok((done, count)) => {
                if let Some(count) = count {
                    self.look_at_wal();
                    self.acknowledged.committed(count);
                }
                self.keys.commit();
                Ok(done)
            }
            Err(failed) => {
                self.was_refused = true;
                self.handlers.truncate(handlers);
                self.keys.rollback();
                let is_gone = self.roll_back().and_then(|()| match was_tried || in_doubt {
                    true => self.is_gone(),
                    false => Ok(()),
                });
                Err(match is_gone {
                    Ok(()) => failed,
                    Err(error) => Failed { error, ..failed },
                })
            }
        }
    }

    /// Returns the result, and the count of the commit, or `None` if it has changed nothing.
    fn begin_and<T>(
        &mut self,
        in_doubt: bool,
        what: impl FnOnce(&mut SqliteStore) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<(T, Option<u64>)> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])?;
        let before = self.connection.total_changes();
        let done = what(self)?;
        if in_doubt {
            let sql = "INSERT INTO meta VALUES ('doubts', 1)
                ON CONFLICT (key) DO UPDATE SET value = value + 1";
            self.connection.execute(sql, [])?;
        }
        let count = match self.connection.total_changes() == before {
            true => None,
            false => Some(self.acknowledged.count(&self.connection)?),
        };
        Ok((done, count))
    }

    /// Converts an error of a read or a step: no commit was tried.
    fn in_a_step(&self, error: rusqlite::Error) -> Failed {
        let is_full = self.space.is_none(&error);
        let error = match is_full {
            true => no_space(&error),
            false => rolled_back(error),
        };
        Failed { error, is_full }
    }

    /// Converts an error of a `COMMIT`. Whether the WAL contains the commit nevertheless is checked later.
    fn at_the_commit(&self, error: rusqlite::Error) -> Failed {
        let is_full = self.space.is_none(&error);
        let error = match is_full {
            true => no_space(&error),
            false => of_commit(error),
        };
        Failed { error, is_full }
    }

    /// Takes the commands that have arrived.
    fn take_commands(&mut self) -> Result<(), StoreError> {
        let Some(seen) = self.commands.news(&self.connection).map_err(rolled_back)? else {
            return Ok(());
        };
        let taken = match commands::are_there(&self.connection).map_err(rolled_back)? {
            true => self.transact(|store| commands::take(&store.connection))?,
            false => Vec::new(),
        };
        self.commands.add(seen, taken);
        Ok(())
    }

    /// Checks that a rolled back `COMMIT` has left nothing in the WAL that could be read as a commit.
    fn is_gone(&self) -> Result<(), StoreError> {
        let wal = wal_of(&self.path);
        let mut length = self.wal_length().map_err(rolled_back)?;
        // The length is negative if there is no WAL.
        while let Ok(frames) = usize::try_from(length) {
            let has_more = wal::has_more(|at, limit| (self.files.read)(&wal, at, limit), frames);
            if !has_more.map_err(StoreError::indeterminate)? {
                break;
            }
            let later = self.wal_length().map_err(rolled_back)?;
            if later == length {
                return Err(StoreError::indeterminate(
                    "no space was left, and the WAL may contain the whole commit",
                ));
            }
            // Another connection has committed meanwhile, a command for example, where the refused commit began. The frames after that are checked.
            length = later;
        }
        Ok(())
    }

    /// The number of frames in the WAL.
    fn wal_length(&self) -> rusqlite::Result<i64> {
        Ok(self.wal()?.all)
    }

    fn wal(&self) -> rusqlite::Result<Length> {
        Length::by(&self.connection, "PRAGMA wal_checkpoint(NOOP)")
    }

    fn steps(&mut self, steps: &[Op]) -> rusqlite::Result<Vec<Outcome>> {
        let has_inserts = steps.iter().any(|op| matches!(op, Op::Insert(..)));
        let room = match has_inserts {
            true => self.space.room(&self.connection)?,
            false => None,
        };
        let (handlers, keys) = (&mut self.handlers, &mut self.keys);
        let mut writer = Writer::new(&self.connection, handlers, keys, room);
        let outcomes: Vec<_> = steps
            .iter()
            .map(|op| writer.step(op))
            .collect::<Result<_, _>>()?;
        let is_full = writer.is_full();
        writer.finish(steps.len())?;
        if has_inserts {
            self.space.were_refused(is_full);
        }
        Ok(outcomes)
    }

    fn roll_back(&self) -> Result<(), StoreError> {
        // SQLite itself rolls back after some errors.
        if !self.connection.is_autocommit() {
            self.connection
                .execute_batch("ROLLBACK")
                .map_err(StoreError::indeterminate)?;
        }
        Ok(())
    }

    /// Fails if another thread could not copy the WAL, unless the error is temporary: then the next call of `maintain` copies it, in the space of the reserve
    /// if necessary.
    fn copies_well(&mut self) -> Result<(), StoreError> {
        let copied = self.poll_checkpointer(false);
        match copied.map_err(|error| self.in_a_step(error).error) {
            Err(error) if !error.is_definite() => Err(error),
            _ => Ok(()),
        }
    }

    /// Fails if the file was removed: its content is lost when the process ends, and another process may create a new one with its name.
    fn is_there(&self) -> Result<(), StoreError> {
        let is_there = |opened| Identity::of(&self.path).is_ok_and(|now| now == opened);
        match self.identity.is_none_or(is_there) {
            true => Ok(()),
            false => Err(StoreError::indeterminate(
                "the file was removed or replaced while it was open",
            )),
        }
    }

    fn has_not_failed(&self) -> Result<(), StoreError> {
        match &self.failure {
            Some(why) => Err(StoreError::failed_earlier(why.to_string())),
            None => Ok(()),
        }
    }

    /// Fails if the store or the thread that copies its WAL has failed. Called before each write.
    fn is_well(&mut self) -> Result<(), StoreError> {
        self.has_not_failed()?;
        let copies = self.copies_well();
        self.note(copies)
    }

    /// Notes a failure after which nothing more is written, nor copied when the store is dropped.
    fn note<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && !error.is_definite()
            && self.failure.is_none()
        {
            let source = std::error::Error::source(error);
            self.failure = Some(source.map_or(error.to_string(), |it| it.to_string()).into());
        }
        result
    }
}

/// A failed attempt.
#[derive(Debug)]
struct Failed {
    error: StoreError,
    /// Whether it failed for lack of space.
    is_full: bool,
}

impl Failed {
    /// Whether the WAL may contain the commit nevertheless.
    fn in_doubt(&self) -> bool {
        !self.error.is_definite()
    }
}

impl Store for SqliteStore {
    fn begin(&mut self) -> Result<u64, StoreError> {
        self.is_well()?;
        self.last = None;
        let mut epoch = self.next_epoch();
        if epoch.as_ref().is_err_and(|failed| failed.is_full) {
            // The reserve may be gone already. Then the WAL has space once its content is copied.
            self.space.give_up(&self.connection);
            self.was_refused = true;
            match self.checkpoint_in_space() {
                Err(error) if !error.is_definite() => return self.note(Err(error)),
                _ => epoch = self.next_epoch(),
            }
        }
        self.note(epoch.map_err(|failed| failed.error))
    }

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        if let Some((last, outcomes)) = &self.last
            && *last == number
        {
            return Ok(outcomes.clone());
        }
        self.is_well()?;
        self.is_idle = false;
        self.was_refused = false;
        let outcomes = self.commit_steps(steps);
        let outcomes = self.note(outcomes)?;
        self.note_epoch(&outcomes)?;
        self.commands.answered(steps);
        self.last = Some((number, outcomes.clone()));
        Ok(outcomes)
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        self.maintain_now()
    }

    fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = read::load(
            &self.connection,
            &self.handlers,
            handler,
            after,
            before,
            limit,
        );
        self.note(rows.map_err(rolled_back))
    }

    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError> {
        let Some(handler) = self.handlers.number(handler) else {
            return Ok(None);
        };
        let first = read::first(&self.connection, Level::Second, handler, from);
        self.note(first.map_err(rolled_back))
    }

    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError> {
        let first = read::first(&self.connection, level, 0, i64::MIN);
        self.note(first.map_err(rolled_back))
    }

    fn load_level(
        &mut self,
        after: PendingCursor,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = read::load_level(&self.connection, &self.handlers, after, limit);
        self.note(rows.map_err(rolled_back))
    }

    fn handlers(&mut self) -> Result<Vec<Arc<str>>, StoreError> {
        Ok(self.handlers.all())
    }

    fn dead(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, StoreError> {
        let examined = DeadLetters::EXAMINED;
        let dead = self.connection.prepare_cached(read::DEAD);
        let dead = dead.and_then(|mut dead| {
            read::dead(&mut dead, &self.handlers, scope, after, limit, examined)
        });
        self.note(dead.map_err(rolled_back))
    }

    fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, StoreError> {
        let (connection, handlers) = (&self.connection, &self.handlers);
        let found = read::find_waiting(connection, handlers, &self.keys, handler, key);
        self.note(found.map_err(rolled_back))
    }

    fn get(&mut self, handle: &Handle) -> Result<Option<Row>, StoreError> {
        let found = read::timer(&self.connection, &self.handlers, handle);
        let found = found.map(|found| found.map(|(row, _)| row));
        self.note(found.map_err(rolled_back))
    }

    fn handles(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, StoreError> {
        let (connection, handlers) = (&self.connection, &self.handlers);
        let examined = HandlePage::EXAMINED;
        let page = handles::page(connection, handlers, scope, after, limit, examined);
        self.note(page.map_err(rolled_back))
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        let counts = counts::read(&self.connection, &self.handlers);
        self.note(counts.map_err(rolled_back))
    }

    fn tagged(&mut self, tag: &str, after: Id, limit: usize) -> Result<Vec<Handle>, StoreError> {
        let tagged = read::tagged(&self.connection, &self.handlers, tag, after, limit);
        self.note(tagged.map_err(rolled_back))
    }

    fn archived(
        &mut self,
        handler: &str,
        after: ArchiveCursor,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(ArchiveCursor, Archived)>, StoreError> {
        let Some(handler) = self.handlers.number(handler) else {
            return Ok(Vec::new());
        };
        let archived = archive::load(&self.connection, handler, after, before, limit);
        self.note(archived.map_err(rolled_back))
    }

    fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, StoreError> {
        let Some(handler) = self.handlers.number(handler) else {
            return Ok(None);
        };
        let first = archive::first(&self.connection, handler);
        self.note(first.map_err(rolled_back))
    }

    fn settings(&mut self) -> Result<Vec<Setting>, StoreError> {
        let settings = read::settings(&self.connection);
        self.note(settings.map_err(rolled_back))
    }

    /// A file has nothing to tell that another process has written to it.
    fn commands_every(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn commands(&mut self) -> Result<Vec<(u64, Command)>, StoreError> {
        self.is_well()?;
        let taken = self.take_commands();
        self.note(taken)?;
        Ok(self.commands.all())
    }

    fn notices(&mut self) -> Vec<Notice> {
        let links = match self.identity {
            Some(_) => Identity::links(&self.path),
            None => 1,
        };
        let before = std::mem::replace(&mut self.known_links, links);
        let more =
            (links > before).then(|| Notice::hard_linked(&self.path.to_string_lossy(), links));
        let lost = self.loss.take().map(|loss| {
            let file = self.path.to_string_lossy();
            Notice::acknowledged_lost(&file, &loss.to_string())
        });
        let failed = self.acknowledged.failure().map(|(note, error)| {
            let note = note.to_string_lossy();
            Notice::note_failed(&note, &error.to_string())
        });
        more.into_iter().chain(lost).chain(failed).collect()
    }
}

impl Drop for SqliteStore {
    /// Copies the WAL unless it is far longer than usual: that would delay a shutdown, and the next process copies it while commits continue.
    fn drop(&mut self) {
        let copied = self.checkpointer.end();
        let has_failed = copied.is_err_and(|error| !self.in_a_step(error).error.is_definite());
        let is_well = self.failure.is_none() && !has_failed && self.roll_back().is_ok();
        if is_well
            && self
                .wal()
                .is_ok_and(|wal| !self.checkpointer.is_long_enough(wal))
        {
            // Whatever is not copied now is read from the WAL the next time. On a full disk, the WAL keeps its space.
            let copied = self.copy_wal();
            if copied.is_ok() && !self.space.is_full() && self.acknowledged.may_cut_wal() {
                let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
                let _: rusqlite::Result<()> = self.connection.query_row(sql, [], |_| Ok(()));
            }
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .field("handlers", &self.handlers.len())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Maintenance after a commit and when idle: copies the WAL, maintains the reserve, sorts keys and gives back free pages.
impl SqliteStore {
    /// Runs maintenance: see the [contract](waterwheel_durable_core::store::Store::maintain).
    fn maintain_now(&mut self) -> Result<(), StoreError> {
        self.has_not_failed()?;
        let there = self.is_there();
        self.note(there)?;
        let is_idle = std::mem::replace(&mut self.is_idle, true);
        let copied = self.checkpoint_in_space();
        let has_copied = self.note(copied)?;
        self.look_for_space();
        let kept = self.maintain_reserve().map_err(rolled_back);
        self.note(kept)?;
        if std::mem::take(&mut self.was_refused) {
            // There may be no space for a longer WAL.
            return Ok(());
        }
        // Skipped once after the WAL was copied, which takes as long: no commit should wait for both.
        let waits = has_copied && !is_idle && !self.keys_are_next;
        self.keys_are_next = waits;
        if !waits {
            let ordered = self.order_keys(is_idle);
            self.note(ordered)?;
        }
        // Not after each commit: it is a part of what is written anyway. On a full disk, further writes need the free pages.
        if self.gives_back && (has_copied || is_idle) && !self.space.is_full() {
            let given_back = self.give_back(is_idle);
            self.note(given_back)?;
        }
        Ok(())
    }

    /// Copies a long WAL into the file, or one that could not grow: the next commit then reuses its space. Returns whether it was copied. A far longer one is left
    /// to a separate thread.
    fn checkpoint(&mut self) -> rusqlite::Result<bool> {
        let is_full = self.space.is_full();
        // On a full disk, waits for a running pass to end.
        self.poll_checkpointer(is_full)?;
        if self.checkpointer.is_under_way() {
            return Ok(false);
        }
        let wal = self.wal()?;
        if !is_full && self.checkpointer.takes(wal, self.long_wal) {
            self.acknowledged.copies(wal);
            if self.checkpointer.begin(&self.path, wal) {
                return Ok(false);
            }
        }
        let long_wal = match is_full {
            true => self.long_wal.min(SHORT_WAL),
            false => self.long_wal,
        };
        let is_long = self.was_refused || wal.all >= long_wal;
        if is_long {
            self.copy_wal()?;
        }
        Ok(is_long)
    }

    /// Copies the WAL, as far as readers permit it.
    fn copy_wal(&mut self) -> rusqlite::Result<()> {
        let wal = self.wal()?;
        if wal.left() > 0 {
            self.acknowledged.copies(wal);
        }
        let copied = Length::by(&self.connection, "PRAGMA wal_checkpoint(PASSIVE)");
        if let Ok(wal) = &copied {
            self.acknowledged.has_copied(*wal, false);
        }
        copied.map(drop)
    }

    /// Notes the end of a copy on another thread, if it has ended, or waits for it.
    fn poll_checkpointer(&mut self, waits: bool) -> rusqlite::Result<()> {
        let is_under_way = self.checkpointer.is_under_way();
        let copied = match waits {
            true => self.checkpointer.wait(),
            false => self.checkpointer.poll(),
        };
        if is_under_way
            && !self.checkpointer.is_under_way()
            && let Ok(Some(wal)) = &copied
        {
            self.acknowledged.has_copied(*wal, true);
        }
        copied.map(drop)
    }

    /// Like `checkpoint`, in the space of the reserve if there is no other.
    fn checkpoint_in_space(&mut self) -> Result<bool, StoreError> {
        let mut copied = self.checkpoint();
        if let Err(error) = &copied
            && self.space.is_none(error)
        {
            self.was_refused = true;
            if !self.space.give_up(&self.connection) {
                return copied.map_err(|error| no_space(&error));
            }
            copied = self.checkpoint();
        }
        copied.map_err(|error| self.in_a_step(error).error)
    }

    fn look_for_space(&mut self) {
        if self.space.is_full() {
            let on_disk = self.on_disk();
            self.space.look_again(on_disk.unwrap_or(u64::MAX));
        }
    }

    fn maintain_reserve(&mut self) -> rusqlite::Result<()> {
        if !self.space.is_whole() {
            let on_disk = self.on_disk()?;
            self.space.maintain(on_disk);
        }
        Ok(())
    }

    /// The size of the file and its WAL in bytes.
    fn on_disk(&self) -> rusqlite::Result<u64> {
        let file = (self.files.length)(&self.path).unwrap_or(0);
        let frames = self.wal_length()?.max(0).unsigned_abs();
        Ok(file + frames * FRAME)
    }

    /// Does a part of the pending work on the index of the keys. After a refusal it waits: otherwise it would fill the WAL again with each commit.
    fn order_keys(&mut self, is_idle: bool) -> Result<(), StoreError> {
        if self.keys_wait.lasts() {
            return Ok(());
        }
        let ordered = self.order_keys_now(is_idle);
        match &ordered {
            Ok(()) => self.keys_wait.end(),
            Err(_) => self.keys_wait.refuse(),
        }
        ordered
    }

    /// On a full disk, no runs are merged: the remaining space is for urgent writes. The changes in memory become a run as soon as there are free pages for it.
    /// If the run made the file longer, the WAL could then not be copied, and nothing more would be settled once the WAL is full.
    fn order_keys_now(&mut self, is_idle: bool) -> Result<(), StoreError> {
        let is_full = self.space.is_full();
        let may_write = || match is_full {
            true => Ok(space::free(&self.connection)? > 2 * self.keys.fresh_bytes()),
            false => Ok(true),
        };
        if self.keys.is_much_fresh() && may_write().map_err(rolled_back)? {
            self.transact(|store| store.keys.write_fresh(&store.connection))?;
        }
        match !is_full && self.keys.is_to_merge(is_idle) {
            true => self.transact(|store| store.keys.merge(&store.connection)),
            false => Ok(()),
        }
    }

    /// Gives back a part of the free pages.
    fn give_back(&mut self, is_idle: bool) -> Result<(), StoreError> {
        let is_due = self.vacuum.is_due(&self.connection, self.is_giving_back);
        self.is_giving_back = is_due.map_err(rolled_back)?;
        match self.is_giving_back {
            true => self.transact(|store| store.vacuum.step(&store.connection, is_idle)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
