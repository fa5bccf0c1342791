//! Which commits were acknowledged, according to a record outside of the WAL?
//!
//! After an unclean exit, the WAL contains what is not yet in the file, and SQLite treats a missing, truncated or damaged WAL like one that ends there. So each
//! commit counts itself in a row of the table `meta`, and a small file next to the store's records the count of the last synced commit, the note. It is written
//! after the sync and before the commit is answered, so it is never ahead of the WAL. It is synced only when a store begins and when it closes: after a power
//! cut it may be some seconds behind. An opening compares the two counts.
//!
//! A checkpoint writes the WAL into the file page by page, so during a checkpoint, and after one that was interrupted or limited by a reader, the file has
//! pages of different commits. The WAL corrects that as long as it exists. So the note also records whether a checkpoint has begun that was not completed, and
//! how many frames the WAL had then:
//!
//! | the count that SQLite reads | a checkpoint | what is left |
//! |---|---|---|
//! | is that of the note, or later | | all |
//! | is earlier | was completed, and the file without its WAL has its count | what is in the file. The rest of the WAL is older, and must not be read over it |
//! | is earlier | was completed, and more commits followed | up to the count that is read |
//! | any | was not completed, and the WAL lacks some of its frames | pages of different commits: the file may be damaged |
//!
//! Another program that opens the file after an unclean exit, such as `sqlite3`, completes the checkpoint and deletes the WAL. The count is then in the file.

use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use siphasher::sip::SipHasher24;

use super::error::{Loss, OpenError};
use super::files::{Files, beside, wal_of};
use super::meta::{EPOCHS_AHEAD, read_meta};
use super::options::OpenOptions;
use super::wal::{self, Length};

const MAGIC: u64 = u64::from_le_bytes(*b"WWacked2");

/// The note consists of a magic number, these numbers of eight bytes each, and a checksum.
const NUMBERS: usize = 7;
const LENGTH: usize = 8 * (NUMBERS + 2);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Note {
    /// Distinguishes the database from another one that replaces it.
    database: u64,
    epoch: u64,
    /// The count of the last acknowledged commit.
    commit: u64,
    /// The count that the file had after the last completed checkpoint.
    copied: u64,
    /// Whether a checkpoint has begun that was not completed.
    is_copying: bool,
    /// The salt of the WAL that the checkpoint copies. SQLite restarts a WAL, with another salt, only after a completed checkpoint.
    salt: u64,
    /// The number of frames of that WAL.
    frames: u64,
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
            self.frames,
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

    /// Parses a note. Returns `None` if the bytes are not one.
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
            frames: next(),
        })
    }

    /// Judges how much acknowledged work is left. `now` is what SQLite reads, and `in_file` is the file without its WAL; both are `None` if the content is
    /// invalid. `has_wal` says whether the WAL being copied is complete.
    fn judge(&self, now: Option<Database>, in_file: Option<Database>, has_wal: bool) -> Left {
        let at = |of: Option<Database>| of.map_or((0, 0), |it| (it.epoch, it.commit));
        let noted = (self.epoch, self.commit);
        let is_torn = self.is_copying && !has_wal;
        if at(now) >= noted && !is_torn {
            return Left::All { drops_wal: false };
        }
        let is_newer = at(in_file) > at(now);
        let drops_wal = !self.is_copying
            && is_newer
            && in_file.is_some_and(|in_file| in_file.commit == self.copied);
        if drops_wal && at(in_file) >= noted {
            return Left::All { drops_wal };
        }
        if !is_torn && now.is_none() && in_file.is_none() {
            // Opening the file reports the error.
            return Left::All { drops_wal: false };
        }
        let is_torn = is_torn || is_newer && !drops_wal;
        let (_, last) = at(now).max(at(in_file));
        let is_older = last < self.copied || last >= self.commit;
        let loss = if is_older && !is_torn {
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
        Left::Part { loss, drops_wal }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    All { drops_wal: bool },
    Part { loss: Loss, drops_wal: bool },
}

fn whole(eight: &[u8]) -> u64 {
    eight.try_into().map_or(0, u64::from_le_bytes)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = SipHasher24::new();
    hash.write(bytes);
    hash.finish()
}

/// The note of an open store.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    files: Files,
    path: PathBuf,
    wal: PathBuf,
    note: Note,
    /// Whether the note's file exists: something was acknowledged.
    is_there: bool,
    /// The count when the running checkpoint began.
    copying: u64,
    /// Why the note could not be written, or `None` if it was.
    failed: Option<io::ErrorKind>,
    /// The failure that was not yet reported.
    failure: Option<io::Error>,
}

/// The findings before a store is opened.
#[derive(Debug)]
pub(crate) struct Found {
    acknowledged: Acknowledged,
    /// The lost acknowledged work.
    pub(crate) loss: Option<Loss>,
    /// Whether the WAL is older than the file, and must not be read over it.
    pub(crate) drops_wal: bool,
    /// The minimum epoch of the store.
    epoch: Epoch,
}

#[derive(Debug, Clone, Copy)]
enum Epoch {
    AtLeast(u64),
    /// The epochs that were assigned are unknown.
    FarAhead,
}

impl Found {
    /// Inspects the note of a file, refuses the file if acknowledged work is gone and the loss is not accepted, and removes a WAL that must not be read.
    pub(crate) fn prepare(path: &Path, options: &OpenOptions<'_>) -> Result<Found, OpenError> {
        let found = Found::inspect(path, options)?;
        if let Some(loss) = &found.loss
            && !options.accept_loss
        {
            return Err(OpenError::AcknowledgedLost(loss.clone()));
        }
        if found.drops_wal {
            drop_wal(path, options)?;
        }
        Ok(found)
    }

    /// Inspects the note of a file without changing anything.
    pub(crate) fn inspect(path: &Path, options: &OpenOptions<'_>) -> Result<Found, OpenError> {
        let files = options.files;
        let name = beside(path, "-acknowledged");
        let io = |error| OpenError::io(&name, error);
        let note = match (files.length)(&name) {
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(io(error)),
            Ok(_) => {
                let bytes = (files.read)(&name, 0, LENGTH).map_err(io)?;
                // A power cut may leave zeros in a file that was not synced, and a full disk a part of the first note.
                let is_blank = bytes.iter().all(|byte| *byte == 0);
                let begins = MAGIC.to_le_bytes().iter().zip(&bytes).all(|(a, b)| a == b);
                let is_part = bytes.len() < LENGTH && begins;
                (!is_blank && !is_part).then(|| Note::read(&bytes).ok_or_else(|| name.clone()))
            }
        };
        let wal = wal_of(path);
        let is_wal = (files.length)(&wal).is_ok_and(|length| length > wal::HEADER as u64);
        let is_new = (files.length)(path).unwrap_or(0) == 0;
        let (mut loss, mut drops_wal, mut kept) = (None, false, None);
        let epoch = match note {
            None => Epoch::AtLeast(0),
            Some(Err(note)) => {
                loss = Some(Loss::Unknown { note }).filter(|_| !is_new);
                Epoch::FarAhead
            }
            Some(Ok(note)) => {
                let (mut now, mut in_file) = (None, None);
                if !is_new {
                    now = Database::read(path, options)?;
                    in_file = Database::without_wal(path, options)?;
                }
                // The note does not apply to a backup that replaced the file, or to a file that was opened by a version without notes. It does apply to a file
                // that cannot be read, and to one whose tables, or whose upgrade to these tables, may have been in the WAL.
                let is_same = |it: &Database| it.hash.is_none_or(|hash| hash == note.database);
                in_file = in_file.filter(is_same);
                if in_file.is_some_and(|it| it.hash.is_some()) {
                    // The WAL of another database was put next to the file.
                    now = now.filter(is_same);
                }
                let is_other = |it: Database| !is_same(&it) || it.epoch > note.epoch || it.is_copy;
                if !is_new && !now.is_some_and(is_other) {
                    let read = |at, max| (files.read)(&wal, at, max);
                    let has_wal = match note.is_copying {
                        false => true,
                        true => match wal::has_frames(read, note.salt, note.frames) {
                            Err(error) if is_missing(&error) => false,
                            has_wal => has_wal.map_err(|error| OpenError::io(&wal, error))?,
                        },
                    };
                    match note.judge(now, in_file, has_wal) {
                        Left::All { drops_wal: drops } => drops_wal = drops,
                        Left::Part {
                            loss: part,
                            drops_wal: drops,
                        } => {
                            loss = Some(part);
                            drops_wal = drops;
                        }
                    }
                    kept = Some(note);
                }
                Epoch::AtLeast(note.epoch)
            }
        };
        let mut note = kept.unwrap_or_default();
        // How far a leftover WAL was copied is unknown, whatever the note says: the note may be behind.
        note.is_copying = is_wal && !drops_wal;
        let acknowledged = Acknowledged {
            files,
            path: name,
            wal,
            is_there: kept.is_some(),
            copying: 0,
            note,
            failed: None,
            failure: None,
        };
        Ok(Found {
            acknowledged,
            loss,
            drops_wal,
            epoch,
        })
    }

    /// Whether the file may contain pages of different commits.
    pub(crate) fn may_be_torn(&self) -> bool {
        let torn = |loss: &Loss| matches!(loss, Loss::Commits { is_torn, .. } if *is_torn);
        self.loss.as_ref().is_some_and(torn)
    }

    /// Returns the note of the opened store, and the minimum epoch if the store's own is lower.
    pub(crate) fn open(
        mut self,
        connection: &Connection,
    ) -> rusqlite::Result<(Acknowledged, Option<u64>)> {
        let now = Database::of(connection)?;
        let min = match self.epoch {
            Epoch::AtLeast(epoch) => epoch,
            Epoch::FarAhead => now.epoch + EPOCHS_AHEAD,
        };
        let note = &mut self.acknowledged.note;
        note.database = now.hash.unwrap_or_default();
        note.epoch = now.epoch.max(min);
        note.commit = now.commit;
        note.copied = note.copied.min(now.commit);
        Ok((self.acknowledged, Some(min).filter(|min| *min > now.epoch)))
    }
}

impl Acknowledged {
    /// Counts an open transaction. Returns its count.
    pub(crate) fn count(&self, transaction: &Connection) -> rusqlite::Result<u64> {
        let sql = "INSERT INTO meta VALUES ('commit', ?1)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        let count = self.note.commit + 1;
        transaction
            .prepare_cached(sql)?
            .execute([count.cast_signed()])?;
        Ok(count)
    }

    /// Notes that a store has begun, before any id of this epoch is assigned. Returns whether the note is synced; one that is behind is harmless.
    pub(crate) fn begun(&mut self, epoch: u64, count: u64) -> bool {
        self.note.epoch = epoch;
        self.note.commit = count;
        self.write() && self.sync()
    }

    /// Notes an epoch that the last commit has begun. Returns whether the note is synced.
    pub(crate) fn has_begun(&mut self, epoch: u64) -> bool {
        self.begun(epoch, self.note.commit)
    }

    /// Notes that the transaction with this count was synced.
    pub(crate) fn committed(&mut self, count: u64) {
        self.note.commit = count;
        self.write();
    }

    /// Whether an uncompleted checkpoint has begun. Then the length of the WAL must be [set](Acknowledged::wal_has) before each commit is noted.
    pub(crate) fn is_copying(&self) -> bool {
        self.note.is_copying
    }

    /// Sets the length of the WAL.
    pub(crate) fn wal_has(&mut self, wal: Length) {
        self.note.frames = wal.all.max(0).unsigned_abs();
    }

    /// Notes that a checkpoint of a WAL of this length is about to begin.
    pub(crate) fn copies(&mut self, wal: Length) {
        self.wal_has(wal);
        self.note.is_copying = true;
        self.copying = self.note.commit;
        if self.is_there {
            self.write();
        }
    }

    /// Notes that a checkpoint has ended with this much of the WAL copied; a reader may have limited it. `is_beside`: whether commits continued.
    pub(crate) fn has_copied(&mut self, wal: Length, is_beside: bool) {
        if wal.left() > 0 {
            return;
        }
        self.note.is_copying = false;
        self.note.copied = match is_beside {
            true => self.copying,
            false => self.note.commit,
        };
        if self.is_there {
            self.write();
        }
    }

    /// Whether the WAL may be truncated: the note, if there is one, says on disk that all of the WAL is in the file.
    pub(crate) fn may_cut_wal(&mut self) -> bool {
        let is_copied = !self.note.is_copying && self.note.copied == self.note.commit;
        !self.is_there || is_copied && self.write() && self.sync()
    }

    fn sync(&mut self) -> bool {
        let synced = (self.files.sync)(&self.path);
        self.is_done(synced)
    }

    /// Writes the note. If that fails, the note stays behind, and the WAL is not truncated when the store closes.
    fn write(&mut self) -> bool {
        if self.note.is_copying {
            // A checkpoint concurrent with commits continues with the next WAL.
            let header = (self.files.read)(&self.wal, 0, wal::HEADER);
            self.note.salt = header.map_or(0, |header| wal::salt(&header));
        }
        let written = (self.files.write)(&self.path, &self.note.bytes());
        self.is_there |= written.is_ok();
        self.is_done(written)
    }

    fn is_done(&mut self, done: io::Result<()>) -> bool {
        let failed = done.as_ref().err().map(io::Error::kind);
        if failed != self.failed {
            self.failure = done.err();
        }
        self.failed = failed;
        failed.is_none()
    }

    /// Returns why the note could not be written, if that is new, and its path.
    pub(crate) fn failure(&mut self) -> Option<(&Path, io::Error)> {
        Some((&self.path, self.failure.take()?))
    }
}

/// The database in a file, and its last commit.
#[derive(Debug, Clone, Copy)]
struct Database {
    /// A hash of the secrets, or `None` if there are no tables.
    hash: Option<u64>,
    epoch: u64,
    commit: u64,
    is_copy: bool,
}

impl Database {
    /// Reads the file and its WAL, as SQLite does. Returns `None` if the content is invalid.
    fn read(path: &Path, options: &OpenOptions<'_>) -> Result<Option<Database>, OpenError> {
        let read = connect(path, options).and_then(|connection| Database::of(&connection));
        Database::if_sound(read)
    }

    /// Reads the file without its WAL. Returns `None` if the content is invalid.
    fn without_wal(path: &Path, options: &OpenOptions<'_>) -> Result<Option<Database>, OpenError> {
        let mut name = String::from("file:");
        for byte in path.as_os_str().as_encoded_bytes() {
            name += &format!("%{byte:02X}");
        }
        // With this, SQLite takes no lock and does not look for a WAL.
        name += "?immutable=1";
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let read = open(Path::new(&name), flags, options);
        Database::if_sound(read.and_then(|connection| Database::of(&connection)))
    }

    fn if_sound(read: rusqlite::Result<Database>) -> Result<Option<Database>, OpenError> {
        match read.map_err(OpenError::in_tables) {
            Ok(read) => Ok(Some(read)),
            Err(OpenError::Corrupt(_) | OpenError::NotADatabase) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(connection: &Connection) -> rusqlite::Result<Database> {
        let has_tables = connection
            .prepare("SELECT 1 FROM sqlite_schema")?
            .exists([])?;
        if !has_tables {
            return Ok(Database {
                hash: None,
                epoch: 0,
                commit: 0,
                is_copy: false,
            });
        }
        let secret = [
            read_meta(connection, "key secret 1")?.to_le_bytes(),
            read_meta(connection, "key secret 2")?.to_le_bytes(),
        ];
        // A file has no count if it has not changed since commits are counted.
        let sql = "SELECT value FROM meta WHERE key = 'commit'";
        let commit: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
        let sql = "SELECT 1 FROM meta WHERE key = 'copied'";
        Ok(Database {
            hash: Some(hash(secret.as_flattened())),
            epoch: read_meta(connection, "epoch")?.unsigned_abs(),
            commit: commit.unwrap_or(0).unsigned_abs(),
            is_copy: connection.prepare(sql)?.exists([])?,
        })
    }
}

/// Removes a WAL that must not be read over the file, while no connection has it open: a connection would continue to use its index of the removed WAL.
fn drop_wal(path: &Path, options: &OpenOptions<'_>) -> Result<(), OpenError> {
    let wal = wal_of(path);
    let alone = connect(path, options).map_err(OpenError::of)?;
    // Set before anything is read: the first look at the WAL then locks all others out, and fails if any other connection has looked at it.
    let all = alone.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK");
    // The pages that the WAL would put over the file may be invalid. The file is locked even then.
    match all.map_err(OpenError::of) {
        Ok(()) | Err(OpenError::Corrupt(_)) => {}
        Err(error) => return Err(error),
    }
    (options.files.remove)(&wal).map_err(|error| OpenError::io(&wal, error))?;
    drop(alone);
    Ok(())
}

/// Opens a connection that leaves the WAL as it is.
fn connect(path: &Path, options: &OpenOptions<'_>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags, options)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags, options: &OpenOptions<'_>) -> rusqlite::Result<Connection> {
    match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
}

/// Whether a file has a note.
pub(crate) fn is_noted(path: &Path) -> bool {
    beside(path, "-acknowledged").exists()
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
