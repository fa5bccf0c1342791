//! The life of a seed, until the power is cut.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use waterwheel_durable_core::store::{Handle, Outcome, Store, StoreError};
use waterwheel_durable_faults::{Call, Chance, Content, Disk, Fault, Kind, Moment};
use waterwheel_durable_sqlite::{Files, OpenOptions, Sizes, SqliteStore, Vacuum};

use super::model::{Contents, Model};
use super::steps::{HANDLERS, are_same};
use crate::look::look;
use crate::report::in_words;

pub(crate) const FILE: &str = "timers.db";
pub(crate) const WAL: &str = "timers.db-wal";

/// The files of the store on a disk in memory.
pub(crate) const IN_MEMORY: Files = Files {
    read: Disk::read_path,
    length: Disk::length_path,
    append: Disk::append_path,
    write: Disk::write_path,
    sync: Disk::sync_path,
    set_length: Disk::shorten_path,
    remove: Disk::remove_path,
    free: Disk::free_path,
    size: |_| None,
    longest: || None,
};

/// The circumstances of a power cut. One of those up to `Nothing` tells what was going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub(super) enum Seen {
    /// The first opening, which creates the tables.
    Creation,
    /// An opening of a file with tables.
    Opening,
    /// The commit that counts openings.
    Beginning,
    /// A read of a commit.
    CommitRead,
    /// A write to the WAL by a commit.
    CommitWrite,
    /// The sync of a commit.
    CommitSync,
    /// A read or a sync of the WAL during a checkpoint.
    CheckpointRead,
    /// A write to the file during a checkpoint.
    CheckpointWrite,
    /// The sync of the file at the end of a checkpoint.
    CheckpointSync,
    /// A write to the WAL after a commit was answered: keys are sorted, or the file is shortened.
    MaintainWrite,
    /// A write of the reserve, its sync, or its deletion.
    Reserve,
    /// A write of the note of acknowledged commits, or its sync.
    Note,
    /// The end of an orderly life, with a checkpoint that empties the WAL.
    Closing,
    /// Nothing: a commit, or its inserts, had just been refused for lack of space.
    Refusal,
    /// Nothing: a sync, a read or a write had failed, and with it the store.
    Failure,
    /// Nothing: between two calls.
    Nothing,
    /// The commit that was in progress is there.
    Kept,
    /// The commit that was in progress is gone.
    Gone,
    /// Something was not synced.
    Unsynced,
    /// A commit was refused earlier for lack of space.
    RefusedCommit,
    /// A commit was done without its inserts.
    RefusedInserts,
    /// Inserts were done after a refusal.
    InsertsAgain,
}

/// How often each circumstance was seen.
pub(super) type Tally = BTreeMap<Seen, u64>;

/// The possible results of the commit that is in progress.
#[derive(Debug, Clone)]
pub(super) struct UnderWay {
    /// The contents if it was done, and the store's answers.
    pub(super) done: (Model, Vec<Outcome>),
    /// The contents and the answers if there is no space for its inserts.
    pub(super) full: (Model, Vec<Outcome>),
}

impl UnderWay {
    /// A call without inserts.
    fn only(done: Model) -> UnderWay {
        let done = (done, Vec::new());
        let full = done.clone();
        UnderWay { done, full }
    }
}

/// The store's answer.
enum Said<T> {
    Done(T),
    /// Nothing was done.
    Refused,
    /// It is unknown what was done, and the life is over.
    Failed,
}

/// A life that continues after power cuts, on one disk.
pub(super) struct Life<'a> {
    pub(super) rng: Rng,
    disk: &'a Disk,
    synchronous: &'a str,
    long_wal: i64,
    key_sizes: Sizes,
    vacuum: Vacuum,
    /// The contents according to the store's answers. `None` before the first opening.
    acknowledged: Option<Model>,
    /// The contents if the call in progress is done.
    pub(super) under_way: Option<UnderWay>,
    pub(super) now: i64,
    pub(super) inserted: u64,
    /// The handles of timers that were to be inserted.
    pub(super) handles: Vec<Handle>,
    /// Whether the disk may fail, or may have failed, in this life.
    has_faults: bool,
    /// Whether the disk is full now and then.
    fills: bool,
    /// Whether inserts were refused last.
    is_full: bool,
    tally: &'a mut Tally,
}

impl<'a> Life<'a> {
    pub(super) fn new(
        seed: u64,
        disk: &'a Disk,
        synchronous: &'a str,
        tally: &'a mut Tally,
    ) -> Life<'a> {
        let mut rng = Rng::with_seed(seed);
        disk.put(Content::default());
        Life {
            disk,
            synchronous,
            long_wal: 1 << rng.u32(2..8),
            key_sizes: Sizes {
                fresh: rng.usize(1..20),
                step: rng.u64(1..10),
            },
            vacuum: Vacuum {
                min: 0,
                step: rng.i64(1..10),
                // Time must not matter: a seed gives one life, however busy the machine is.
                time: Duration::MAX,
            },
            acknowledged: None,
            under_way: None,
            now: 1_800_000_000_000 + rng.i64(0..86_400_000),
            inserted: 0,
            handles: Vec::new(),
            has_faults: false,
            fills: false,
            is_full: false,
            tally,
            rng,
        }
    }

    /// Lives until the power is cut, and checks what is left.
    pub(super) fn go_on(&mut self) -> Result<(), String> {
        if self.acknowledged.is_some() && self.rng.u32(0..4) == 0 {
            self.command().map_err(in_words)?;
        }
        self.fills = self.rng.u32(0..3) == 0;
        if self.fills {
            let used = self.disk.used();
            let room = 1 << self.rng.u32(10..19);
            self.disk.set_capacity(used + self.rng.usize(0..room), 0);
            self.disk.set_copies_on_write(self.rng.bool());
            self.disk.set_quota(self.rng.u32(0..4) == 0);
        }
        let (moment, after_it) = self.moment();
        // Count from the first commit, or from the opening.
        let is_late = self.rng.bool();
        if !is_late {
            self.disk.cut_at(moment, after_it);
        }
        self.has_faults = self.rng.u32(0..3) == 0;
        if self.has_faults {
            let (moment, fault) = self.fault();
            self.disk.fail(moment, fault);
        }
        let doing = self.live(is_late.then_some((moment, after_it)))?;
        self.disk.cut_now();
        let cut = self.disk.cut().ok_or("the power was not cut")?;
        self.note(match (doing, cut.call, cut.kind) {
            (_, _, Kind::Reserve) => Seen::Reserve,
            (_, _, Kind::Note) => Seen::Note,
            (Seen::CommitRead, Call::Write | Call::Open, Kind::Wal) => Seen::CommitWrite,
            (Seen::CommitRead, Call::Sync, _) => Seen::CommitSync,
            (Seen::CheckpointRead, Call::Write, Kind::Main) => Seen::CheckpointWrite,
            (Seen::CheckpointRead, Call::Sync, Kind::Main) => Seen::CheckpointSync,
            (Seen::CheckpointRead, Call::Write | Call::Open, Kind::Wal) => Seen::MaintainWrite,
            (other, ..) => other,
        });
        if !self.disk.content().is_synced() {
            self.note(Seen::Unsynced);
        }
        let calls = self.disk.calls();
        self.disk.restart(&mut Chance::new(&mut self.rng, calls));
        match self.check()? {
            Some(true) => self.note(Seen::Kept),
            Some(false) => self.note(Seen::Gone),
            None => {}
        }
        Ok(())
    }

    fn note(&mut self, seen: Seen) {
        *self.tally.entry(seen).or_default() += 1;
    }

    /// Sends a command from another process, while no store is open.
    fn command(&mut self) -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let other = Connection::open_with_flags_and_vfs(FILE, flags, self.disk.vfs())?;
        // As the real command does: the checkpoint is left to the store.
        other.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let sql = "INSERT INTO commands (body, until) VALUES (?1, 1 << 60)";
        other.execute(sql, ["pause billing"])?;
        if let Some(model) = &mut self.acknowledged {
            model.add_command(other.last_insert_rowid());
        }
        drop(other);
        let names = [FILE, WAL, "timers.db-reserve", "timers.db-acknowledged"];
        let files: Vec<_> = names
            .into_iter()
            .filter_map(|name| Some((name, self.disk.read(name)?)))
            .collect();
        self.disk.put(Content::of(files));
        Ok(())
    }

    /// Chooses when the power is cut.
    fn moment(&mut self) -> (Moment, bool) {
        let rng = &mut self.rng;
        let (call, kind, max) = match rng.u32(0..17) {
            0 => (None, None, 4),
            1 => (None, None, 6),
            2 => (None, None, 12),
            3 => (None, Some(Kind::Other), 4),
            4..7 => (Some(Call::Write), Some(Kind::Wal), 10),
            7 => (Some(Call::Read), None, 5),
            8 | 9 => (Some(Call::Sync), Some(Kind::Wal), 6),
            10 | 11 => (Some(Call::Write), Some(Kind::Main), 5),
            12 | 13 => (Some(Call::Sync), Some(Kind::Main), 2),
            14 => (Some(Call::Length), None, 1),
            15 => (None, Some(Kind::Reserve), 4),
            // Not before the end.
            _ => (Some(Call::Write), None, 62),
        };
        let after = (1 << rng.u32(0..=max)) - 1;
        let after = match after < 1 << 60 {
            true => rng.u64(0..=after),
            false => after,
        };
        (Moment { call, kind, after }, rng.bool())
    }

    /// Chooses how the disk fails, and from when on.
    fn fault(&mut self) -> (Moment, Fault) {
        let rng = &mut self.rng;
        let (call, kind, fault, max) = match rng.u32(0..8) {
            0 => (Call::Sync, Kind::Wal, Fault::Error, 60),
            1 => (Call::Sync, Kind::Wal, Fault::Dropped, 60),
            2 => (Call::Sync, Kind::Main, Fault::Error, 5),
            3 => (Call::Sync, Kind::Main, Fault::Dropped, 5),
            4 => (Call::Write, Kind::Wal, Fault::Error, 400),
            5 => (
                Call::Write,
                Kind::Main,
                Fault::NoSpace(rng.usize(0..4_096)),
                40,
            ),
            _ => (
                Call::Write,
                Kind::Wal,
                Fault::NoSpace(rng.usize(0..4_096)),
                80,
            ),
        };
        let after = rng.u64(0..max);
        (
            Moment {
                after,
                ..Moment::next(call, kind)
            },
            fault,
        )
    }

    /// Opens the store and works with it, until the power is cut or the life is over. Returns what was going on at the end. A given cut counts from the first
    /// commit.
    fn live(&mut self, cut: Option<(Moment, bool)>) -> Result<Seen, String> {
        let opening = match self.acknowledged {
            None => Seen::Creation,
            Some(_) => Seen::Opening,
        };
        let new = self.acknowledged.is_none().then(Model::default);
        self.under_way = new.map(UnderWay::only);
        let reserve = match self.rng.u32(0..4) {
            0 => (0, 0),
            _ => (16 << 10, 128 << 10),
        };
        let options = self.options(reserve);
        let store = SqliteStore::open_with_options(&self.disk.path(FILE), &options);
        let Said::Done(mut store) = self.said(store, |_| false)? else {
            return Ok(self.ends(opening));
        };
        self.acknowledged.get_or_insert_default();
        let mut begun = self.model();
        begun.begin();
        self.under_way = Some(UnderWay::only(begun));
        let begun = store.begin();
        let Said::Done(epoch) = self.said(begun, StoreError::is_definite)? else {
            return Ok(self.ends(Seen::Beginning));
        };
        self.is_acknowledged();
        let expected = self.model().epoch();
        if epoch != expected {
            return Err(format!("opening {expected} is {epoch}"));
        }
        self.inserted = 0;
        if let Some((moment, after_it)) = cut {
            self.disk.cut_at(moment, after_it);
        }
        for number in 1..=self.rng.u64(1..120) {
            match self.rng.u32(0..10) {
                0 if self.fills => drop(self.disk.fill()),
                1 if self.fills => self.disk.set_foreign(0),
                2 => {
                    let mut taken = self.model();
                    taken.take_commands();
                    self.under_way = Some(UnderWay::only(taken));
                    let commands = store.commands();
                    match self.said(commands, StoreError::is_definite)? {
                        Said::Done(_) => self.is_acknowledged(),
                        Said::Refused => self.under_way = None,
                        Said::Failed => return Ok(self.ends(Seen::CommitRead)),
                    }
                }
                _ => {}
            }
            let steps = self.steps();
            let committed = store.commit(number, &steps);
            match self.said(committed, StoreError::is_definite)? {
                Said::Done(outcomes) => {
                    self.is_done(&outcomes)?;
                    if self.is_full && self.rng.u32(0..20) == 0 {
                        return Ok(Seen::Refusal);
                    }
                }
                Said::Refused => {
                    // The refused work must not come back, even if nothing overwrites its remains.
                    self.under_way = None;
                    if self.rng.u32(0..3) == 0 {
                        return Ok(Seen::Refusal);
                    }
                }
                Said::Failed => return Ok(self.ends(Seen::CommitRead)),
            }
            if let Err(error) = store.maintain()
                && !error.is_definite()
                && let Said::Failed = self.said(Err::<(), _>(error), |_| false)?
            {
                return Ok(self.ends(Seen::CheckpointRead));
            }
            if self.has_faults && self.rng.u32(0..8) == 0 {
                self.disk.mend();
            }
        }
        if self.rng.bool() {
            self.disk.cut_now();
            return Ok(Seen::Nothing);
        }
        drop(store);
        Ok(match self.disk.cut() {
            Some(_) => Seen::Closing,
            None => Seen::Nothing,
        })
    }

    fn options(&self, reserve: (u64, u64)) -> OpenOptions<'a> {
        OpenOptions {
            vfs: Some(self.disk.vfs()),
            files: IN_MEMORY,
            synchronous: self.synchronous,
            long_wal: self.long_wal,
            key_sizes: self.key_sizes,
            vacuum: self.vacuum,
            reserve,
            full: Duration::ZERO,
            ..OpenOptions::DEFAULT
        }
    }

    /// Reads the answer of the store; an error is returned if the store has no reason for one.
    fn said<T, E: Error>(
        &mut self,
        answer: Result<T, E>,
        is_definite: impl Fn(&E) -> bool,
    ) -> Result<Said<T>, String> {
        match answer {
            Ok(answer) => Ok(Said::Done(answer)),
            Err(_) if self.disk.cut().is_some() => Ok(Said::Failed),
            Err(error) if (self.has_faults || self.fills) && is_definite(&error) => {
                self.note(Seen::RefusedCommit);
                Ok(Said::Refused)
            }
            Err(_) if self.has_faults || self.fills => Ok(Said::Failed),
            Err(error) => Err(in_words(error)),
        }
    }

    /// The circumstance at the end of a life: `during` if the power was cut, or else a failure.
    fn ends(&self, during: Seen) -> Seen {
        match self.disk.cut() {
            Some(_) => during,
            None => Seen::Failure,
        }
    }

    pub(super) fn model(&self) -> Model {
        self.acknowledged.clone().unwrap_or_default()
    }

    fn is_acknowledged(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            self.acknowledged = Some(under_way.done.0);
        }
    }

    /// Notes that a commit was answered: with its inserts, or without them.
    fn is_done(&mut self, outcomes: &[Outcome]) -> Result<(), String> {
        let has = |outcome| outcomes.contains(outcome);
        let under_way = self.under_way.as_ref();
        let expected = under_way.map(|it| match has(&Outcome::Full) {
            true => &it.full.1,
            false => &it.done.1,
        });
        if expected.is_some_and(|it| !are_same(outcomes, it)) {
            return Err(format!("{outcomes:?} is answered, and not {expected:?}"));
        }
        match (has(&Outcome::Full), has(&Outcome::Inserted)) {
            (true, true) => return Err(format!("some inserts are refused: {outcomes:?}")),
            (true, false) => {
                self.acknowledged = self.under_way.take().map(|it| it.full.0);
                self.note(Seen::RefusedInserts);
                self.is_full = true;
            }
            (false, is_inserted) => {
                self.is_acknowledged();
                if is_inserted && self.is_full {
                    self.note(Seen::InsertsAgain);
                }
                self.is_full &= !is_inserted;
            }
        }
        Ok(())
    }

    /// Compares what is left with the answered work or the work in progress, by plain SQL and through the store. Returns whether the latter is there.
    fn check(&mut self) -> Result<Option<bool>, String> {
        // Looking at the disk writes to it as well.
        let content = self.disk.content();
        // This disk has space.
        self.disk.put(content.clone());
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let left = self.disk.read(FILE).map(|_| {
            let left = Connection::open_with_flags_and_vfs(FILE, flags, self.disk.vfs());
            left.map_err(in_words).and_then(|it| look(&it))
        });
        let left = left.transpose()?.flatten();
        self.disk.put(content.clone());
        let was_under_way = self.under_way.take();
        let (acknowledged, left) = match (&self.acknowledged, left) {
            (None, None) => return Ok(was_under_way.map(|_| false)),
            (Some(_), None) => return Err("no tables are left of a store that was open".into()),
            (acknowledged, Some(left)) => (acknowledged.clone(), left),
        };
        let left = Rc::new(left);
        let candidates = acknowledged.into_iter().map(|it| (it, false));
        let under_way = was_under_way.clone().into_iter();
        let under_way = under_way.flat_map(|it| [(it.done.0, true), (it.full.0, true)]);
        let mut differs: Box<dyn Fn() -> String> = Box::new(|| "no store was open".to_owned());
        for (model, is_kept) in candidates.chain(under_way) {
            let buckets = model.buckets();
            let expected = model
                .contents(&buckets, &HANDLERS, &self.handles)
                .map_err(in_words)?;
            let (left, looks) = (Rc::clone(&left), model.look(&expected));
            if looks != *left {
                differs = Box::new(move || difference(&*left, &looks));
                continue;
            }
            let options = self.options((0, 0));
            let opened = SqliteStore::open_with_options(&self.disk.path(FILE), &options);
            let mut opened = opened.map_err(|error| format!("it cannot be opened: {error}"))?;
            let found = Contents::of(&mut opened, &buckets, &HANDLERS, &self.handles);
            drop(opened);
            self.disk.put(content.clone());
            let found = found.map_err(|error| format!("it cannot be read: {error}"))?;
            if found == expected {
                self.acknowledged = Some(model);
                return Ok(was_under_way.map(|_| is_kept));
            }
            differs = Box::new(move || difference(&found, &expected));
        }
        let differs = differs();
        Err(format!("what is left is not what was answered: {differs}"))
    }
}

/// The first lines in which two values differ, below the field that contains them.
fn difference<T: Debug>(found: &T, expected: &T) -> String {
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let mut field = "";
    let mut lines = found.lines().zip(expected.lines());
    let differs = lines.find(|(found, expected)| {
        if !found.starts_with("     ") {
            field = found.trim();
        }
        found != expected
    });
    differs.map_or_else(String::new, |(found, expected)| {
        format!("{field} has {}, and not {}", found.trim(), expected.trim())
    })
}
