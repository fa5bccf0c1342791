//! The commits that a store is asked to make.

use waterwheel_durable_core::store::{
    Bucket, Due, Extras, Handle, Id, Level, Op, Outcome, PageLimit, Row,
};

use super::life::{Life, UnderWay};
use super::model::{KEYS, Model};

pub(super) const HANDLERS: [&str; 4] = ["mail", "close", "notify", "end the trial"];
const DAY: i64 = 86_400_000;
/// The number of handles that are remembered. Some are of timers that are gone.
const HANDLES: usize = 300;

impl Life<'_> {
    /// The steps of a commit, which is in progress from now on.
    pub(super) fn steps(&mut self) -> Vec<Op> {
        let mut done = self.model();
        self.now += match self.rng.u32(0..20) {
            0 => self.rng.i64(0..DAY),
            1..4 => self.rng.i64(0..3_600_000),
            _ => self.rng.i64(0..5_000),
        };
        let count = match self.rng.u32(0..12) {
            0 => self.rng.usize(20..120),
            _ => self.rng.usize(1..8),
        };
        let mut full = done.clone();
        let (mut steps, mut outcomes, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let step = self.some(&mut done);
            outcomes.push(done.step(&step, false));
            refused.push(full.step(&step, true));
            steps.push(step);
        }
        done.end_blocks();
        full.end_blocks();
        self.under_way = Some(UnderWay {
            done: (done, outcomes),
            full: (full, refused),
        });
        steps
    }

    /// One step, or a few that belong together.
    fn some(&mut self, model: &mut Model) -> Op {
        if self.rng.u32(0..30) > 0 {
            return self.one(model);
        }
        let mut model = model.clone();
        let steps = (0..self.rng.usize(1..5)).map(|_| {
            let step = self.one(&mut model);
            model.step(&step, false);
            step
        });
        Op::All(steps.collect())
    }

    fn one(&mut self, model: &mut Model) -> Op {
        match self.rng.u32(0..10) {
            0 => self.one_beside(model),
            _ => self.one_of_timers(model),
        }
    }

    fn handler(&mut self) -> &'static str {
        HANDLERS[self.rng.usize(0..HANDLERS.len())]
    }

    /// A step that concerns no pending timer.
    fn one_beside(&mut self, model: &Model) -> Op {
        match self.rng.u32(0..8) {
            0..2 if model.has_archived() => Op::Expire {
                handler: self.handler().into(),
                before: Due::from_millis(self.now).day() + self.rng.i64(-2..2),
                limit: self.rng.usize(1..30),
            },
            2 if model.commands().len() > 0 => {
                let number = self.rng.choice(model.commands()).unwrap_or_default();
                Op::Reply(number.unsigned_abs(), "it is done".into())
            }
            3 => Op::Reply(self.rng.u64(0..5), "there is none".into()),
            4 => Op::NextEpoch(0),
            5 => Op::Erase {
                handler: self.handler().into(),
                key: [self.rng.u8(..KEYS)].as_slice().into(),
            },
            _ => {
                let name = ["due-by", "namespace/a", "calendar/nightly"][self.rng.usize(0..3)];
                let value = vec![self.rng.u8(..); self.rng.usize(0..3_000)];
                let value = (self.rng.u32(0..4) > 0).then(|| value.into());
                Op::Set(name.into(), value)
            }
        }
    }

    fn one_of_timers(&mut self, model: &mut Model) -> Op {
        // Otherwise the file would grow forever.
        let many = model.timers() > 300;
        let (due, bucket) = self.some_due();
        let (near, handle) = (self.near(model), self.rng.choice(&self.handles).cloned());
        let far = Level::CASCADING[self.rng.usize(0..Level::CASCADING.len())];
        match (self.rng.u32(0..100), near, handle) {
            (0..45, near, Some(handle)) if many => self.settle_or_cancel(near, handle),
            (45..60, near, Some(handle)) => self.settle_or_cancel(near, handle),
            (60..63, Some(row), _) => Op::Start(row),
            (60..70, _, Some(handle)) => Op::Reschedule(handle, due, bucket),
            (70..73, Some(row), _) => Op::Retry(row, due, bucket),
            (73..76, Some(row), _) => Op::Snooze(row, due, bucket),
            (76..82, Some(row), _) => Op::Bury {
                row,
                at: Due::from_millis(self.now),
                error: "it said no".repeat(self.rng.usize(0..20)).into(),
            },
            (82..88, ..) if !model.dead().is_empty() => {
                let dead = self.rng.choice(model.dead());
                Op::Redrive(dead.map_or(Id::NONE, |it| it.row.id), due, bucket)
            }
            (88..100, ..) if let Some(bucket) = model.first_bucket(far) => Op::Cascade {
                bucket,
                now: Due::from_millis(self.now),
                limit: PageLimit {
                    rows: self.rng.usize(1..40),
                    bytes: self.rng.usize(1..40_000),
                },
            },
            _ => self.insert(model, due, bucket),
        }
    }

    /// A timer that is near.
    fn near(&mut self, model: &mut Model) -> Option<Row> {
        let handler = self.handler();
        self.rng.choice(model.near(handler))
    }

    fn settle_or_cancel(&mut self, near: Option<Row>, handle: Handle) -> Op {
        match (self.rng.u32(0..4), near) {
            (0, Some(row)) => Op::Settle(row),
            (1, Some(row)) => Op::Archive(row, Due::from_millis(self.now)),
            (2, Some(row)) => Op::Cancel(row.handle()),
            _ => Op::Cancel(handle),
        }
    }

    fn insert(&mut self, model: &Model, due: Due, bucket: Bucket) -> Op {
        self.inserted += 1;
        let id = Id::new(model.epoch(), self.inserted).unwrap_or(Id::NONE);
        let length = match self.rng.u32(0..40) {
            0 => self.rng.usize(4_000..20_000),
            1..5 => self.rng.usize(100..1_500),
            _ => self.rng.usize(0..64),
        };
        let first = self.rng.u8(..);
        let payload: Vec<u8> = (0..length).map(|at| first.wrapping_add(at as u8)).collect();
        let key = (self.rng.u32(0..4) == 0).then(|| [self.rng.u8(..KEYS)].as_slice().into());
        let tag = (self.rng.u32(0..8) == 0).then(|| format!("tag {}", self.rng.u8(..3)).into());
        let retries = (self.rng.u32(0..8) == 0).then(|| [first; 40].into());
        let row = Row {
            key,
            extras: Extras::new(tag, retries),
            ..Row::new(id, due, self.handler(), payload)
        };
        if self.handles.len() >= HANDLES {
            self.handles.swap_remove(self.rng.usize(..HANDLES));
        }
        self.handles.push(row.handle());
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

/// Whether a store has answered a commit correctly. The store decides how many timers are left to expire.
pub(super) fn are_same(outcomes: &[Outcome], expected: &[Outcome]) -> bool {
    outcomes.len() == expected.len()
        && outcomes.iter().zip(expected).all(|both| match both {
            (Outcome::Expired { .. }, Outcome::Expired { .. }) => true,
            (
                Outcome::Cascaded { is_empty, .. },
                Outcome::Cascaded {
                    is_empty: expected, ..
                },
            ) => is_empty == expected,
            (Outcome::All(outcomes), Outcome::All(expected)) => are_same(outcomes, expected),
            (outcome, expected) => outcome == expected,
        })
}
