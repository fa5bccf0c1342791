//! What is a store asked to commit?

use waterwheel_durable_core::store::{Bucket, Due, Handle, Id, Op, PageLimit, Row};

use super::life::{Life, UnderWay};
use super::tables::{Tables, Timer};

const HANDLERS: [&str; 4] = ["mail", "close", "notify", "end the trial"];
const DAY: i64 = 86_400_000;

impl Life<'_> {
    /// The steps of a commit, which is under way from now on.
    pub(super) fn steps(&mut self) -> Vec<Op> {
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
        let mut full = tables.clone();
        let steps: Vec<Op> = (0..count)
            .map(|_| {
                let step = self.some(&tables);
                tables.step(&step);
                if !matches!(step, Op::Insert(..)) {
                    full.step(&step);
                }
                step
            })
            .collect();
        tables.end_commit();
        full.end_commit();
        self.under_way = Some(UnderWay { done: tables, full });
        steps
    }

    /// A step, or some that stay together.
    fn some(&mut self, tables: &Tables) -> Op {
        if self.rng.u32(0..30) > 0 {
            return self.one(tables);
        }
        let mut tables = tables.clone();
        let steps = (0..self.rng.usize(1..5)).map(|_| {
            let step = self.one(&tables);
            tables.step(&step);
            step
        });
        Op::All(steps.collect())
    }

    fn one(&mut self, tables: &Tables) -> Op {
        match self.rng.u32(0..10) {
            0 => self.one_beside(tables),
            _ => self.one_of_timers(tables),
        }
    }

    /// What concerns no timer that waits.
    fn one_beside(&mut self, tables: &Tables) -> Op {
        match self.rng.u32(0..6) {
            0..2 if tables.archive.len() > 0 => Op::Expire {
                handler: HANDLERS[self.rng.usize(0..HANDLERS.len())].into(),
                before: Due::from_millis(self.now).day() + self.rng.i64(-2..2),
                limit: self.rng.usize(1..30),
            },
            2 if !tables.commands.is_empty() => {
                let numbers = tables.commands.keys();
                let number = self.rng.choice(numbers).copied().unwrap_or_default();
                Op::Reply(number.unsigned_abs(), "it is done".into())
            }
            3 => Op::Reply(self.rng.u64(0..5), "there is none".into()),
            _ => {
                let name = ["due-by", "namespace/a", "calendar/nightly"][self.rng.usize(0..3)];
                let value = vec![self.rng.u8(..); self.rng.usize(0..3_000)];
                let value = (self.rng.u32(0..4) > 0).then(|| value.into());
                Op::Set(name.into(), value)
            }
        }
    }

    fn one_of_timers(&mut self, tables: &Tables) -> Op {
        // Else the file grows without end.
        let many = tables.timers.len() > 300;
        let chosen = self.any(tables);
        let (due, bucket) = self.some_due();
        match (self.rng.u32(0..100), chosen) {
            (0..45, Some((id, timer))) if many => self.settle_or_cancel(id, timer),
            (45..60, Some((id, timer))) => self.settle_or_cancel(id, timer),
            (60..63, Some((id, timer))) if timer.level == 0 => Op::Start(row(id, timer)),
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
                    limit: PageLimit {
                        rows: self.rng.usize(1..40),
                        bytes: self.rng.usize(1..40_000),
                    },
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
        let now = Due::from_millis(self.now);
        match self.rng.u32(0..4) {
            0 if timer.level == 0 => Op::Settle(row(id, timer)),
            1 if timer.level == 0 => Op::Archive(row(id, timer), now),
            _ => Op::Cancel(handle(id, timer)),
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
            starts: 0,
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
        starts: timer.starts.unsigned_abs(),
        has_moved: timer.has_moved,
        key: timer.key.as_deref().map(Into::into),
        payload: timer.payload.as_slice().into(),
    }
}

/// The due time is that of the insert only until the timer has moved, and then the store has noted where it is.
fn handle(id: i64, timer: &Timer) -> Handle {
    row(id, timer).handle()
}
