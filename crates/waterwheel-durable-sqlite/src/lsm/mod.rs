//! Which timer has a business key?
//!
//! Keys are random. A table in order of the keys changes a page of its own for nearly each insert, and each of these pages is written twice, to the WAL and to
//! the file. So the index is written in order of time and sorted step by step, as in a [log-structured merge tree](https://doi.org/10.1007/s002360050048):
//!
//! - Changes of commits since the last run was written are **fresh**: they are in memory, in a map, and in the file, in `key_changes`, one row per commit,
//!   which is read when the file is opened.
//! - When there are many fresh changes, they are written in order, as a [run]. A run does not change.
//! - When there are four runs of about the same size, they are merged into one, in steps that are each a separate transaction.
//!
//! A lookup searches the fresh changes and then the runs, the youngest first, and the first hit is valid: the timer that has the key, or that the key is free.
//! A filter in memory rules most runs out. Everything is found by the [name](Name) of a key.
//!
//! | file | question |
//! |---|---|
//! | `entry` | what is known of a key, by which name, and how is that stored in the file? |
//! | `run` | where is an entry stored, and what is certainly not in a run? |
//!
//! # Merging
//!
//! A merge goes by ascending names: each step takes the next entries out of the source runs and appends them to the new run. So each name is in one place at
//! any time, the position of a merge is in the file, and a merge needs no more space than one step.
//!
//! At least four adjacent runs of about the same size are merged. So an entry is merged once for each power of four by which the index has grown, and there are
//! about three runs for each of these powers. While old runs are merged, which takes long if they are large, the younger ones are merged among themselves. When
//! a quarter of all entries say that a key is free, all runs are merged. That drops these entries and those that they hide.

mod entry;
mod run;

use std::collections::HashMap;
use std::ops::Range;

use rusqlite::Connection;

use crate::meta::read_meta;
use entry::{Entry, LENGTH, Secret, damaged, entries};
pub(crate) use entry::{Holder, Name};
pub(crate) use run::MAX_BITS;
use run::{Filter, Run};

/// The maximum of fresh changes, and the size of a merge step, in entries.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// The number of changes that are written as a run.
    pub fresh: usize,
    /// The approximate minimum number of entries merged in a step.
    pub step: u64,
}

impl Sizes {
    /// 64 K entries are 2 MB in the file, and some 5 MB in memory.
    pub const USUAL: Sizes = Sizes {
        fresh: 65_536,
        step: 8_192,
    };
}

/// The number of entries merged per changed entry: more than the four powers of four from 64 K to 16 M, for each of which an entry is merged once.
const MERGED_EACH: u64 = 6;

/// The number of entries merged per step of a commit that changes none. A running merge must finish during such commits, too: otherwise, after many keys have
/// expired, it would stand still for as long as others insert, and the file would stay larger than necessary.
const MERGED_BESIDE: u64 = 4;

/// The index: see the [module](self).
#[derive(Debug)]
pub(crate) struct KeyIndex {
    secret: Secret,
    sizes: Sizes,
    fresh: HashMap<Name, Holder>,
    /// The number of changes in `key_changes`.
    changes: usize,
    /// The runs, the youngest first.
    runs: Vec<Run>,
    /// The entries that this transaction has changed, in order, with their values before.
    changed: Vec<(Entry, Option<Holder>)>,
    /// The number of steps of this transaction.
    steps: u64,
    /// The merge or write that this transaction has done.
    step: Option<Step>,
    /// The number of entries to be merged for the changes so far.
    owed: u64,
    /// The maximum number of entries merged in a step.
    limit: u64,
}

impl KeyIndex {
    pub(crate) fn read(connection: &Connection, sizes: Sizes) -> rusqlite::Result<KeyIndex> {
        let secret = |key| read_meta(connection, key);
        let mut keys = KeyIndex {
            secret: Secret(secret("key secret 1")?, secret("key secret 2")?),
            sizes,
            fresh: HashMap::new(),
            changes: 0,
            runs: Run::read_all(connection)?,
            changed: Vec::new(),
            steps: 0,
            step: None,
            owed: 0,
            limit: 4 * sizes.step,
        };
        keys.find_ends()?;
        let mut changes = connection.prepare("SELECT entries FROM key_changes ORDER BY number")?;
        let mut rows = changes.query([])?;
        while let Some(row) = rows.next()? {
            for entry in entries(row.get_ref(0)?.as_blob()?)? {
                keys.fresh.insert(entry.name, entry.holder);
                keys.changes += 1;
            }
        }
        Ok(keys)
    }

    /// Returns the name of a key of the handler with this number.
    pub(crate) fn name(&self, handler: i64, key: &[u8]) -> Name {
        self.secret.name(handler, key)
    }

    /// Finds the timer that has a key.
    pub(crate) fn find(
        &self,
        connection: &Connection,
        name: Name,
    ) -> rusqlite::Result<Option<Holder>> {
        let mut found = self.fresh.get(&name).copied();
        for run in &self.runs {
            if found.is_some() {
                break;
            }
            found = run.find(connection, name)?;
        }
        Ok(found.filter(|holder| *holder != Holder::NONE))
    }

    /// Gives a key to a timer.
    pub(crate) fn take(&mut self, name: Name, holder: Holder) {
        let before = self.fresh.insert(name, holder);
        self.changed.push((Entry { name, holder }, before));
    }

    /// Takes a key from the timer that has it.
    pub(crate) fn free(&mut self, name: Name) {
        let holder = Holder::NONE;
        // If no run has an older entry, there is nothing to hide.
        let before = match self.runs.iter().any(|run| run.may_have(name)) {
            true => self.fresh.insert(name, holder),
            false => self.fresh.remove(&name),
        };
        self.changed.push((Entry { name, holder }, before));
    }

    /// Writes the changes of the transaction, which has this many steps.
    pub(crate) fn write(&mut self, connection: &Connection, steps: usize) -> rusqlite::Result<()> {
        self.steps = steps as u64;
        if self.changed.is_empty() {
            return Ok(());
        }
        let mut blob = Vec::new();
        self.changed
            .iter()
            .for_each(|(entry, _)| entry.write(&mut blob));
        let sql = "INSERT INTO key_changes (entries) VALUES (?1)";
        connection.prepare_cached(sql)?.execute([blob])?;
        Ok(())
    }

    /// Called when the transaction was committed.
    pub(crate) fn commit(&mut self) {
        let changed = self.changed.len();
        self.changed.clear();
        self.changes += changed;
        let steps = std::mem::take(&mut self.steps);
        let owed = match changed {
            0 if self.may_merge() => steps * MERGED_BESIDE,
            _ => changed as u64 * MERGED_EACH,
        };
        self.owed += owed;
        match self.step.take() {
            Some(step) => self.commit_step(step),
            // Otherwise merging would fall behind if all commits are this large.
            None => self.limit = (2 * owed).max(4 * self.sizes.step),
        }
    }

    /// Called when the transaction was rolled back.
    pub(crate) fn rollback(&mut self) {
        self.steps = 0;
        for (entry, before) in self.changed.drain(..).rev() {
            match before {
                Some(before) => self.fresh.insert(entry.name, before),
                None => self.fresh.remove(&entry.name),
            };
        }
        if let Some(step) = self.step.take() {
            self.rollback_step(&step);
        }
    }
}

/// Parses the entries of a row. The timer is `None` if the key is free.
pub(crate) fn read_entries(blob: &[u8]) -> rusqlite::Result<Vec<(Name, Option<Holder>)>> {
    let all = entries(blob)?;
    let all = all.map(|entry| (entry.name, Some(entry.holder).filter(|_| !entry.is_free())));
    Ok(all.collect())
}

/// Whether a row has the length of a filter.
pub(crate) fn is_filter(row: &[u8]) -> bool {
    Filter::new(1).read(0, row).is_ok()
}

impl KeyIndex {
    /// Checks whether the entries of a chunk are where they are looked for. Returns the problem if they are not.
    pub(crate) fn fits(
        &self,
        number: i64,
        entries: &[(Name, Option<Holder>)],
    ) -> Result<(), &'static str> {
        let Some(run) = self.runs.iter().find(|run| run.number == number >> 32) else {
            return Err("it is a chunk of a run that the table `key_runs` does not have");
        };
        let chunk = number as u32;
        if chunk >= run.done {
            return Err("it is a chunk that its run has not written");
        }
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            return Err("its entries are not in order");
        }
        if entries
            .iter()
            .any(|(name, _)| name.chunk(run.bits) != chunk)
        {
            return Err("it has an entry of another chunk");
        }
        match entries
            .iter()
            .all(|(name, _)| run.filter.may_have(chunk, *name))
        {
            true => Ok(()),
            false => {
                Err("its row in the table `key_filters` rules out a key that it has, or is missing")
            }
        }
    }
}

/// The number of runs of about the same size that are merged.
const ALIKE: usize = 4;

/// A change of the runs by a transaction.
#[derive(Debug)]
enum Step {
    /// The fresh entries have become a run, or `None` if none of them is left.
    Fresh(Option<Run>),
    /// A part was merged into the run with this number.
    Merge {
        into: i64,
        /// Whether this step has created the run.
        is_new: bool,
        /// The numbers of its entries, freed entries and chunks before.
        before: (u64, u64, u32),
        /// The number of entries that were read.
        read: u64,
    },
}

impl KeyIndex {
    /// Whether it is time to [write](KeyIndex::write_fresh) the fresh changes as a run.
    pub(crate) fn is_much_fresh(&self) -> bool {
        self.changes >= self.sizes.fresh
    }

    /// The approximate size of the fresh changes as a run, in bytes.
    pub(crate) fn fresh_bytes(&self) -> u64 {
        (self.fresh.len() * LENGTH) as u64
    }

    /// Whether it is time to [merge](KeyIndex::merge) some more: in proportion to the changes of commits, so that these are not delayed, and also while there
    /// are no commits.
    pub(crate) fn is_to_merge(&self, is_idle: bool) -> bool {
        (self.owed >= self.sizes.step || is_idle) && self.may_merge()
    }

    fn may_merge(&self) -> bool {
        self.next().is_some() || self.merged().is_some()
    }

    /// The runs to be merged next, except those that are already being merged.
    fn next(&self) -> Option<Range<usize>> {
        let is_merged = |run: &Run| run.into.is_some() || run.end().is_some();
        if has_much_freed(&self.runs) && !self.runs.iter().any(is_merged) {
            return Some(0..self.runs.len());
        }
        let mut alike = 0..0;
        let mut largest = 0;
        for (at, run) in self.runs.iter().enumerate() {
            if is_merged(run) || run.entries > 2 * largest {
                if alike.len() >= ALIKE {
                    break;
                }
                (alike, largest) = (at..at, 0);
            }
            if is_merged(run) {
                alike = at + 1..at + 1;
            } else {
                alike.end = at + 1;
                largest = run.entries.max(largest);
            }
        }
        (alike.len() >= ALIKE).then_some(alike)
    }

    /// The youngest run that others are merged into: small merges do not wait for a large one.
    fn merged(&self) -> Option<usize> {
        self.runs.iter().position(|run| run.end().is_some())
    }

    /// Makes a run of the fresh changes, in an open transaction.
    pub(crate) fn write_fresh(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let fresh = self.fresh.iter();
        let fresh = fresh.map(|(name, holder)| Entry {
            name: *name,
            holder: *holder,
        });
        let is_first = self.runs.is_empty();
        let mut fresh: Vec<_> = fresh.filter(|it| !is_first || !it.is_free()).collect();
        fresh.sort_unstable_by_key(|entry| entry.name);
        let run = match fresh.len() as u64 {
            0 => None,
            count => {
                let number = self.next_number();
                let mut run = Run::new(number, number, count);
                let mut rest = &fresh[..];
                while let Some(end) = end_of_next(&run) {
                    let count =
                        rest.partition_point(|entry| end.is_none_or(|end| entry.name < end));
                    run.append(connection, &rest[..count])?;
                    rest = &rest[count..];
                }
                run.write(connection)?;
                Some(run)
            }
        };
        connection.execute_batch("DELETE FROM key_changes")?;
        self.step = Some(Step::Fresh(run));
        Ok(())
    }

    fn next_number(&self) -> i64 {
        self.runs.iter().map(|run| run.number).max().unwrap_or(0) + 1
    }

    /// Merges a part, in an open transaction.
    pub(crate) fn merge(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let (at, is_new) = match (self.next(), self.merged()) {
            (Some(runs), _) => (self.begin(runs), true),
            (None, Some(at)) => (at, false),
            (None, None) => return Ok(()),
        };
        let mut run = self.runs.remove(at);
        let before = (run.entries, run.freed, run.done);
        let merged = self.merge_into(connection, &mut run, is_new);
        let into = run.number;
        self.runs.insert(at, run);
        // This is also set after an error, so that the step is rolled back.
        let read = *merged.as_ref().unwrap_or(&0);
        self.step = Some(Step::Merge {
            into,
            is_new,
            before,
            read,
        });
        merged.map(drop)
    }

    /// Adds a new run, into which these runs are to be merged. Returns its position.
    fn begin(&mut self, runs: Range<usize>) -> usize {
        let number = self.next_number();
        let at = runs.start;
        let (mut entries, mut age) = (0, 0);
        for run in self.runs.iter_mut().take(runs.end).skip(at) {
            entries += run.entries;
            age = run.age.max(age);
            run.into = Some(number);
        }
        self.runs.insert(at, Run::new(number, age, entries));
        at
    }

    /// Appends the entries of the next names in the sources to a run. Returns the number of entries read.
    fn merge_into(
        &self,
        connection: &Connection,
        run: &mut Run,
        is_new: bool,
    ) -> rusqlite::Result<u64> {
        let sources: Vec<&Run> = self
            .runs
            .iter()
            .filter(|it| it.into == Some(run.number))
            .collect();
        // Entries of free keys can be dropped if no older run is left.
        let has_older = sources
            .last()
            .is_none_or(|last| self.runs.iter().any(|it| it.age < last.age));
        let mut streams: Vec<_> = sources.iter().map(|run| Stream::new(run)).collect();
        let limit = self.owed.clamp(self.sizes.step, self.limit);
        let mut read = 0;
        let mut next = Vec::new();
        while read < limit
            && let Some(end) = end_of_next(run)
        {
            next.clear();
            // The youngest run comes first, and a stable sort keeps it first.
            for stream in &mut streams {
                stream.take_before(connection, end, &mut next)?;
            }
            read += next.len() as u64 + 1;
            next.sort_by_key(|entry| entry.name);
            next.dedup_by_key(|entry| entry.name);
            next.retain(|entry| has_older || !entry.is_free());
            run.append(connection, &next)?;
        }
        for source in sources {
            if is_new {
                source.write(connection)?;
            }
            source.delete_before(connection, run.end())?;
        }
        match run.end().is_none() && run.entries == 0 {
            // All keys were free: the filter of such a run would keep the memory for millions of entries.
            true => run.delete_before(connection, None)?,
            false => run.write(connection)?,
        }
        Ok(read)
    }

    fn commit_step(&mut self, step: Step) {
        match step {
            Step::Fresh(run) => {
                self.fresh.clear();
                self.changes = 0;
                self.runs.splice(0..0, run);
            }
            Step::Merge { into, read, .. } => {
                self.owed = self.owed.saturating_sub(read);
                let run = self.runs.iter().find(|run| run.number == into);
                match run.and_then(Run::end) {
                    Some(end) => {
                        for run in &mut self.runs {
                            if run.into == Some(into) {
                                run.from = end;
                            }
                        }
                    }
                    None => self.runs.retain(|run| {
                        let is_left = run.number != into || run.entries > 0;
                        is_left && run.into != Some(into)
                    }),
                }
            }
        }
        if !self.may_merge() {
            // Nothing is saved up for a later large merge.
            self.owed = self.owed.min(self.sizes.step);
        }
    }

    fn rollback_step(&mut self, step: &Step) {
        let Step::Merge {
            into,
            is_new,
            before,
            ..
        } = step
        else {
            return;
        };
        if *is_new {
            self.runs.retain(|run| run.number != *into);
            for run in &mut self.runs {
                run.into = run.into.filter(|it| it != into);
            }
        }
        for run in &mut self.runs {
            if run.number == *into {
                (run.entries, run.freed, run.done) = *before;
            }
        }
    }

    /// Finds the position of each merge that was running when the file was closed.
    fn find_ends(&mut self) -> rusqlite::Result<()> {
        let into: Vec<_> = self
            .runs
            .iter()
            .map(|run| (run.number, run.end()))
            .collect();
        for run in &mut self.runs {
            if let Some(number) = run.into {
                let end = into.iter().find(|(of, _)| *of == number);
                run.from = end.and_then(|(_, end)| *end).ok_or_else(damaged)?;
            }
        }
        Ok(())
    }
}

/// The end of the next chunk to be written: `Some(None)` if it is the last chunk, and `None` if all are written.
fn end_of_next(run: &Run) -> Option<Option<Name>> {
    run.end().map(|_| Name::first_of(run.done + 1, run.bits))
}

/// Whether a quarter of the entries in runs say that a key is free.
fn has_much_freed(runs: &[Run]) -> bool {
    let entries: u64 = runs.iter().map(|run| run.entries).sum();
    let freed: u64 = runs.iter().map(|run| run.freed).sum();
    runs.len() > 1 && freed * 4 > entries
}

/// The rest of a run that is being merged into another one.
struct Stream<'a> {
    run: &'a Run,
    /// The next chunk to be read.
    chunk: u32,
    /// The entries that were read and not yet taken, the least name last.
    entries: Vec<Entry>,
}

impl Stream<'_> {
    fn new(run: &Run) -> Stream<'_> {
        Stream {
            run,
            chunk: run.from.chunk(run.bits),
            entries: Vec::new(),
        }
    }

    /// Takes the entries before this name, or all if it is `None`.
    fn take_before(
        &mut self,
        connection: &Connection,
        end: Option<Name>,
        to: &mut Vec<Entry>,
    ) -> rusqlite::Result<()> {
        loop {
            let is_before = |name: Name| end.is_none_or(|end| name < end);
            while let Some(entry) = self.entries.pop_if(|entry| is_before(entry.name)) {
                to.push(entry);
            }
            let next = Name::first_of(self.chunk, self.run.bits);
            if !self.entries.is_empty() || !next.is_some_and(is_before) {
                return Ok(());
            }
            self.run.read(connection, self.chunk, &mut self.entries)?;
            self.chunk += 1;
            // Entries before that were taken by an earlier step.
            self.entries.retain(|entry| entry.name >= self.run.from);
            if !self.entries.is_sorted_by(|one, two| one.name < two.name) {
                return Err(damaged());
            }
            self.entries.reverse();
        }
    }
}

#[cfg(test)]
mod tests;
