//! What does the life of a seed do, and when is its power cut?

use std::error::Error;

use fastrand::Rng;
use rusqlite::{Connection, OpenFlags};
use waterwheel_faults::{Call, Chance, Content, Disk, Fault, Kind, Moment};
use waterwheel_store::{Bucket, Due, Handle, Id, Op, Row, Store, StoreError};
use waterwheel_store_sqlite::{SqliteStore, Trial};

use super::tables::{Tables, Timer};

const FILE: &str = "timers.db";
const HANDLERS: [&str; 4] = ["mail", "close", "notify", "end the trial"];
const DAY: i64 = 86_400_000;

/// What was going on as the power was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum During {
    /// The first opening, which creates the tables.
    Creation,
    /// An opening of a file with tables.
    Opening,
    /// The commit that counts openings.
    Beginning,
    /// A read of a commit.
    CommitRead,
    /// A write of a commit to the log.
    CommitWrite,
    /// The sync of a commit.
    CommitSync,
    /// A read or a sync of the log, as it is copied into the file.
    CheckpointRead,
    /// A write to the file, as the log is copied.
    CheckpointWrite,
    /// The sync of the file, after that.
    CheckpointSync,
    /// The end of an orderly life, which copies the log and empties it.
    Closing,
    /// Nothing: a commit had just been refused, because there was no space.
    Refusal,
    /// Nothing: a sync, a read or a write had failed, and the store with it.
    Failure,
    /// None of that: between two calls.
    Nothing,
}

impl During {
    /// All there are.
    pub const ALL: [During; 13] = [
        During::Creation,
        During::Opening,
        During::Beginning,
        During::CommitRead,
        During::CommitWrite,
        During::CommitSync,
        During::CheckpointRead,
        During::CheckpointWrite,
        During::CheckpointSync,
        During::Closing,
        During::Refusal,
        During::Failure,
        During::Nothing,
    ];
}

/// A power cut, and what was left.
#[derive(Debug, Clone, Copy)]
pub struct Fell {
    /// In what it was cut.
    pub during: During,
    /// Whether the commit that was under way is there. `None` if there was none.
    pub is_kept: Option<bool>,
    /// Whether something was not synced.
    pub had_unsynced: bool,
    /// How many commits were refused before, because there was no space.
    pub refused: u64,
}

/// What the store says.
enum Said<T> {
    Done(T),
    /// Nothing was done.
    Refused,
    /// It is not known what was done, and the life is over.
    Failed,
}

/// A life that goes on after power cuts, on one disk.
pub(crate) struct Life<'a> {
    rng: Rng,
    disk: &'a Disk,
    synchronous: &'a str,
    long_log: i64,
    /// What the store has answered. `None` before the first opening.
    acked: Option<Tables>,
    /// What is there if the call that is under way has done its work.
    under_way: Option<Tables>,
    now: i64,
    inserted: u64,
    /// Whether the disk may fail, or may have failed, in this life.
    has_faults: bool,
    refused: u64,
}

impl<'a> Life<'a> {
    pub(crate) fn new(seed: u64, disk: &'a Disk, synchronous: &'a str) -> Life<'a> {
        let mut rng = Rng::with_seed(seed);
        disk.put(Content::default());
        Life {
            disk,
            synchronous,
            long_log: 1 << rng.u32(2..8),
            acked: None,
            under_way: None,
            now: 1_800_000_000_000 + rng.i64(0..DAY),
            inserted: 0,
            has_faults: false,
            refused: 0,
            rng,
        }
    }

    /// Lives until the power is cut, and looks at what is left.
    pub(crate) fn go_on(&mut self) -> Result<Fell, String> {
        let (moment, after_it) = self.moment();
        // From the first commit on, or from the opening.
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
        let during = match doing {
            During::CommitRead => match (cut.call, cut.kind) {
                (Call::Write | Call::Open, Kind::Log) => During::CommitWrite,
                (Call::Sync, _) => During::CommitSync,
                _ => During::CommitRead,
            },
            During::CheckpointRead => match (cut.call, cut.kind) {
                (Call::Write, Kind::Main) => During::CheckpointWrite,
                (Call::Sync, Kind::Main) => During::CheckpointSync,
                _ => During::CheckpointRead,
            },
            other => other,
        };
        let refused = std::mem::take(&mut self.refused);
        let had_unsynced = !self.disk.content().is_synced();
        let calls = self.disk.calls();
        self.disk.restart(&mut Chance::new(&mut self.rng, calls));
        let is_kept = self.check()?;
        Ok(Fell {
            during,
            is_kept,
            had_unsynced,
            refused,
        })
    }

    /// When the power is cut.
    fn moment(&mut self) -> (Moment, bool) {
        let rng = &mut self.rng;
        let (call, kind, most) = match rng.u32(0..16) {
            0 => (None, None, 4),
            1 => (None, None, 6),
            2 => (None, None, 12),
            3 => (None, Some(Kind::Other), 4),
            4..7 => (Some(Call::Write), Some(Kind::Log), 10),
            7 => (Some(Call::Read), None, 5),
            8 | 9 => (Some(Call::Sync), Some(Kind::Log), 6),
            10 | 11 => (Some(Call::Write), Some(Kind::Main), 5),
            12 | 13 => (Some(Call::Sync), Some(Kind::Main), 2),
            14 => (Some(Call::Length), None, 1),
            // Not before the end.
            _ => (Some(Call::Write), None, 62),
        };
        let after = (1 << rng.u32(0..=most)) - 1;
        let after = match after < 1 << 60 {
            true => rng.u64(0..=after),
            false => after,
        };
        (Moment { call, kind, after }, rng.bool())
    }

    /// How the disk fails, and from when on.
    fn fault(&mut self) -> (Moment, Fault) {
        let rng = &mut self.rng;
        let (call, kind, fault, most) = match rng.u32(0..8) {
            0 => (Call::Sync, Kind::Log, Fault::Error, 60),
            1 => (Call::Sync, Kind::Log, Fault::Dropped, 60),
            2 => (Call::Sync, Kind::Main, Fault::Error, 5),
            3 => (Call::Sync, Kind::Main, Fault::Dropped, 5),
            4 => (Call::Write, Kind::Log, Fault::Error, 400),
            5 => (
                Call::Write,
                Kind::Main,
                Fault::NoSpace(rng.usize(0..4_096)),
                40,
            ),
            _ => (
                Call::Write,
                Kind::Log,
                Fault::NoSpace(rng.usize(0..4_096)),
                80,
            ),
        };
        let after = rng.u64(0..most);
        (
            Moment {
                after,
                ..Moment::next(call, kind)
            },
            fault,
        )
    }

    /// Opens the store and works with it, until the power is cut or the life is over. Says what went on at the end. A cut that is handed over counts from the
    /// first commit on.
    fn live(&mut self, cut: Option<(Moment, bool)>) -> Result<During, String> {
        let opening = match self.acked {
            None => During::Creation,
            Some(_) => During::Opening,
        };
        self.under_way = self.acked.is_none().then(Tables::default);
        let trial = Trial {
            vfs: Some(self.disk.vfs()),
            read: Disk::read_path,
            synchronous: self.synchronous,
            long_log: self.long_log,
            ..Trial::NONE
        };
        let store = SqliteStore::open_for_trial(&self.disk.path(FILE), &trial);
        let Said::Done(mut store) = self.said(store, |_| false)? else {
            return Ok(self.ends(opening));
        };
        self.acked.get_or_insert_default();
        let mut begun = self.tables();
        begun.epoch += 1;
        self.under_way = Some(begun);
        let begun = store.begin();
        let Said::Done(epoch) = self.said(begun, StoreError::is_definite)? else {
            return Ok(self.ends(During::Beginning));
        };
        self.is_acked();
        if epoch.cast_signed() != self.tables().epoch {
            return Err(format!("opening {} is {epoch}", self.tables().epoch));
        }
        self.inserted = 0;
        if let Some((moment, after_it)) = cut {
            self.disk.cut_at(moment, after_it);
        }
        for number in 1..=self.rng.u64(1..120) {
            let steps = self.steps();
            let committed = store.commit(number, &steps);
            match self.said(committed, StoreError::is_definite)? {
                Said::Done(_) => self.is_acked(),
                Said::Refused => {
                    // It must not come back, also if nothing is written over what it has left.
                    self.under_way = None;
                    if self.rng.u32(0..3) == 0 {
                        return Ok(During::Refusal);
                    }
                }
                Said::Failed => return Ok(self.ends(During::CommitRead)),
            }
            if self.disk.cut().is_some() {
                return Ok(During::CheckpointRead);
            }
            if self.has_faults && self.rng.u32(0..8) == 0 {
                self.disk.mend();
            }
        }
        if self.rng.bool() {
            self.disk.cut_now();
            return Ok(During::Nothing);
        }
        drop(store);
        Ok(match self.disk.cut() {
            Some(_) => During::Closing,
            None => During::Nothing,
        })
    }

    /// What the answer of the store is; an error if the store has no reason for one.
    fn said<T, E: Error>(
        &mut self,
        answer: Result<T, E>,
        is_definite: impl Fn(&E) -> bool,
    ) -> Result<Said<T>, String> {
        match answer {
            Ok(answer) => Ok(Said::Done(answer)),
            Err(_) if self.disk.cut().is_some() => Ok(Said::Failed),
            Err(error) if self.has_faults && is_definite(&error) => {
                self.refused += 1;
                Ok(Said::Refused)
            }
            Err(_) if self.has_faults => Ok(Said::Failed),
            Err(error) => {
                let source = error.source().map(ToString::to_string);
                Err(format!("{error}: {}", source.unwrap_or_default()))
            }
        }
    }

    /// What went on at the end of a life, which may have come before the power cut.
    fn ends(&self, during: During) -> During {
        match self.disk.cut() {
            Some(_) => during,
            None => During::Failure,
        }
    }

    fn tables(&self) -> Tables {
        self.acked.clone().unwrap_or_default()
    }

    fn is_acked(&mut self) {
        if let Some(done) = self.under_way.take() {
            self.acked = Some(done);
        }
    }

    /// What is left is what was answered, and perhaps what was under way. Says whether it is.
    fn check(&mut self) -> Result<Option<bool>, String> {
        // The checker's connection would write to the disk as it closes.
        let content = self.disk.content();
        let left = match self.disk.read(FILE) {
            Some(_) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
                let left = Connection::open_with_flags_and_vfs(FILE, flags, self.disk.vfs());
                left.map_err(|error| error.to_string())
                    .and_then(|left| Tables::read(&left))?
            }
            None => None,
        };
        self.disk.put(content);
        let was_under_way = self.under_way.take();
        if left == self.acked {
            return Ok(was_under_way.map(|_| false));
        }
        if was_under_way.is_some() && left == was_under_way {
            self.acked = left;
            return Ok(Some(true));
        }
        Err(match (&left, &self.acked) {
            (Some(left), Some(acked)) => format!(
                "what is left is not what was answered: {}",
                left.differs(acked)
            ),
            (None, _) => "no tables are left of a store that was open".to_owned(),
            (_, None) => "there are timers in a store that never was open".to_owned(),
        })
    }

    /// The steps of a commit, which is under way from now on.
    fn steps(&mut self) -> Vec<Op> {
        let mut tables = self.tables();
        self.now += match self.rng.u32(0..20) {
            0 => self.rng.i64(0..DAY),
            1..4 => self.rng.i64(0..3_600_000),
            _ => self.rng.i64(0..5_000),
        };
        let count = match self.rng.u32(0..12) {
            0 => self.rng.usize(20..120),
            _ => self.rng.usize(1..8),
        };
        let steps: Vec<Op> = (0..count)
            .map(|_| {
                let step = self.one(&tables);
                tables.step(&step);
                step
            })
            .collect();
        self.under_way = Some(tables);
        steps
    }

    fn one(&mut self, tables: &Tables) -> Op {
        // Else the file grows without end.
        let many = tables.timers.len() > 300;
        let chosen = self.any(tables);
        let (due, bucket) = self.some_due();
        match (self.rng.u32(0..100), chosen) {
            (0..45, Some((id, timer))) if many => self.settle_or_cancel(id, timer),
            (45..60, Some((id, timer))) => self.settle_or_cancel(id, timer),
            (60..70, Some((id, timer))) => Op::Reschedule(handle(id, timer), due, bucket),
            (70..76, Some((id, timer))) if timer.level == 0 => {
                Op::Retry(row(id, timer), due, bucket)
            }
            (76..82, Some((id, timer))) if timer.level == 0 => Op::Bury {
                row: row(id, timer),
                at: Due::from_millis(self.now),
                error: "it said no".repeat(self.rng.usize(0..20)).into(),
            },
            (82..88, _) if !tables.dead.is_empty() => {
                let dead = tables.dead.keys().nth(self.rng.usize(0..tables.dead.len()));
                let id = dead.map_or(Id::NONE, |id| Id::from_stored(id.unsigned_abs()));
                Op::Redrive(id, due, bucket)
            }
            (88..100, _) if tables.timers.values().any(|timer| timer.level > 0) => {
                let far: Vec<_> = tables.timers.values().filter(|it| it.level > 0).collect();
                Op::Cascade {
                    bucket: Tables::bucket(far[self.rng.usize(0..far.len())]),
                    now: Due::from_millis(self.now),
                    most: self.rng.usize(1..40),
                }
            }
            _ => self.insert(tables.epoch, due, bucket),
        }
    }

    fn any<'t>(&mut self, tables: &'t Tables) -> Option<(i64, &'t Timer)> {
        let count = tables.timers.len();
        let at = (count > 0).then(|| self.rng.usize(0..count))?;
        let (id, timer) = tables.timers.iter().nth(at)?;
        Some((*id, timer))
    }

    fn settle_or_cancel(&mut self, id: i64, timer: &Timer) -> Op {
        match timer.level == 0 && self.rng.bool() {
            true => Op::Settle(row(id, timer)),
            false => Op::Cancel(handle(id, timer)),
        }
    }

    fn insert(&mut self, epoch: i64, due: Due, bucket: Bucket) -> Op {
        self.inserted += 1;
        let id = Id::new(epoch.unsigned_abs(), self.inserted).unwrap_or(Id::NONE);
        let length = match self.rng.u32(0..40) {
            0 => self.rng.usize(4_000..20_000),
            1..5 => self.rng.usize(100..1_500),
            _ => self.rng.usize(0..64),
        };
        let first = self.rng.u8(..);
        let payload: Vec<u8> = (0..length).map(|at| first.wrapping_add(at as u8)).collect();
        let key = (self.rng.u32(0..4) == 0).then(|| [self.rng.u8(..)].as_slice().into());
        let row = Row {
            id,
            due,
            handler: HANDLERS[self.rng.usize(0..HANDLERS.len())].into(),
            failures: 0,
            has_moved: false,
            key,
            payload: payload.into(),
        };
        Op::Insert(row, bucket)
    }

    fn some_due(&mut self) -> (Due, Bucket) {
        let later = match self.rng.u32(0..5) {
            0 => self.rng.i64(-DAY..0),
            1 => self.rng.i64(0..60_000),
            2 => self.rng.i64(0..2 * 3_600_000),
            3 => self.rng.i64(0..3 * DAY),
            _ => self.rng.i64(0..400 * DAY),
        };
        let (due, now) = (
            Due::from_millis(self.now + later),
            Due::from_millis(self.now),
        );
        (due, Bucket::of(due, now))
    }
}

fn row(id: i64, timer: &Timer) -> Row {
    Row {
        id: Id::from_stored(id.unsigned_abs()),
        due: Due::from_millis(timer.due),
        handler: timer.handler.as_str().into(),
        failures: u32::try_from(timer.failures).unwrap_or(u32::MAX),
        has_moved: timer.has_moved,
        key: timer.key.as_deref().map(Into::into),
        payload: timer.payload.as_slice().into(),
    }
}

/// The due time is that of the insert only until the timer has moved, and then the store has noted where it is.
fn handle(id: i64, timer: &Timer) -> Handle {
    row(id, timer).handle()
}
