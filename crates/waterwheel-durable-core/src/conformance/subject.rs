//! The store of a case, and helpers for requests to it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use crate::store::{
    Bucket, Counts, Dead, DeadCount, DeadLetters, Due, Handle, HandlePage, Id, Level, Op, Outcome,
    PageLimit, PendingCount, PendingCursor, Row, RowCursor, Scope, Store,
};

use super::rows::{MAIL, handle, insert_second};

pub(crate) type Done = Result<(), String>;

/// Opens or reopens a store.
pub(crate) type Open<'a> = &'a mut dyn FnMut(Option<Box<dyn Store>>) -> Box<dyn Store>;

pub(crate) struct Subject<'a> {
    open: Open<'a>,
    store: Option<Box<dyn Store>>,
    epoch: u64,
    number: u64,
    /// The number of commits in the case.
    commits: u32,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(open: Open<'a>) -> Result<Subject<'a>, String> {
        let mut subject = Subject {
            open,
            store: None,
            epoch: 0,
            number: 0,
            commits: 0,
        };
        subject.reopen()?;
        Ok(subject)
    }

    /// Reopens the store, so that it only replies from what it has kept.
    pub(crate) fn reopen(&mut self) -> Result<u64, String> {
        let mut store = (self.open)(self.store.take());
        let begun = store.begin().map_err(words)?;
        self.store = Some(store);
        if begun <= self.epoch {
            return Err(format!("epoch {begun} follows epoch {}", self.epoch));
        }
        (self.epoch, self.number) = (begun, 0);
        Ok(begun)
    }

    pub(crate) fn store(&mut self) -> Result<&mut dyn Store, String> {
        match &mut self.store {
            Some(store) => Ok(&mut **store),
            None => Err("the store was not opened".into()),
        }
    }

    /// Commits, and reopens the store.
    pub(crate) fn commit(&mut self, steps: &[Op]) -> Result<Vec<Outcome>, String> {
        let outcomes = self.commit_only(steps)?;
        if self.is_looked_at() {
            self.reopen()?;
        }
        Ok(outcomes)
    }

    /// Whether the store is looked at after this commit: some cases have hundreds of them.
    fn is_looked_at(&self) -> bool {
        self.commits < 16 || self.commits.is_multiple_of(16)
    }

    /// Inserts rows into the finest level.
    pub(crate) fn inserts<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row>) -> Done {
        let steps: Vec<_> = rows.into_iter().map(insert_second).collect();
        self.commit(&steps).map(drop)
    }

    /// Checks that these are the rows of [`MAIL`] in the finest level.
    pub(crate) fn has(&mut self, expected: &[Row]) -> Done {
        same("the rows", &self.seconds(MAIL)?[..], expected)
    }

    pub(crate) fn commit_only(&mut self, steps: &[Op]) -> Result<Vec<Outcome>, String> {
        self.number += 1;
        self.commit_as(self.number, steps)
    }

    pub(crate) fn commit_as(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, String> {
        let outcomes = self.store()?.commit(number, steps).map_err(words)?;
        same("the number of outcomes", outcomes.len(), steps.len())?;
        self.commits += 1;
        if self.is_looked_at() {
            let counted = self.recounted()?;
            same("the counts", self.counts()?, counted)?;
        }
        Ok(outcomes)
    }

    /// The store's counts, sorted.
    pub(crate) fn counts(&mut self) -> Result<Counts, String> {
        let mut counts = self.store()?.counts().map_err(words)?;
        let place = |it: &PendingCount| (Arc::clone(&it.handler), it.bucket);
        counts.pending.sort_by_key(place);
        let kind = |it: &DeadCount| (Arc::clone(&it.handler), Arc::clone(&it.error));
        counts.dead.sort_by_key(kind);
        Ok(counts)
    }

    /// The counts of all timers and dead letters that are listed.
    fn recounted(&mut self) -> Result<Counts, String> {
        let mut pending = BTreeMap::new();
        for (at, handle) in self.handles(Scope::All, 1_000_000)? {
            let bucket = PendingCount::bucket_of(at.bucket);
            *pending.entry((handle.handler, bucket)).or_insert(0) += 1;
        }
        let mut dead = BTreeMap::new();
        for it in self.dead()? {
            let kind: Arc<str> = DeadCount::kind(&it.error).into();
            *dead.entry((it.row.handler, kind)).or_insert(0) += 1;
        }
        let pending = pending
            .into_iter()
            .map(|((handler, bucket), count)| PendingCount {
                handler,
                bucket,
                count,
            });
        let dead = dead.into_iter().map(|((handler, error), count)| DeadCount {
            handler,
            error,
            count,
        });
        Ok(Counts {
            pending: pending.collect(),
            dead: dead.collect(),
        })
    }

    /// Commits, and checks the outcomes.
    pub(crate) fn does<const N: usize>(&mut self, steps: [(Op, Outcome); N]) -> Done {
        let (steps, expected): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        let outcomes = self.commit(&steps)?;
        same("the outcomes", outcomes, expected)
    }

    /// All rows of a handler in the finest level.
    pub(crate) fn seconds(&mut self, handler: &str) -> Result<Vec<Row>, String> {
        self.load(
            handler,
            RowCursor::START,
            i64::MAX,
            PageLimit::rows(1_000_000),
        )
    }

    pub(crate) fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, String> {
        let store = self.store()?;
        store.load(handler, after, before, limit).map_err(words)
    }

    pub(crate) fn load_level(
        &mut self,
        after: PendingCursor,
        limit: PageLimit,
    ) -> Result<Vec<Row>, String> {
        self.store()?.load_level(after, limit).map_err(words)
    }

    /// The first second of [`MAIL`].
    pub(crate) fn first_second(&mut self, from: i64) -> Result<Option<i64>, String> {
        self.store()?.first_second(MAIL, from).map_err(words)
    }

    pub(crate) fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, String> {
        self.store()?.first_bucket(level).map_err(words)
    }

    pub(crate) fn handlers(&mut self) -> Result<Vec<String>, String> {
        let handlers = self.store()?.handlers().map_err(words)?;
        let mut handlers: Vec<_> = handlers.iter().map(|name| name.to_string()).collect();
        handlers.sort();
        Ok(handlers)
    }

    /// All dead letters.
    pub(crate) fn dead(&mut self) -> Result<Vec<Dead>, String> {
        self.dead_letters(Scope::All, Id::NONE, PageLimit::rows(1_000_000))
    }

    /// The dead letters of these handlers after this id, read in pages of this size.
    pub(crate) fn dead_letters(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<Vec<Dead>, String> {
        let (mut all, mut next) = (Vec::new(), Some(after));
        while let Some(after) = next {
            let page = self.dead_letters_after(scope, after, limit)?;
            if page.next.is_some_and(|next| next <= after) {
                return Err(format!("the page after {after} begins again: {page:?}"));
            }
            all.extend(page.dead);
            next = page.next;
        }
        Ok(all)
    }

    /// One page of dead letters.
    pub(crate) fn dead_letters_after(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, String> {
        self.store()?.dead(scope, after, limit).map_err(words)
    }

    pub(crate) fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, String> {
        self.store()?.find(handler, key).map_err(words)
    }

    /// The handles of these handlers' timers and their positions, read in pages of this size.
    pub(crate) fn handles(
        &mut self,
        scope: Scope<'_>,
        limit: usize,
    ) -> Result<Vec<(PendingCursor, Handle)>, String> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.handles_after(scope, after, limit)?;
            all.extend(page.handles);
            match page.next {
                None => return Ok(all),
                next if next <= after => {
                    return Err(format!("the page after {after:?} begins again"));
                }
                next => after = next,
            }
        }
    }

    /// One page of handles.
    pub(crate) fn handles_after(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, String> {
        let page = self.store()?.handles(scope, after, limit).map_err(words)?;
        match page.handles.len() > limit {
            true => Err(format!("a page of {limit} has {}", page.handles.len())),
            false => Ok(page),
        }
    }

    /// A page of the timers with this tag.
    pub(crate) fn tagged(
        &mut self,
        tag: &str,
        after: Id,
        limit: usize,
    ) -> Result<Vec<Handle>, String> {
        self.store()?.tagged(tag, after, limit).map_err(words)
    }

    /// The timer with the handle of this row.
    pub(crate) fn get(&mut self, row: &Row) -> Result<Option<Row>, String> {
        self.store()?.get(&handle(row)).map_err(words)
    }

    /// A page of a cascade: whether the bucket is empty, the coarser buckets, and the seconds.
    pub(crate) fn cascade(
        &mut self,
        bucket: Bucket,
        now: Due,
        limit: usize,
    ) -> Result<Page, String> {
        self.cascade_of(bucket, now, PageLimit::rows(limit))
    }

    pub(crate) fn cascade_of(
        &mut self,
        bucket: Bucket,
        now: Due,
        limit: PageLimit,
    ) -> Result<Page, String> {
        let steps = [Op::Cascade { bucket, now, limit }];
        match &self.commit(&steps)?[..] {
            [
                Outcome::Cascaded {
                    is_empty,
                    buckets,
                    seconds,
                },
            ] => {
                let mut page = Page {
                    is_empty: *is_empty,
                    buckets: buckets.clone(),
                    seconds: seconds
                        .iter()
                        .map(|(of, second)| (of.to_string(), *second))
                        .collect(),
                };
                page.buckets.sort_unstable();
                page.seconds.sort_unstable();
                Ok(page)
            }
            other => Err(format!("a cascade has the outcome {other:?}")),
        }
    }

    /// Cancels timers by their handles, and checks that each exists once.
    pub(crate) fn cancels<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row>) -> Done {
        for row in rows {
            let found = self.get(row)?.map(|found| found.id);
            same("the timer with a handle", found, Some(row.id))?;
            let cancel = Op::Cancel(handle(row));
            self.does([(cancel.clone(), Outcome::Cancelled(true))])?;
            self.does([(cancel, Outcome::Cancelled(false))])?;
        }
        Ok(())
    }

    /// Checks that no timer is left in any level.
    pub(crate) fn is_empty(&mut self) -> Done {
        for level in Level::CASCADING {
            let first = self.first_bucket(level)?;
            same("the first bucket of an empty level", first, None)?;
        }
        for handler in self.handlers()? {
            let rows = self.seconds(&handler)?;
            same("the rows of a store without timers", rows, Vec::new())?;
        }
        Ok(())
    }
}

/// The result of one page of a cascade, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) is_empty: bool,
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) seconds: Vec<(String, i64)>,
}

pub(crate) fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Done {
    match got == expected {
        true => Ok(()),
        false => {
            let (got, expected) = (short(&got), short(&expected));
            Err(format!("{what}: got {got}, expected {expected}"))
        }
    }
}

fn short(value: &impl Debug) -> String {
    let mut text = format!("{value:?}");
    if let Some((end, _)) = text.char_indices().nth(600) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn words(error: crate::store::StoreError) -> String {
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
