use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

use super::{
    ArchiveCursor, Archived, Bucket, Counts, Dead, DeadCount, DeadLetters, Due, Erased, Handle,
    HandlePage, Id, Level, Op, Outcome, PageLimit, PendingCount, PendingCursor, Row, RowCursor,
    Scope, Setting, Store, StoreError,
};

/// A store without a file: for tests, and for timers that do not need to outlive the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    epoch: u64,
    /// The rows of the levels whose buckets cascade.
    buckets: BTreeMap<(Bucket, Id), Row>,
    /// The rows of [`Level::Second`], by handler.
    seconds: BTreeMap<(Arc<str>, RowCursor), Row>,
    /// The current due times of timers that have moved since their handles were created.
    moved: HashMap<Id, Due>,
    keys: HashMap<(Arc<str>, Arc<[u8]>), Handle>,
    dead: BTreeMap<Id, Dead>,
    archive: BTreeMap<(Arc<str>, ArchiveCursor), Archived>,
    settings: BTreeMap<Arc<str>, Arc<[u8]>>,
    handlers: BTreeSet<Arc<str>>,
    last: Option<(u64, Vec<Outcome>)>,
    is_full: bool,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Sets whether inserts that would write something are answered with [`Full`](Outcome::Full). For tests.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Returns the number of timers, without dead letters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buckets.len() + self.seconds.len()
    }

    /// Returns whether the store has no timers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The store without the first rows of a coarser bucket, as after half of a cascade. For simulators.
    #[doc(hidden)]
    #[must_use]
    pub fn without(&self, bucket: Bucket, limit: PageLimit) -> MemoryStore {
        let mut without = self.clone();
        for at in self.first_of(bucket, limit) {
            without.buckets.remove(&at);
        }
        without
    }

    /// All pending timers and their buckets.
    fn pending(&self) -> impl Iterator<Item = (Bucket, &Row)> {
        let coarse = self.buckets.iter().map(|((bucket, _), row)| (*bucket, row));
        let fine = self.seconds.values();
        coarse.chain(fine.map(|row| (Level::Second.bucket(row.due), row)))
    }

    /// The first rows of a coarser bucket.
    fn first_of(&self, bucket: Bucket, limit: PageLimit) -> Vec<(Bucket, Id)> {
        let rows = self.buckets.range((bucket, Id::NONE)..=(bucket, Id::MAX));
        let rows = rows.map(Ok::<_, Infallible>);
        let Ok(rows) = limit.take_sized(rows, |(_, row)| row.bytes());
        rows.into_iter().map(|(at, _)| *at).collect()
    }

    fn place(&mut self, row: Row, bucket: Bucket) {
        if !self.handlers.contains(&row.handler) {
            self.handlers.insert(Arc::clone(&row.handler));
        }
        match bucket.level {
            Level::Second => {
                let at = (Arc::clone(&row.handler), row.cursor());
                self.seconds.insert(at, row);
            }
            _ => {
                self.buckets.insert((bucket, row.id), row);
            }
        }
    }

    fn take_from_second(&mut self, row: &Row) -> Option<Row> {
        self.seconds
            .remove(&(Arc::clone(&row.handler), row.cursor()))
    }

    /// The place of a timer that is in a bucket of [`Level::Second`].
    fn place_in_seconds(&self, handle: &Handle) -> (Arc<str>, RowCursor) {
        let cursor = RowCursor {
            second: self.due_of(handle).second(),
            id: handle.id,
        };
        (Arc::clone(&handle.handler), cursor)
    }

    /// The place of a timer that is in one of the coarser buckets of its due time.
    fn find_in_buckets(&self, handle: &Handle) -> Option<(Bucket, Id)> {
        let due = self.due_of(handle);
        let mut places = Level::CASCADING
            .into_iter()
            .map(|level| (level.bucket(due), handle.id));
        // A coarser bucket has rows of all handlers.
        let is_its = |row: &Row| row.handler == handle.handler;
        places.find(|at| self.buckets.get(at).is_some_and(is_its))
    }

    fn due_of(&self, handle: &Handle) -> Due {
        *self.moved.get(&handle.id).unwrap_or(&handle.due)
    }

    fn timer(&self, handle: &Handle) -> Option<&Row> {
        let found = self.seconds.get(&self.place_in_seconds(handle));
        found.or_else(|| self.buckets.get(&self.find_in_buckets(handle)?))
    }

    /// Removes a timer from its bucket.
    fn take(&mut self, handle: &Handle) -> Option<Row> {
        let found = self.seconds.remove(&self.place_in_seconds(handle));
        found.or_else(|| {
            let at = self.find_in_buckets(handle)?;
            self.buckets.remove(&at)
        })
    }

    /// Forgets the key of a timer and the note of where it has moved.
    fn forget(&mut self, row: &Row) {
        self.moved.remove(&row.id);
        if let Some(key) = &row.key {
            self.keys
                .remove(&(Arc::clone(&row.handler), Arc::clone(key)));
        }
    }

    fn shift(&mut self, row: &mut Row, due: Due) {
        row.due = due;
        row.starts = 0;
        match row.has_moved() {
            true => self.moved.insert(row.id, due),
            false => self.moved.remove(&row.id),
        };
    }

    /// The outcome of an insert whose key another timer has.
    fn existing(&self, row: &Row) -> Option<Outcome> {
        let key = (Arc::clone(&row.handler), Arc::clone(row.key.as_ref()?));
        let other = self.keys.get(&key).filter(|other| other.id != row.id);
        other.cloned().map(Outcome::Exists)
    }

    fn step(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Insert(row, _) if self.is_full => self.existing(row).unwrap_or(Outcome::Full),
            Op::All(steps) => {
                let was_full = std::mem::take(&mut self.is_full);
                let outcomes = steps.iter().map(|op| self.step(op)).collect();
                self.is_full = was_full;
                Outcome::All(outcomes)
            }
            Op::Insert(row, bucket) => {
                if let Some(exists) = self.existing(row) {
                    return exists;
                }
                if let Some(key) = &row.key {
                    let key = (Arc::clone(&row.handler), Arc::clone(key));
                    self.keys.insert(key, row.handle());
                }
                if row.has_moved() {
                    self.moved.insert(row.id, row.due);
                }
                self.place(row.clone(), *bucket);
                Outcome::Inserted
            }
            Op::Settle(row) => {
                if let Some(row) = self.take_from_second(row) {
                    self.forget(&row);
                }
                Outcome::Done
            }
            Op::Archive(row, at) => {
                if let Some(row) = self.take_from_second(row) {
                    self.moved.remove(&row.id);
                    self.archive(&row, *at);
                }
                Outcome::Done
            }
            Op::Expire {
                handler,
                before,
                limit,
            } => self.expire(handler, *before, *limit),
            Op::Start(row) => {
                let at = (Arc::clone(&row.handler), row.cursor());
                if let Some(stored) = self.seconds.get_mut(&at) {
                    stored.starts = row.starts.saturating_add(1);
                }
                Outcome::Done
            }
            Op::Cancel(handle) => {
                let row = self.take(handle);
                if let Some(row) = &row {
                    self.forget(row);
                }
                Outcome::Cancelled(row.is_some())
            }
            Op::Reschedule(handle, due, bucket) => {
                let row = self.take(handle).map(|mut row| {
                    self.shift(&mut row, *due);
                    self.place(row.clone(), *bucket);
                    row
                });
                Outcome::Rescheduled(row)
            }
            Op::Retry(row, due, bucket) | Op::Snooze(row, due, bucket) => {
                if let Some(mut row) = self.take_from_second(row) {
                    let has_failed = matches!(op, Op::Retry(..));
                    row.failures = row.failures.saturating_add(has_failed.into());
                    self.shift(&mut row, *due);
                    self.place(row, *bucket);
                }
                Outcome::Done
            }
            Op::Bury { row, at, error } => {
                if let Some(row) = self.take_from_second(row) {
                    self.forget(&row);
                    let error = Arc::clone(error);
                    self.dead.insert(
                        row.id,
                        Dead {
                            row,
                            at: *at,
                            error,
                        },
                    );
                }
                Outcome::Done
            }
            Op::Redrive(id, due, bucket) => {
                let row = self.dead.remove(id).map(|dead| {
                    let mut row = dead.row;
                    row.failures = 0;
                    row.key = None;
                    self.shift(&mut row, *due);
                    self.place(row.clone(), *bucket);
                    row
                });
                Outcome::Redriven(row)
            }
            Op::Discard(id) => {
                let dead = self.dead.remove(id);
                Outcome::Cancelled(dead.is_some())
            }
            Op::Erase { handler, key } => Outcome::Erased(self.erase(handler, key)),
            Op::Cascade { bucket, now, limit } => self.cascade(*bucket, *now, *limit),
            Op::Set(name, Some(value)) => {
                self.settings.insert(Arc::clone(name), Arc::clone(value));
                Outcome::Done
            }
            Op::Set(name, None) => {
                self.settings.remove(name);
                Outcome::Done
            }
            Op::Reply(..) | Op::HandOver(_) | Op::Report(..) => Outcome::Done,
            Op::NextEpoch(after) => {
                self.epoch = self.epoch.max(*after) + 1;
                Outcome::Epoch(self.epoch)
            }
        }
    }

    fn erase(&mut self, handler: &Arc<str>, key: &Arc<[u8]>) -> Erased {
        let before = self.dead.len();
        let has_key = |row: &Row| row.handler == *handler && row.key.as_ref() == Some(key);
        self.dead.retain(|_, dead| !has_key(&dead.row));
        let mut erased = Erased {
            dead_letters: (before - self.dead.len()) as u64,
            is_archived: false,
        };
        let name = (Arc::clone(handler), Arc::clone(key));
        let Some(holder) = self.keys.get(&name).cloned() else {
            return erased;
        };
        let archived = self.archive.iter_mut();
        for (_, archived) in archived.filter(|((of, _), it)| of == handler && it.id == holder.id) {
            archived.key = None;
            self.keys.remove(&name);
            erased.is_archived = true;
        }
        erased
    }

    /// The records of a handler after this cursor and before this day.
    fn archived_of(
        &self,
        handler: &Arc<str>,
        after: ArchiveCursor,
        before: i64,
    ) -> impl Iterator<Item = (ArchiveCursor, &Archived)> {
        let after = (Arc::clone(handler), after);
        let rest = self
            .archive
            .range((Bound::Excluded(after), Bound::Unbounded));
        let handler = Arc::clone(handler);
        let rest = rest.take_while(move |((of, cursor), _)| *of == handler && cursor.day < before);
        rest.map(|((_, cursor), archived)| (*cursor, archived))
    }

    /// Archives a timer, as a block of its own.
    fn archive(&mut self, row: &Row, at: Due) {
        let day = at.day();
        let from = (Arc::clone(&row.handler), ArchiveCursor::before(day));
        let to = (
            Arc::clone(&row.handler),
            ArchiveCursor::before(day.saturating_add(1)),
        );
        let last = self.archive.range(from..to).next_back();
        let block = last.map_or(0, |((_, last), _)| last.block + 1);
        // Index 0 is the cursor before the records of the day.
        let cursor = ArchiveCursor {
            day,
            block,
            index: 1,
        };
        self.archive
            .insert((Arc::clone(&row.handler), cursor), row.archived(at));
    }

    fn expire(&mut self, handler: &Arc<str>, before: i64, limit: usize) -> Outcome {
        let first = self
            .archived_of(handler, ArchiveCursor::START, before)
            .take(limit);
        let first: Vec<_> = first
            .map(|(cursor, it)| (cursor, it.id, it.key.clone()))
            .collect();
        for (cursor, id, key) in first {
            self.archive.remove(&(Arc::clone(handler), cursor));
            if let Some(key) = key
                && let hash_map::Entry::Occupied(key) = self.keys.entry((Arc::clone(handler), key))
                && key.get().id == id
            {
                key.remove();
            }
        }
        Outcome::Expired {
            is_empty: self
                .archived_of(handler, ArchiveCursor::START, before)
                .next()
                .is_none(),
        }
    }

    fn cascade(&mut self, bucket: Bucket, now: Due, limit: PageLimit) -> Outcome {
        let ids = self.first_of(bucket, limit);
        let (mut buckets, mut seconds) = (BTreeMap::new(), BTreeMap::new());
        for at in ids {
            let Some(row) = self.buckets.remove(&at) else {
                continue;
            };
            let finer = bucket.finer(row.due, now);
            let first = match finer.level {
                Level::Second => seconds
                    .entry(Arc::clone(&row.handler))
                    .or_insert(finer.number),
                level => buckets.entry(level).or_insert(finer.number),
            };
            *first = finer.number.min(*first);
            self.place(row, finer);
        }
        let mut left = self.buckets.range((bucket, Id::NONE)..=(bucket, Id::MAX));
        Outcome::Cascaded {
            is_empty: left.next().is_none(),
            buckets: buckets
                .into_iter()
                .map(|(level, number)| Bucket { level, number })
                .collect(),
            seconds: seconds.into_iter().collect(),
        }
    }
}

impl Store for MemoryStore {
    fn begin(&mut self) -> Result<u64, StoreError> {
        self.epoch += 1;
        self.last = None;
        Ok(self.epoch)
    }

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        if let Some((last, outcomes)) = &self.last
            && *last == number
        {
            return Ok(outcomes.clone());
        }
        let outcomes: Vec<_> = steps.iter().map(|op| self.step(op)).collect();
        self.last = Some((number, outcomes.clone()));
        Ok(outcomes)
    }

    fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        let Some(handler) = self.handlers.get(handler) else {
            return Ok(Vec::new());
        };
        let after = (Arc::clone(handler), after);
        let end = (Arc::clone(handler), RowCursor::before(before));
        if after >= end {
            return Ok(Vec::new());
        }
        let rows = self.seconds.range(after.clone()..end);
        let rows = rows.filter(|(at, _)| **at > after);
        limit.take(rows.map(|(_, row)| Ok(row.clone())))
    }

    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError> {
        let Some(handler) = self.handlers.get(handler) else {
            return Ok(None);
        };
        let from = (Arc::clone(handler), RowCursor::before(from));
        let first = self.seconds.range(from..).next();
        Ok(first
            .filter(|((of, _), _)| of == handler)
            .map(|((_, at), _)| at.second))
    }

    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError> {
        let first = Bucket {
            level,
            number: i64::MIN,
        };
        let first = self.buckets.range((first, Id::NONE)..).next();
        Ok(first
            .filter(|((bucket, _), _)| bucket.level == level)
            .map(|((bucket, _), _)| bucket.number))
    }

    fn load_level(
        &mut self,
        after: PendingCursor,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        let last = Bucket {
            level: after.bucket.level,
            number: i64::MAX,
        };
        let after = Bound::Excluded((after.bucket, after.id));
        let rows = self
            .buckets
            .range((after, Bound::Included((last, Id::MAX))));
        limit.take(rows.map(|(_, row)| Ok(row.clone())))
    }

    fn handlers(&mut self) -> Result<Vec<Arc<str>>, StoreError> {
        Ok(self.handlers.iter().cloned().collect())
    }

    fn dead(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, StoreError> {
        let dead = self.dead.range((Bound::Excluded(after), Bound::Unbounded));
        let dead = dead.map(|(id, dead)| {
            let is_meant = scope.contains(&dead.row.handler);
            Ok((*id, is_meant.then(|| dead.clone())))
        });
        DeadLetters::of(dead, after, limit, DeadLetters::EXAMINED)
    }

    fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, StoreError> {
        let key = (Arc::from(handler), Arc::from(key));
        let holder = self.keys.get(&key);
        let waits = |handle: &&Handle| self.timer(handle).is_some();
        Ok(holder.filter(waits).cloned())
    }

    fn get(&mut self, handle: &Handle) -> Result<Option<Row>, StoreError> {
        Ok(self.timer(handle).cloned())
    }

    /// Sorts all timers for each page, and then examines any number of them.
    fn handles(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, StoreError> {
        let all = self.pending();
        let all = all.map(|(bucket, row)| (PendingCursor { bucket, id: row.id }, row));
        let rest = all.filter(|(cursor, _)| after.is_none_or(|after| *cursor > after));
        let mut all: Vec<_> = rest.collect();
        all.sort_unstable_by_key(|(cursor, _)| *cursor);
        let all = all.into_iter().map(|(cursor, row)| {
            let handle = scope.contains(&row.handler).then(|| row.handle());
            Ok((cursor, handle))
        });
        HandlePage::of(all, limit, usize::MAX)
    }

    /// Counts all timers.
    fn counts(&mut self) -> Result<Counts, StoreError> {
        let mut pending = BTreeMap::new();
        for (bucket, row) in self.pending() {
            let bucket = PendingCount::bucket_of(bucket);
            *pending.entry((&row.handler, bucket)).or_insert(0) += 1;
        }
        let mut dead = BTreeMap::new();
        for it in self.dead.values() {
            let kind = DeadCount::kind(&it.error);
            *dead.entry((&it.row.handler, kind)).or_insert(0) += 1;
        }
        let pending = pending
            .into_iter()
            .map(|((handler, bucket), count)| PendingCount {
                handler: Arc::clone(handler),
                bucket,
                count,
            });
        let dead = dead.into_iter().map(|((handler, error), count)| DeadCount {
            handler: Arc::clone(handler),
            error: error.into(),
            count,
        });
        Ok(Counts {
            pending: pending.collect(),
            dead: dead.collect(),
        })
    }

    /// Looks at all timers: this store has no index of the tags.
    fn tagged(&mut self, tag: &str, after: Id, limit: usize) -> Result<Vec<Handle>, StoreError> {
        let timers = self.pending().map(|(_, row)| row);
        let tagged = timers.filter(|row| row.tag() == Some(tag) && row.id > after);
        let mut tagged: Vec<_> = tagged.map(Row::handle).collect();
        tagged.sort_unstable_by_key(|handle| handle.id);
        tagged.truncate(limit);
        Ok(tagged)
    }

    fn archived(
        &mut self,
        handler: &str,
        after: ArchiveCursor,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(ArchiveCursor, Archived)>, StoreError> {
        let handler = Arc::from(handler);
        let archived = self.archived_of(&handler, after, before);
        Ok(archived
            .take(limit)
            .map(|(cursor, it)| (cursor, it.clone()))
            .collect())
    }

    fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, StoreError> {
        let handler = Arc::from(handler);
        let first = self
            .archived_of(&handler, ArchiveCursor::START, i64::MAX)
            .next();
        Ok(first.map(|(cursor, _)| cursor.day))
    }

    fn settings(&mut self) -> Result<Vec<Setting>, StoreError> {
        let settings = self.settings.iter().map(|(name, value)| Setting {
            name: Arc::clone(name),
            value: Arc::clone(value),
        });
        Ok(settings.collect())
    }
}
