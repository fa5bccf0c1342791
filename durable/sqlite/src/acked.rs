//! Which commits were acknowledged, as noted outside of the log?
//!
//! After an unclean end, the log has what the file does not have yet, and SQLite takes a log that is missing, cut short or damaged for one that ends there. So a
//! small file beside the store's notes how far the log went with the last commit that was synced. It is written after the sync and before the commit is
//! answered, so it is never ahead of the log. It is not synced itself, except as a store begins and as it closes: after a power cut it may be some seconds behind.
//!
//! SQLite copies the log into the file page by page. The note also says how far a whole copy went, and whether another one has begun:
//!
//! | the log has | a copy went | what is left |
//! |---|---|---|
//! | all that was acknowledged | | all |
//! | less, or is missing | up to the last commit | all, in the file. What remains of the log is older, and must not be read over it |
//! | less, or is missing | less far | up to the later one of both |
//! | less, or is missing | has begun, and not ended | pages of different commits: the file may be damaged |
//!
//! A log that was begun again has the next salt, and SQLite does that only once all of it was copied.

use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use siphasher::sip::SipHasher24;

use super::OpenError;
use super::error::Loss;
use super::log::{self, Walk};
use super::schema::read_meta;
use super::store::{beside, log_of};
use super::trial::{Files, Trial};

const MAGIC: u64 = u64::from_le_bytes(*b"WWacked1");

/// Numbers of eight bytes, with the magic one before and a checksum behind.
const NUMBERS: usize = 10;
const LENGTH: usize = 8 * (NUMBERS + 2);

/// The salt of a log rises by one each time it is begun again. A note that a power cut has left behind may be so many times old.
const MOST_RESTARTS: u32 = 1 << 16;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Note {
    /// Tells the database from another one that is put in its place.
    database: u64,
    epoch: u64,
    /// The number of the last commit that was acknowledged. They are counted on from one opening to the next.
    commit: u64,
    /// The number of the last commit before the log was begun.
    before_log: u64,
    /// The last commit that a whole copy has brought into the file.
    copied_commit: u64,
    salt: u64,
    /// How many frames the log had, and the checksum of the last one.
    frames: u64,
    sum: u64,
    /// So many of them were copied.
    copied: u64,
    /// A copy has begun that has not ended.
    is_copying: bool,
}

impl Note {
    fn numbers(&self) -> [u64; NUMBERS] {
        [
            self.database,
            self.epoch,
            self.commit,
            self.before_log,
            self.copied_commit,
            self.salt,
            self.frames,
            self.sum,
            self.copied,
            u64::from(self.is_copying),
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
            before_log: next(),
            copied_commit: next(),
            salt: next(),
            frames: next(),
            sum: next(),
            copied: next(),
            is_copying: next() != 0,
        })
    }

    /// Judges how much acknowledged work a log leaves.
    fn judge(&self, log: &Walk) -> Left {
        let is_same = log.salt == Some(self.salt);
        if self.frames == 0 || is_same && log.sum == Some(self.sum) {
            return Left::All { drops_log: false };
        }
        if let Some(salt) = log.salt
            && (1..=MOST_RESTARTS).contains(&first(salt).wrapping_sub(first(self.salt)))
        {
            return Left::All { drops_log: false };
        }
        let is_copied = self.copied >= self.frames && !self.is_copying;
        let found = if is_same { log.frames } else { 0 };
        if is_copied {
            // A log of another salt was begun after that.
            return Left::All { drops_log: is_same };
        }
        let in_log = match found {
            0 => self.before_log,
            _ => self.before_log + log.commits,
        };
        let last = in_log
            .max(self.copied_commit)
            .min(self.commit.saturating_sub(1));
        Left::Part {
            loss: Loss::Commits {
                opening: self.epoch,
                first: last + 1,
                last: self.commit,
                is_torn: self.is_copying,
            },
            drops_log: is_same && found < self.copied && !self.is_copying,
        }
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

/// The part of a salt that counts up.
fn first(salt: u64) -> u32 {
    (salt >> 32) as u32
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
    page_size: u64,
    /// The file has it: something was acknowledged.
    is_there: bool,
    /// A copy that was broken off may have copied so many frames. It is whole once so many are copied again.
    broken_off: u64,
}

/// The findings before a store is opened.
#[derive(Debug)]
pub(crate) struct Found {
    acked: Acked,
    /// The loss that was accepted.
    pub(crate) loss: Option<Loss>,
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
    /// Looks at the note of a file, and refuses the file if acknowledged work is gone that is not accepted as lost.
    pub(crate) fn look(path: &Path, trial: &Trial<'_>) -> Result<Found, OpenError> {
        let files = trial.files;
        let name = beside(path, "-acked");
        let log = log_of(path);
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
        let at = match &note {
            Some(Ok(note)) => note.frames,
            _ => 0,
        };
        let walk = match log::walk(|from, most| (files.read)(&log, from, most), at) {
            Err(error) if is_missing(&error) => Walk::default(),
            Err(error) => return Err(OpenError::io(&log, error)),
            Ok(walk) => walk,
        };
        let is_new = (files.length)(path).unwrap_or(0) == 0;
        let (mut loss, mut drops_log, mut kept) = (None, false, None);
        let epoch = match note {
            None => Epoch::AtLeast(0),
            Some(Err(note)) => {
                loss = Some(Loss::Unknown { note }).filter(|_| !is_new);
                Epoch::FarAhead
            }
            Some(Ok(note)) => {
                // A file that cannot be read counts as this store.
                let now = (!is_new)
                    .then(|| Database::read(path, trial).ok())
                    .flatten();
                // A backup that was put in its place, or a file that was opened by a version without notes, is not what the note is about.
                let is_other = |now: &Database| {
                    now.hash != note.database || now.epoch > note.epoch || now.is_copy
                };
                if !is_new && !now.as_ref().is_some_and(is_other) {
                    match note.judge(&walk) {
                        Left::All { drops_log: drops } => {
                            drops_log = drops;
                            let older = now.map(|it| it.epoch).filter(|it| *it < note.epoch);
                            loss = older.map(|opening| Loss::OlderFile {
                                opening,
                                acknowledged: note.epoch,
                            });
                        }
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
        if let Some(loss) = &loss
            && !trial.accept_loss
        {
            return Err(OpenError::AcknowledgedLost(loss.clone()));
        }
        let mut note = kept.unwrap_or_default();
        let mut broken_off = if note.is_copying { walk.frames } else { 0 };
        if drops_log {
            drop_log(path, &log, trial)?;
        } else if let Some(salt) = walk.salt
            && (salt != note.salt || loss.is_some())
        {
            // How far it was copied is not known.
            note.before_log = note.commit;
            note.commit += walk.commits;
            note.copied_commit = note.before_log;
            note.copied = 0;
            note.salt = salt;
            note.frames = walk.frames;
            note.sum = walk.last_sum;
            broken_off = walk.frames;
        }
        note.is_copying = broken_off > 0;
        let acked = Acked {
            files,
            path: name,
            log,
            is_there: kept.is_some(),
            note,
            page_size: 0,
            broken_off,
        };
        Ok(Found { acked, loss, epoch })
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
        let size: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        self.acked.page_size = size.unsigned_abs();
        self.acked.note.database = now.hash;
        self.acked.note.epoch = now.epoch.max(least);
        Ok((self.acked, Some(least).filter(|least| *least > now.epoch)))
    }
}

impl Acked {
    /// A store has begun: no id of this epoch is given before the note is synced.
    pub(crate) fn begun(&mut self, epoch: u64, frames: i64) {
        self.note.epoch = epoch;
        self.committed(frames, false);
        // A note that is not synced may be behind after a power cut, and nothing worse.
        let _: io::Result<()> = (self.files.sync)(&self.path);
    }

    /// A commit was synced, after which the log has so many frames. None, if it has changed nothing, or if SQLite could not have a log.
    /// `is_copying`: another thread may copy it by now.
    pub(crate) fn committed(&mut self, frames: i64, is_copying: bool) {
        let before = self.note.commit;
        let Some(last) = frames.max(0).unsigned_abs().checked_sub(1) else {
            return;
        };
        self.note.commit += 1;
        let at = log::HEADER as u64 + last * (log::FRAME as u64 + self.page_size);
        let frame = (self.files.read)(&self.log, at, log::FRAME);
        let Some(frame) = frame.ok().filter(|frame| frame.len() == log::FRAME) else {
            // The note stays behind until the next commit.
            return;
        };
        let salt = log::long(&frame, 8);
        if salt != self.note.salt {
            // It was begun again, once all of it was copied.
            self.note.salt = salt;
            self.note.before_log = before;
            self.note.copied_commit = before;
            self.note.copied = 0;
            self.note.is_copying = is_copying;
            self.broken_off = 0;
        }
        self.note.frames = last + 1;
        self.note.sum = log::long(&frame, 16);
        self.write();
    }

    /// The log is about to be copied into the file.
    pub(crate) fn copies(&mut self) {
        if !std::mem::replace(&mut self.note.is_copying, true) && self.is_there {
            self.write();
        }
    }

    /// A copy was broken off, of a log that has so many frames.
    pub(crate) fn is_broken_off(&mut self, frames: i64) {
        self.broken_off = self.broken_off.max(frames.max(0).unsigned_abs());
        self.copies();
    }

    /// A copy has ended, after which so many frames are in the file.
    pub(crate) fn has_copied(&mut self, frames: i64) {
        let frames = frames.max(0).unsigned_abs();
        if frames >= self.broken_off {
            self.broken_off = 0;
        }
        self.note.is_copying = self.broken_off > 0;
        // The file keeps what it has, also where SQLite counts anew, or has no log.
        self.note.copied = self.note.copied.max(frames);
        if self.note.copied >= self.note.frames {
            self.note.copied_commit = self.note.commit;
        }
        if self.is_there {
            self.write();
        }
    }

    /// Whether the log may be cut off: that all of it is in the file is on the disk, if it is to be known at all.
    pub(crate) fn may_cut_log(&mut self) -> bool {
        let is_copied = !self.note.is_copying && self.note.copied >= self.note.frames;
        !self.is_there || is_copied && self.write() && (self.files.sync)(&self.path).is_ok()
    }

    /// One that cannot be written stays behind, and the log is not cut off as the store closes.
    fn write(&mut self) -> bool {
        let is_written = (self.files.write)(&self.path, &self.note.bytes()).is_ok();
        self.is_there |= is_written;
        is_written
    }
}

/// Which database a file has.
#[derive(Debug, Clone, Copy)]
struct Database {
    hash: u64,
    epoch: u64,
    is_copy: bool,
}

impl Database {
    fn read(path: &Path, trial: &Trial<'_>) -> rusqlite::Result<Database> {
        let connection = connect(path, trial)?;
        Database::of(&connection)
    }

    fn of(connection: &Connection) -> rusqlite::Result<Database> {
        let secret = [
            read_meta(connection, "key secret 1")?.to_le_bytes(),
            read_meta(connection, "key secret 2")?.to_le_bytes(),
        ];
        let epoch = read_meta(connection, "epoch")?.unsigned_abs();
        let sql = "SELECT 1 FROM meta WHERE key = 'copied'";
        Ok(Database {
            hash: hash(secret.as_flattened()),
            epoch,
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
    let connection = match trial.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Whether a file has a note.
pub(crate) fn is_noted(path: &Path) -> bool {
    beside(path, "-acked").exists()
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
