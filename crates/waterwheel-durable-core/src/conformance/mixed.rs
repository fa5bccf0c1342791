//! Random commits of mixed steps, to a store and to the one in memory.

use std::sync::Arc;

use fastrand::Rng;

use crate::store::{
    ArchiveCursor, Archived, Bucket, Counts, Dead, DeadLetters, Due, Extras, Handle, Id, Level,
    MemoryStore, Op, Outcome, PageLimit, PendingCursor, Row, RowCursor, Scope, Setting, Store,
    StoreError,
};

use super::rows::NOW;
use super::subject::same;

const HANDLERS: [&str; 3] = ["mail", "shop/close", "shop/open"];
const KEYS: [&str; 4] = ["", "a", "b", "c"];
const TAGS: [&str; 2] = ["order-17", "ordér"];
const SETTINGS: [&str; 3] = ["a", "b", "c"];

/// Distances between the present and due times.
const DISTANCES: [i64; 7] = [
    0,
    2_000,
    90_000,
    4_000_000,
    20_000_000,
    500_000_000,
    5_000_000_000,
];

/// Makes random commits to an empty store and to a [`MemoryStore`], and compares the outcomes and all that is stored. The outcomes of a seed are always the same.
///
/// # Panics
///
/// If the store differs. The message contains the seed, the commit and the difference.
#[track_caller]
pub fn mixed(store: &mut dyn Store, seed: u64, commits: u64) {
    if let Err(difference) = compare(store, seed, commits) {
        panic!("seed {seed}: {difference}");
    }
}

fn compare(store: &mut dyn Store, seed: u64, commits: u64) -> Result<(), String> {
    let mut mixer = Mixer {
        rng: Rng::with_seed(seed),
        model: MemoryStore::new(),
        seen: Vec::new(),
        now: NOW,
        count: 0,
    };
    let words = |error: StoreError| error.to_string();
    mixer.model.begin().map_err(words)?;
    store.begin().map_err(words)?;
    for number in 1..=commits {
        let steps = mixer.commit().map_err(words)?;
        let mut expected = mixer.model.commit(number, &steps).map_err(words)?;
        let mut got = store.commit(number, &steps).map_err(words)?;
        expected.iter_mut().chain(&mut got).for_each(sort);
        if got != expected {
            return Err(format!(
                "commit {number} of {steps:#?}: got {got:#?}, expected {expected:#?}"
            ));
        }
        if number % 8 == 0 || number == commits {
            let limit = mixer.rng.usize(1..20);
            let expected = Contents::of(&mut mixer.model, limit).map_err(words)?;
            let got = Contents::of(store, limit).map_err(words)?;
            for ((what, got), (_, expected)) in got.parts().into_iter().zip(expected.parts()) {
                same(what, got, expected).map_err(|it| format!("after commit {number}: {it}"))?;
            }
        }
    }
    Ok(())
}

/// Sorts what an outcome has in no particular order.
fn sort(outcome: &mut Outcome) {
    match outcome {
        Outcome::All(outcomes) => outcomes.iter_mut().for_each(sort),
        Outcome::Cascaded {
            buckets, seconds, ..
        } => {
            buckets.sort_unstable();
            seconds.sort_unstable();
        }
        _ => {}
    }
}

struct Mixer {
    rng: Rng,
    model: MemoryStore,
    /// Rows that were in the store at some time.
    seen: Vec<Row>,
    now: i64,
    count: u64,
}

impl Mixer {
    fn commit(&mut self) -> Result<Vec<Op>, StoreError> {
        self.now += self.rng.i64(0..3_000);
        let mut steps = Vec::new();
        for _ in 0..self.rng.usize(0..12) {
            let step = match self.rng.u8(0..12) {
                0 => {
                    let count = self.rng.usize(0..5);
                    Op::All((0..count).map(|_| self.step()).collect::<Result<_, _>>()?)
                }
                _ => self.step()?,
            };
            steps.push(step);
        }
        Ok(steps)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(0..of.len())]
    }

    fn due(&mut self) -> Due {
        let distance = self.one(&DISTANCES);
        Due::from_millis(self.now + distance + self.rng.i64(-3_000..3_000))
    }

    fn place(&mut self) -> (Due, Bucket) {
        let due = self.due();
        (due, Bucket::of(due, Due::from_millis(self.now)))
    }

    fn new_row(&mut self) -> Row {
        self.count += 1;
        let (due, handler) = (self.due(), self.one(&HANDLERS));
        let payload = vec![self.rng.u8(..); self.rng.usize(0..40)];
        // Also ids out of order.
        let id = self.count ^ self.rng.u64(0..2) << 30;
        let mut row = Row::new(Id::from_stored(1 << 40 | id), due, handler, payload);
        row.key = match self.rng.u8(0..4) {
            0 => Some(self.one(&KEYS).as_bytes().into()),
            1 => Some(format!("key {}", self.count).into_bytes().into()),
            _ => None,
        };
        if self.rng.u8(0..4) == 0 {
            let retries = self.rng.bool().then(|| Box::from(&b"retries"[..]));
            let tag = self.rng.bool().then(|| self.one(&TAGS).into());
            row.extras = Extras::new(tag, retries);
        }
        row
    }

    /// A timer as it is, as it was, or one that has never been.
    fn row(&mut self) -> Result<Row, StoreError> {
        if self.seen.is_empty() || self.rng.u8(0..20) == 0 {
            return Ok(self.new_row());
        }
        // Late ones are more likely to be there.
        let last = self.seen.len() - self.rng.usize(0..self.seen.len().min(30)) - 1;
        let seen = self.seen[last].clone();
        let current = self.model.get(&seen.handle())?;
        Ok(current.filter(|_| self.rng.u8(0..5) > 0).unwrap_or(seen))
    }

    fn handle(&mut self) -> Result<Handle, StoreError> {
        Ok(self.row()?.handle())
    }

    fn step(&mut self) -> Result<Op, StoreError> {
        let handler: Arc<str> = self.one(&HANDLERS).into();
        let at = Due::from_millis(self.now);
        Ok(match self.rng.u8(0..26) {
            0..8 => {
                let row = self.new_row();
                self.seen.push(row.clone());
                let bucket = Bucket::of(row.due, at);
                Op::Insert(row, bucket)
            }
            8..11 => Op::Settle(self.row()?),
            11 => Op::Archive(
                self.row()?,
                Due::from_millis(self.now + self.rng.i64(0..90_000_000)),
            ),
            12 => Op::Start(self.row()?),
            13 => {
                let (due, bucket) = self.place();
                Op::Retry(self.row()?, due, bucket)
            }
            14 => {
                let (due, bucket) = self.place();
                Op::Snooze(self.row()?, due, bucket)
            }
            15 | 16 => Op::Cancel(self.handle()?),
            17 | 18 => {
                let (due, bucket) = self.place();
                Op::Reschedule(self.handle()?, due, bucket)
            }
            19 => {
                let error = self.one(&["refused", "refused\nfor a reason", "timed out"]);
                let (row, error) = (self.row()?, error.into());
                Op::Bury { row, at, error }
            }
            20 => {
                let (due, bucket) = self.place();
                Op::Redrive(self.dead()?, due, bucket)
            }
            21 => Op::Discard(self.dead()?),
            22 => {
                let value = self.rng.bool().then(|| vec![self.rng.u8(..)].into());
                Op::Set(self.one(&SETTINGS).into(), value)
            }
            23 => {
                let key = self.one(&KEYS).as_bytes().into();
                Op::Erase { handler, key }
            }
            24 => {
                let before = at.day() + self.rng.i64(0..3);
                let limit = 1_000;
                Op::Expire {
                    handler,
                    before,
                    limit,
                }
            }
            _ => self.cascade()?,
        })
    }

    /// A dead letter, or another timer.
    fn dead(&mut self) -> Result<Id, StoreError> {
        let dead = DeadLetters::all(&mut self.model, Scope::All)?;
        match dead.len() {
            0 => Ok(self.row()?.id),
            count => Ok(dead[self.rng.usize(0..count)].row.id),
        }
    }

    fn cascade(&mut self) -> Result<Op, StoreError> {
        let level = self.one(&Level::CASCADING);
        let number = self.model.first_bucket(level)?.unwrap_or(7);
        let bucket = Bucket { level, number };
        let rows = self.rng.usize(0..6);
        let bytes = self.one(&[1, 50, usize::MAX]);
        // Also late, so that the rows go to seconds.
        let now = bucket.cascades_at().as_millis() + self.one(&[0, level.millis()]);
        let now = Due::from_millis(now);
        let limit = PageLimit { rows, bytes };
        Ok(Op::Cascade { bucket, now, limit })
    }
}

/// All that a store has.
struct Contents {
    rows: Vec<Row>,
    handles: Vec<(PendingCursor, Handle)>,
    gotten: Vec<Option<Row>>,
    dead: Vec<Dead>,
    archived: Vec<Archived>,
    found: Vec<Option<Handle>>,
    tagged: Vec<Handle>,
    settings: Vec<Setting>,
    counts: Counts,
    firsts: Vec<Option<i64>>,
}

impl Contents {
    /// The names of the parts, and the parts as they are shown.
    fn parts(&self) -> [(&'static str, String); 10] {
        [
            ("the rows", format!("{:?}", self.rows)),
            ("the handles", format!("{:?}", self.handles)),
            ("the timers of the handles", format!("{:?}", self.gotten)),
            ("the dead letters", format!("{:?}", self.dead)),
            ("the archive", format!("{:?}", self.archived)),
            ("the timers of keys", format!("{:?}", self.found)),
            ("the timers of tags", format!("{:?}", self.tagged)),
            ("the settings", format!("{:?}", self.settings)),
            ("the counts", format!("{:?}", self.counts)),
            (
                "the first seconds, days and buckets",
                format!("{:?}", self.firsts),
            ),
        ]
    }

    /// Reads the contents in pages of this size.
    fn of(store: &mut dyn Store, limit: usize) -> Result<Contents, StoreError> {
        let mut rows = Vec::new();
        let (mut archived, mut found, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        for handler in HANDLERS {
            let (bytes, mut after) = (limit * 20, RowCursor::START);
            loop {
                let limit = PageLimit { rows: limit, bytes };
                let page = store.load(handler, after, i64::MAX, limit)?;
                let is_last = limit.exceeds(&page);
                after = page.last().map_or(after, Row::cursor);
                rows.extend(page);
                if is_last {
                    break;
                }
            }
            let mut after = ArchiveCursor::START;
            loop {
                let page = store.archived(handler, after, i64::MAX, limit)?;
                let Some((last, _)) = page.last() else { break };
                after = *last;
                archived.extend(page.into_iter().map(|(_, it)| it));
            }
            firsts.extend([
                store.first_second(handler, i64::MIN)?,
                store.first_archived(handler)?,
            ]);
            for key in KEYS {
                found.push(store.find(handler, key.as_bytes())?);
            }
        }
        for level in Level::CASCADING {
            firsts.push(store.first_bucket(level)?);
        }
        let (mut handles, mut after) = (Vec::new(), None);
        loop {
            let page = store.handles(Scope::Namespace("shop"), after, limit)?;
            handles.extend(page.handles);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        handles.extend(store.handles(Scope::All, None, 1_000_000)?.handles);
        let mut gotten = Vec::new();
        for (_, handle) in &handles {
            gotten.push(store.get(handle)?);
        }
        let mut tagged = Vec::new();
        for tag in TAGS {
            let mut after = Id::NONE;
            loop {
                let page = store.tagged(tag, after, limit)?;
                let Some(last) = page.last() else { break };
                after = last.id;
                tagged.extend(page);
            }
        }
        let mut counts = store.counts()?;
        counts
            .pending
            .sort_by_key(|it| (Arc::clone(&it.handler), it.bucket));
        counts
            .dead
            .sort_by_key(|it| (Arc::clone(&it.handler), Arc::clone(&it.error)));
        Ok(Contents {
            rows,
            handles,
            gotten,
            dead: DeadLetters::all(store, Scope::All)?,
            archived,
            found,
            tagged,
            settings: store.settings()?,
            counts,
            firsts,
        })
    }
}
