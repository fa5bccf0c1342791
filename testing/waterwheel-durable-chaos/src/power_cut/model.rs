//! The contents that a store must have: a store in memory that gets the same requests, and the parts that it lacks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rusqlite::types::Value;
use waterwheel_durable_core::store::{
    ArchiveCursor, Archived, Bucket, Dead, DeadLetters, Due, Handle, Id, Level, MemoryStore, Op,
    Outcome, PageLimit, Row, RowCursor, Scope, Setting, Store, StoreError,
};

use crate::look::Look;

/// An archive block of a handler, on a day.
type Place = (Arc<str>, i64);

/// The contents that a store must have.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    store: MemoryStore,
    epoch: u64,
    commits: u64,
    /// The number of timers in each archive block, all of which expire together. A step that reads the archive ends the
    /// blocks of its commit.
    blocks: BTreeMap<Place, VecDeque<usize>>,
    pending: BTreeMap<Place, usize>,
    /// Commands of other processes, whether they were taken, and their answers.
    commands: BTreeMap<i64, (bool, Option<String>)>,
}

impl Model {
    /// Opens the file once more. Returns the number of the opening.
    pub(super) fn begin(&mut self) -> u64 {
        // A process that has ended gets no answers.
        self.commands
            .retain(|_, (is_taken, answer)| !*is_taken || answer.is_some());
        self.commits = 0;
        self.epoch = self.store.begin().unwrap_or_default();
        self.epoch
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Carries out a step as promised. `is_full`: there is no space for an insert.
    pub(super) fn step(&mut self, op: &Op, is_full: bool) -> Outcome {
        match op {
            Op::All(steps) => {
                return Outcome::All(steps.iter().map(|op| self.step(op, false)).collect());
            }
            Op::Archive(row, at) if self.has(row) => {
                let place = (Arc::clone(&row.handler), at.day());
                *self.pending.entry(place).or_default() += 1;
            }
            Op::Expire { .. } | Op::Erase { .. } => self.end_blocks(),
            Op::Reply(number, answer) => {
                if let Some(command) = self.commands.get_mut(&number.cast_signed()) {
                    command.1 = Some(answer.to_string());
                }
            }
            _ => {}
        }
        let op = match op {
            Op::Expire {
                handler,
                before,
                limit,
            } => Op::Expire {
                handler: Arc::clone(handler),
                before: *before,
                limit: self.expire(handler, *before, *limit),
            },
            _ => op.clone(),
        };
        self.store.set_full(is_full);
        self.commits += 1;
        let outcomes = self.store.commit(self.commits, &[op]);
        outcomes
            .ok()
            .and_then(|mut it| it.pop())
            .unwrap_or(Outcome::Done)
    }

    /// Notes the archive blocks that end with a commit, or within it.
    pub(super) fn end_blocks(&mut self) {
        for (place, count) in std::mem::take(&mut self.pending) {
            self.blocks.entry(place).or_default().push_back(count);
        }
    }

    /// Counts the timers that expire: those of whole blocks, until they reach the limit.
    fn expire(&mut self, handler: &Arc<str>, before: i64, limit: usize) -> usize {
        let mut gone = 0;
        let days = self
            .blocks
            .range_mut((Arc::clone(handler), i64::MIN)..(Arc::clone(handler), before));
        for (_, blocks) in days {
            while gone < limit
                && let Some(count) = blocks.pop_front()
            {
                gone += count;
            }
        }
        gone
    }

    /// Whether a timer is stored in the second of its due time.
    fn has(&mut self, row: &Row) -> bool {
        let id = Id::from_stored(row.id.get() - 1);
        let after = RowCursor { id, ..row.cursor() };
        let before = after.second + 1;
        let rows = self
            .store
            .load(&row.handler, after, before, PageLimit::rows(1));
        rows.is_ok_and(|it| it.first().is_some_and(|it| it.id == row.id))
    }

    /// Adds a command of another process.
    pub(super) fn add_command(&mut self, number: i64) {
        self.commands.insert(number, (false, None));
    }

    /// Notes that the store has taken all commands.
    pub(super) fn take_commands(&mut self) {
        for (is_taken, answer) in self.commands.values_mut() {
            *is_taken |= answer.is_none();
        }
    }

    pub(super) fn commands(&self) -> impl ExactSizeIterator<Item = i64> {
        self.commands.keys().copied()
    }

    pub(super) fn timers(&self) -> usize {
        self.store.len()
    }

    /// All near timers of a handler.
    pub(super) fn near(&mut self, handler: &str) -> Vec<Row> {
        let all = PageLimit::rows(usize::MAX);
        let rows = self
            .store
            .load(handler, RowCursor::before(i64::MIN), i64::MAX, all);
        rows.unwrap_or_default()
    }

    pub(super) fn dead(&mut self) -> Vec<Dead> {
        DeadLetters::all(&mut self.store, Scope::All).unwrap_or_default()
    }

    pub(super) fn has_archived(&self) -> bool {
        self.blocks.values().any(|it| !it.is_empty())
    }

    /// The first bucket of a far level that has a row.
    pub(super) fn first_bucket(&mut self, level: Level) -> Option<Bucket> {
        let number = self.store.first_bucket(level).ok().flatten()?;
        Some(Bucket { level, number })
    }

    /// All buckets of far levels that have rows.
    pub(super) fn buckets(&self) -> Vec<Bucket> {
        let (mut copy, mut all) = (self.clone(), Vec::new());
        for level in Level::CASCADING {
            while let Some(bucket) = copy.first_bucket(level) {
                copy.step(&to_seconds(bucket), false);
                all.push(bucket);
            }
        }
        all
    }

    pub(super) fn contents(
        &self,
        buckets: &[Bucket],
        handlers: &[&str],
        handles: &[Handle],
    ) -> Result<Contents, StoreError> {
        let mut store = self.store.clone();
        // There is space while we look.
        store.set_full(false);
        Contents::of(&mut store, buckets, handlers, handles)
    }

    /// The rows that plain SQL must show.
    pub(super) fn look(&self, contents: &Contents) -> Look {
        let alive = contents.rows.iter().map(|row| (row, None));
        let dead = contents.dead.iter().map(|it| (&it.row, Some(it)));
        let mut rows: Vec<_> = alive.chain(dead).collect();
        rows.sort_by_key(|(row, _)| row.id);
        let has_moved = |(row, dead): &&(&Row, Option<_>)| row.has_moved() && dead.is_none();
        let settings = contents.settings.iter();
        let commands = self.commands.iter();
        Look {
            moved: rows.iter().filter(has_moved).count() as i64,
            rows: rows
                .into_iter()
                .map(|(row, dead)| seen(row, dead))
                .collect(),
            tagged: contents
                .rows
                .iter()
                .filter(|row| row.tag().is_some())
                .count() as i64,
            archived: self.blocks.values().flatten().sum::<usize>() as i64,
            settings: settings
                .map(|it| vec![it.name.to_string().into(), it.value.to_vec().into()])
                .collect(),
            commands: commands
                .map(|(number, (is_taken, answer))| {
                    vec![(*number).into(), (*is_taken).into(), answer.clone().into()]
                })
                .collect(),
        }
    }
}

fn seen(row: &Row, dead: Option<&Dead>) -> Vec<Value> {
    vec![
        row.id.get().cast_signed().into(),
        row.due.as_millis().into(),
        row.handler.to_string().into(),
        row.failures.into(),
        row.has_moved().then(|| row.first_due.as_millis()).into(),
        row.key.as_deref().map(<[u8]>::to_vec).into(),
        row.tag().map(str::to_owned).into(),
        row.extras
            .as_ref()
            .and_then(|it| it.retries.as_deref())
            .map(<[u8]>::to_vec)
            .into(),
        row.payload.to_vec().into(),
        row.starts.cast_signed().into(),
        dead.map(|it| it.at.as_millis()).into(),
        dead.map(|it| it.error.to_string()).into(),
    ]
}

/// Moves all of a bucket to seconds, however far they are.
fn to_seconds(bucket: Bucket) -> Op {
    Op::Cascade {
        bucket,
        now: Due::from_millis(i64::MAX / 4),
        limit: PageLimit::rows(usize::MAX),
    }
}

/// All replies of a store to a complete set of reads.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    epoch: u64,
    /// The first buckets of far levels, before and after all rows of the buckets were moved to seconds.
    first: [Option<i64>; 2 * Level::CASCADING.len()],
    handlers: Vec<Arc<str>>,
    rows: Vec<Row>,
    dead: Vec<Dead>,
    archive: Vec<(Arc<str>, i64, Archived)>,
    settings: Vec<Setting>,
    /// The answers to inserts with all keys, and the places of their timers.
    keys: Vec<(Outcome, Option<Handle>)>,
    /// The timers that are found by their handles, wherever they have moved.
    found: Vec<Outcome>,
}

/// The number of keys of each handler: 0, 1 and so on.
pub(super) const KEYS: u8 = 64;

impl Contents {
    /// Opens a store again, and reads everything. Only these buckets have rows.
    pub(super) fn of(
        store: &mut dyn Store,
        buckets: &[Bucket],
        handlers: &[&str],
        handles: &[Handle],
    ) -> Result<Contents, StoreError> {
        let epoch = store.begin()?;
        let mut first = [None; 2 * Level::CASCADING.len()];
        let (before, after) = first.split_at_mut(Level::CASCADING.len());
        let read = |store: &mut dyn Store, into: &mut [Option<i64>]| {
            let mut levels = into.iter_mut().zip(Level::CASCADING);
            levels.try_for_each(|(it, level)| store.first_bucket(level).map(|first| *it = first))
        };
        read(store, before)?;
        let moves: Vec<Op> = buckets.iter().map(|bucket| to_seconds(*bucket)).collect();
        store.commit(1, &moves)?;
        read(store, after)?;
        let mut known = store.handlers()?;
        known.sort();
        let (mut rows, mut archive) = (Vec::new(), Vec::new());
        for handler in &known {
            let all = PageLimit::rows(usize::MAX);
            rows.extend(store.load(handler, RowCursor::before(i64::MIN), i64::MAX, all)?);
            let archived = store.archived(handler, ArchiveCursor::START, i64::MAX, 1 << 30)?;
            let archived = archived.into_iter();
            archive.extend(archived.map(|(at, it)| (Arc::clone(handler), at.day, it)));
        }
        let dead = DeadLetters::all(store, Scope::All)?;
        let settings = store.settings()?;
        let mut keys = Vec::new();
        let all = handlers
            .iter()
            .flat_map(|it| (0..KEYS).map(move |key| (*it, key)));
        let mut inserts = Vec::new();
        for (number, (handler, key)) in (1..).zip(all) {
            keys.push((Outcome::Done, store.find(handler, &[key])?));
            inserts.push(with_key(epoch, number, handler, key));
        }
        for (it, outcome) in keys.iter_mut().zip(store.commit(2, &inserts)?) {
            it.0 = outcome;
        }
        let cancels: Vec<Op> = handles.iter().cloned().map(Op::Cancel).collect();
        let found = store.commit(3, &cancels)?;
        Ok(Contents {
            epoch,
            first,
            handlers: known,
            rows,
            dead,
            archive,
            settings,
            keys,
            found,
        })
    }
}

/// An insert of a timer with this key, which tells whether another one has it.
fn with_key(epoch: u64, number: u64, handler: &str, key: u8) -> Op {
    let due = Due::from_millis(0);
    let id = Id::new(epoch, number).unwrap_or(Id::NONE);
    let row = Row {
        key: Some([key].as_slice().into()),
        ..Row::new(id, due, handler, [])
    };
    Op::Insert(
        row,
        Bucket {
            level: Level::Second,
            number: 0,
        },
    )
}
