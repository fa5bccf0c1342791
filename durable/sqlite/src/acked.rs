//! Which commits were acknowledged, as noted outside of the log?
//!
//! After an unclean end, the log has what the file does not have yet, and SQLite takes a log that is missing, cut short or damaged for one that ends there. So each
//! commit counts itself, in a row of the table `meta`, and a small file beside the store's notes the count of the last one that was synced. It is written after
//! the sync and before the commit is answered, so it is never ahead of the log. It is not synced itself, except as a store begins and as it closes: after a power
//! cut it may be some seconds behind. An opening compares the two counts.
//!
//! SQLite copies the log into the file page by page, so the file may have pages of different commits while that goes on. The note also says whether it does, and how
//! far a whole copy went:
//!
//! | the count that SQLite reads | a copy | what is left |
//! |---|---|---|
//! | is that of the note, or higher | | all |
//! | is lower | was whole: the file without its log has the count of the note | all, in the file. What remains of the log is older, and must not be read over it |
//! | is lower | went less far | up to the higher count of the two |
//! | is lower, or is not in the log | has begun, and not ended | pages of different commits: the file may be damaged |
//!
//! Another program that opens the file after an unclean end, such as `sqlite3`, copies the log and deletes it. The count is in the file then.

use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use siphasher::sip::SipHasher24;

use super::OpenError;
use super::copier::Length;
use super::error::Loss;
use super::log;
use super::schema::read_meta;
use super::store::{beside, log_of};
use super::trial::{Files, Trial};

const MAGIC: u64 = u64::from_le_bytes(*b"WWacked2");

/// Numbers of eight bytes, with the magic one before and a checksum behind.
const NUMBERS: usize = 7;
const LENGTH: usize = 8 * (NUMBERS + 2);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Note {
    /// Tells the database from another one that is put in its place.
    database: u64,
    epoch: u64,
    /// The count of the last commit that was acknowledged.
    commit: u64,
    /// The count up to which a whole copy has brought the log into the file.
    copied: u64,
    /// A copy has begun that has not ended.
    is_copying: bool,
    /// The salt of the log that is copied. SQLite begins a log again, with another salt, once all of it was copied.
    salt: u64,
    /// The page of the table that has the count.
    page: u64,
}

impl Note {
    fn numbers(&self) -> [u64; NUMBERS] {
        [
            self.database,
            self.epoch,
            self.commit,
            self.copied,
            u64::from(self.is_copying),
            self.salt,
            self.page,
        ]
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        for number in self.numbers() {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(hash(&bytes).to_le_bytes());
        bytes
    }

    /// `None` if the bytes are no note.
    fn read(bytes: &[u8]) -> Option<Note> {
        let (body, sum) = bytes.split_at_checked(LENGTH - 8)?;
        let mut numbers = body.chunks_exact(8).map(whole);
        let is_whole = numbers.next() == Some(MAGIC) && sum.len() == 8 && whole(sum) == hash(body);
        let mut next = || numbers.next().unwrap_or_default();
        is_whole.then(|| Note {
            database: next(),
            epoch: next(),
            commit: next(),
            copied: next(),
            is_copying: next() != 0,
            salt: next(),
            page: next(),
        })
    }

    /// Judges how much acknowledged work is left. `now` is what SQLite reads, and `in_file` is the file without its log; `None` if that cannot be read.
    /// `is_in_log` is whether the log that is copied has the page with the count, or is no more.
    fn judge(
        &self,
        now: Option<Database>,
        in_file: Option<Database>,
        is_in_log: impl FnOnce() -> bool,
    ) -> Left {
        let count = |of: Option<Database>| of.map_or(0, |it| it.commit);
        let is_torn = self.is_copying && self.copied < self.commit;
        // If it cannot be read, and for no reason that is known here, the opening says why.
        let is_unreadable = !is_torn && now.is_none() && in_file.is_none();
        if is_unreadable || count(now) >= self.commit && (!is_torn || is_in_log()) {
            return Left::All { drops_log: false };
        }
        let drops_log = !is_torn && count(in_file) > count(now);
        if drops_log && count(in_file) >= self.commit {
            return Left::All { drops_log };
        }
        let last = count(now).max(count(in_file));
        let loss = if !is_torn && last < self.copied {
            Loss::OlderFile {
                opening: now.or(in_file).map_or(0, |it| it.epoch),
                acknowledged: self.epoch,
            }
        } else {
            Loss::Commits {
                opening: self.epoch,
                first: 1 + if is_torn { self.copied } else { last },
                last: self.commit,
                is_torn,
            }
        };
        Left::Part { loss, drops_log }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    All { drops_log: bool },
    Part { loss: Loss, drops_log: bool },
}

fn whole(eight: &[u8]) -> u64 {
    eight.try_into().map_or(0, u64::from_le_bytes)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = SipHasher24::new();
    hash.write(bytes);
    hash.finish()
}

/// The note of a store that is open.
#[derive(Debug)]
pub(crate) struct Acked {
    files: Files,
    path: PathBuf,
    log: PathBuf,
    note: Note,
    /// The file has it: something was acknowledged.
    is_there: bool,
    /// A copy may have been broken off: the file has pages of different commits until a whole copy of the log.
    is_broken_off: bool,
    /// Why it is not written. `None` if it is.
    failed: Option<io::ErrorKind>,
    /// That was not told yet.
    failure: Option<io::Error>,
}

/// The findings before a store is opened.
#[derive(Debug)]
pub(crate) struct Found {
    acked: Acked,
    /// What is gone.
    pub(crate) loss: Option<Loss>,
    /// Whether the log is older than the file, and must not be read over it.
    pub(crate) drops_log: bool,
    /// The epoch that the store is to have at least.
    epoch: Epoch,
}

#[derive(Debug, Clone, Copy)]
enum Epoch {
    AtLeast(u64),
    /// It is not known which ones were given.
    FarAhead,
}

impl Found {
    /// Looks at the note of a file, refuses the file if acknowledged work is gone that is not accepted as lost, and removes a log that must not be read.
    pub(crate) fn prepare(path: &Path, trial: &Trial<'_>) -> Result<Found, OpenError> {
        let found = Found::look(path, trial)?;
        if let Some(loss) = &found.loss
            && !trial.accept_loss
        {
            return Err(OpenError::AcknowledgedLost(loss.clone()));
        }
        if found.drops_log {
            drop_log(path, &log_of(path), trial)?;
        }
        Ok(found)
    }

    /// Looks at the note of a file, and changes nothing.
    pub(crate) fn look(path: &Path, trial: &Trial<'_>) -> Result<Found, OpenError> {
        let files = trial.files;
        let name = beside(path, "-acked");
        let io = |error| OpenError::io(&name, error);
        let note = match (files.length)(&name) {
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(io(error)),
            Ok(_) => {
                let bytes = (files.read)(&name, 0, LENGTH).map_err(io)?;
                // Zeros are what a power cut may leave of a file that was not synced.
                let is_blank = bytes.iter().all(|byte| *byte == 0);
                (!is_blank).then(|| Note::read(&bytes).ok_or_else(|| name.clone()))
            }
        };
        let log = log_of(path);
        let has_log = (files.length)(&log).is_ok_and(|length| length > log::HEADER as u64);
        let is_new = (files.length)(path).unwrap_or(0) == 0;
        let (mut loss, mut drops_log, mut kept) = (None, false, None);
        let epoch = match note {
            None => Epoch::AtLeast(0),
            Some(Err(note)) => {
                loss = Some(Loss::Unknown { note }).filter(|_| !is_new);
                Epoch::FarAhead
            }
            Some(Ok(note)) => {
                let now = match is_new {
                    true => None,
                    false => Database::read(path, trial)?,
                };
                // A backup that was put in its place, or a file that was opened by a version without notes, is not what the note is about. A file that cannot
                // be read counts as this store.
                let is_same = |it: &Database| match it.hash {
                    Hash::Of(hash) => hash == note.database,
                    // Or the step to these tables was in the log.
                    Hash::OlderTables => note.copied == 0,
                    Hash::NoTables => true,
                };
                let is_other = |it: Database| !is_same(&it) || it.epoch > note.epoch || it.is_copy;
                if !is_new && !now.is_some_and(is_other) {
                    let in_file = Database::without_log(path, trial).ok().filter(is_same);
                    let read = |at, most| (files.read)(&log, at, most);
                    let is_in_log = || log::has_page(read, note.salt, note.page).unwrap_or(false);
                    match note.judge(now, in_file, is_in_log) {
                        Left::All { drops_log: drops } => drops_log = drops,
                        Left::Part {
                            loss: part,
                            drops_log: drops,
                        } => {
                            loss = Some(part);
                            drops_log = drops;
                        }
                    }
                    kept = Some(note);
                }
                Epoch::AtLeast(note.epoch)
            }
        };
        let mut note = kept.unwrap_or_default();
        note.is_copying &= has_log && !drops_log;
        let acked = Acked {
            files,
            path: name,
            log,
            is_there: kept.is_some(),
            is_broken_off: note.is_copying,
            note,
            failed: None,
            failure: None,
        };
        Ok(Found {
            acked,
            loss,
            drops_log,
            epoch,
        })
    }

    /// Whether pages of different commits may be in the file.
    pub(crate) fn may_be_torn(&self) -> bool {
        let torn = |loss: &Loss| matches!(loss, Loss::Commits { is_torn, .. } if *is_torn);
        self.loss.as_ref().is_some_and(torn)
    }

    /// The note of the store once it is open, and the least epoch it must have, if its own is lower.
    pub(crate) fn open(
        mut self,
        connection: &Connection,
    ) -> rusqlite::Result<(Acked, Option<u64>)> {
        let now = Database::of(connection)?;
        let least = match self.epoch {
            Epoch::AtLeast(epoch) => epoch,
            Epoch::FarAhead => now.epoch + super::EPOCHS_AHEAD,
        };
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'meta'";
        let page: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let note = &mut self.acked.note;
        *note = Note {
            database: match now.hash {
                Hash::Of(hash) => hash,
                Hash::OlderTables | Hash::NoTables => 0,
            },
            epoch: now.epoch.max(least),
            commit: now.commit,
            copied: note.copied.min(now.commit),
            page: page.unsigned_abs(),
            ..*note
        };
        Ok((self.acked, Some(least).filter(|least| *least > now.epoch)))
    }
}

impl Acked {
    /// Counts a transaction that is open. Returns its count.
    pub(crate) fn count(&self, transaction: &Connection) -> rusqlite::Result<u64> {
        let sql = "INSERT INTO meta VALUES ('commit', ?1)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        let count = self.note.commit + 1;
        transaction
            .prepare_cached(sql)?
            .execute([count.cast_signed()])?;
        Ok(count)
    }

    /// A store has begun: no id of this epoch is given before the note is synced.
    pub(crate) fn begun(&mut self, epoch: u64, count: u64) {
        self.note.epoch = epoch;
        self.committed(count);
        // A note that is not synced may be behind after a power cut, and nothing worse.
        let _: io::Result<()> = (self.files.sync)(&self.path);
    }

    /// A transaction with this count was synced.
    pub(crate) fn committed(&mut self, count: u64) {
        self.note.commit = count;
        self.write();
    }

    /// The log is about to be copied into the file.
    pub(crate) fn copies(&mut self) {
        if !std::mem::replace(&mut self.note.is_copying, true) && self.is_there {
            self.write();
        }
    }

    /// A copy was broken off.
    pub(crate) fn is_broken_off(&mut self) {
        self.is_broken_off = true;
        self.copies();
    }

    /// A copy has ended, after which the log is so long.
    pub(crate) fn has_copied(&mut self, log: Length) {
        if log.left() <= 0 {
            self.is_broken_off = false;
            self.note.copied = self.note.commit;
        }
        self.note.is_copying = self.is_broken_off;
        if self.is_there {
            self.write();
        }
    }

    /// Whether the log may be cut off: that all of it is in the file is on the disk, if it is to be known at all.
    pub(crate) fn may_cut_log(&mut self) -> bool {
        let is_copied = !self.note.is_copying && self.note.copied == self.note.commit;
        !self.is_there || is_copied && self.write() && (self.files.sync)(&self.path).is_ok()
    }

    /// One that cannot be written stays behind, and the log is not cut off as the store closes.
    fn write(&mut self) -> bool {
        if self.note.is_copying {
            // A copy beside commits goes on with the next log.
            let header = (self.files.read)(&self.log, 0, log::HEADER);
            self.note.salt = header.map_or(0, |header| log::salt(&header));
        }
        match (self.files.write)(&self.path, &self.note.bytes()) {
            Ok(()) => {
                self.is_there = true;
                self.failed = None;
            }
            Err(error) => {
                if self.failed.replace(error.kind()) != Some(error.kind()) {
                    self.failure = Some(error);
                }
            }
        }
        self.failed.is_none()
    }

    /// Why it could not be written, if that is new, and its path.
    pub(crate) fn failure(&mut self) -> Option<(&Path, io::Error)> {
        Some((&self.path, self.failure.take()?))
    }
}

/// Which database a file has, and up to which commit.
#[derive(Debug, Clone, Copy)]
struct Database {
    hash: Hash,
    epoch: u64,
    commit: u64,
    is_copy: bool,
}

#[derive(Debug, Clone, Copy)]
enum Hash {
    /// Of its secrets.
    Of(u64),
    /// Tables of version 1 have none.
    OlderTables,
    /// Nothing is in the file: its tables were in the log, if it ever had some.
    NoTables,
}

impl Database {
    /// What SQLite reads of a file and its log. `None` if that makes no sense.
    fn read(path: &Path, trial: &Trial<'_>) -> Result<Option<Database>, OpenError> {
        let read = connect(path, trial).and_then(|connection| Database::of(&connection));
        match read.map_err(OpenError::of) {
            Ok(read) => Ok(Some(read)),
            Err(error @ OpenError::Busy { .. }) => Err(error),
            Err(error) if error.may_be_full() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// What is in the file itself.
    fn without_log(path: &Path, trial: &Trial<'_>) -> rusqlite::Result<Database> {
        let mut name = String::from("file:");
        for byte in path.as_os_str().as_encoded_bytes() {
            name += &format!("%{byte:02X}");
        }
        // SQLite takes no lock then, and looks for no log.
        name += "?immutable=1";
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Database::of(&open(Path::new(&name), flags, trial)?)
    }

    fn of(connection: &Connection) -> rusqlite::Result<Database> {
        if !connection
            .prepare("SELECT 1 FROM sqlite_schema")?
            .exists([])?
        {
            return Ok(Database {
                hash: Hash::NoTables,
                epoch: 0,
                commit: 0,
                is_copy: false,
            });
        }
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let hash = match version {
            1 => Hash::OlderTables,
            _ => {
                let secret = [
                    read_meta(connection, "key secret 1")?.to_le_bytes(),
                    read_meta(connection, "key secret 2")?.to_le_bytes(),
                ];
                Hash::Of(hash(secret.as_flattened()))
            }
        };
        // A file that was not changed since commits are counted has no count.
        let sql = "SELECT value FROM meta WHERE key = 'commit'";
        let commit: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
        let sql = "SELECT 1 FROM meta WHERE key = 'copied'";
        Ok(Database {
            hash,
            epoch: read_meta(connection, "epoch")?.unsigned_abs(),
            commit: commit.unwrap_or(0).unsigned_abs(),
            is_copy: connection.prepare(sql)?.exists([])?,
        })
    }
}

/// Removes a log that must not be read over the file, while no connection has it open: one would go on with its index of the log that was.
fn drop_log(path: &Path, log: &Path, trial: &Trial<'_>) -> Result<(), OpenError> {
    let alone = connect(path, trial).map_err(OpenError::of)?;
    // Before it reads anything: with its first look at the log it locks all others out, and is locked out by each that has looked at it.
    let all = alone.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK");
    // The pages that the log would put over the file may make no sense. It is locked then as well.
    match all.map_err(OpenError::of) {
        Ok(()) | Err(OpenError::Corrupt(_)) => {}
        Err(error) => return Err(error),
    }
    (trial.files.remove)(log).map_err(|error| OpenError::io(log, error))?;
    drop(alone);
    Ok(())
}

/// A connection that leaves the log as it is.
fn connect(path: &Path, trial: &Trial<'_>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags, trial)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags, trial: &Trial<'_>) -> rusqlite::Result<Connection> {
    match trial.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
}

/// Whether a file has a note.
pub(crate) fn is_noted(path: &Path) -> bool {
    beside(path, "-acked").exists()
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
