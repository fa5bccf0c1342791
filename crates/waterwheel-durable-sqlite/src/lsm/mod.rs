//! Which timer has a business key?
//!
//! Keys are random. A table in order of the keys changes a page of its own for nearly each insert, and each of these pages is written twice, to the WAL and to
//! the file. So the index is written in order of time and sorted step by step, as in a [log-structured merge tree](https://doi.org/10.1007/s002360050048):
//!
//! - What the commits since then have changed is **fresh**: it is in memory, in a map, and in the file, in `key_changes`, a row a commit, to be read as the file
//!   is opened.
//! - When there is much of it, it is written in order, as a [run]. A run does not change.
//! - When there are four runs of about the same size, they are [merged](merge) into one, step by step, each a transaction of its own.
//!
//! A lookup asks what is fresh and then the runs, the youngest first, and the first answer holds: the timer that has the key, or that the key is free. A
//! filter in memory rules most runs out. All is found by the [name](Name) of a key.
//!
//! | file | question |
//! |---|---|
//! | `entry` | what is said of a key, by which name, and how does that lie in the file? |
//! | `run` | where does it lie, and what is certainly not in a run? |
//! | `merge` | which runs become one, and how? |

mod entry;
mod merge;
mod run;

use std::collections::HashMap;

use rusqlite::Connection;

use crate::meta::read_meta;
use entry::{Entry, Secret, entries};
pub(crate) use entry::{Holder, Name};
use merge::Step;
pub(crate) use run::MAX_BITS;
use run::{Filter, Run};

/// How much is fresh at most, and how much a step merges: in entries.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// So many changes are written as a run.
    pub fresh: usize,
    /// So many are merged in a step at least, about.
    pub step: u64,
}

impl Sizes {
    /// 64 K entries are 2 MB in the file, and some 5 MB in memory.
    pub const USUAL: Sizes = Sizes {
        fresh: 65_536,
        step: 8_192,
    };
}

/// So many entries are merged for each that is changed: more than the four powers of four from 64 K to 16 M, by each of which each entry is merged once.
const MERGED_EACH: u64 = 6;

/// So many are merged for each step of a commit that changes none. A merge that is under way ends beside such commits, too: after ten million keys had expired, one
/// stood still for as long as others inserted, and the file was 1.8 times as long as before.
const MERGED_BESIDE: u64 = 4;

/// The index: see the [module](self).
#[derive(Debug)]
pub(crate) struct KeyIndex {
    secret: Secret,
    sizes: Sizes,
    fresh: HashMap<Name, Holder>,
    /// How many changes `key_changes` has.
    changes: usize,
    /// The youngest first.
    runs: Vec<Run>,
    /// What this transaction has changed, in order, and what the map had of it.
    changed: Vec<(Entry, Option<Holder>)>,
    /// How many steps this transaction has.
    steps: u64,
    /// What this transaction has merged or written.
    step: Option<Step>,
    /// How many entries are to be merged for what was changed.
    owed: u64,
    /// How many of them at most in a step.
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

    /// The name of a key of the handler with this number.
    pub(crate) fn name(&self, handler: i64, key: &[u8]) -> Name {
        self.secret.name(handler, key)
    }

    /// The timer that has a key.
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
        // Where no run has an older entry, nothing has to hide it.
        let before = match self.runs.iter().any(|run| run.may_have(name)) {
            true => self.fresh.insert(name, holder),
            false => self.fresh.remove(&name),
        };
        self.changed.push((Entry { name, holder }, before));
    }

    /// Writes what the transaction has changed, which has so many steps.
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

    /// The transaction was committed.
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
            // Else it would fall behind if all commits are so large.
            None => self.limit = (2 * owed).max(4 * self.sizes.step),
        }
    }

    /// The transaction was rolled back.
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

/// The entries of a row. The timer is `None` where a key is free.
pub(crate) fn read_entries(blob: &[u8]) -> rusqlite::Result<Vec<(Name, Option<Holder>)>> {
    let all = entries(blob)?;
    let all = all.map(|entry| (entry.name, Some(entry.holder).filter(|_| !entry.is_free())));
    Ok(all.collect())
}

/// Whether a row can be a filter: it is as long as one.
pub(crate) fn is_filter(row: &[u8]) -> bool {
    Filter::new(1).read(0, row).is_ok()
}

impl KeyIndex {
    /// Whether the entries of a chunk lie where they are looked for. What is wrong if they do not.
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

#[cfg(test)]
mod tests;
