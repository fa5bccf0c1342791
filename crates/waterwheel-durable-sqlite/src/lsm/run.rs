//! Where is a part of the index stored in the file, and which keys are certainly not in it?
//!
//! A new key is in none of the runs, and most lookups are for new keys. So each run has a [Bloom filter](https://doi.org/10.1145/362686.362692) in memory, one
//! to two bytes per entry, with which about one lookup in a hundred reads the run. The filter of a chunk takes eight cache lines, and a name is in one of them.
//! It is also in the file, in `key_filters`, one row per chunk, and all of them are read when the file is opened: 17 MB for 10 million keys.

use rusqlite::{Connection, OptionalExtension, params};

use super::entry::{Entry, Holder, Name, damaged, entries, find};
use crate::error::{self, in_row};

/// The maximum average number of entries in a chunk.
const MAX_IN_CHUNK: u64 = 512;

/// The maximum number of chunks in a run, as a power of two. A file with more, whose filters would take two gigabytes, was not written by a store.
pub(crate) const MAX_BITS: u32 = 22;

const CHUNK: &str = "SELECT entries FROM key_chunks WHERE number = ?1";

/// Entries in order of their names, in 2 to the power of `bits` chunks by the first bits of the names. A run does not change, except that a merge moves its
/// entries into another run, the least names first.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) number: i64,
    /// The age of the run: if two runs have entries of the same name, that of the younger one is valid.
    pub(super) age: i64,
    pub(super) bits: u32,
    pub(super) entries: u64,
    /// The number of entries that say that a key is free.
    pub(super) freed: u64,
    /// The run that it is being merged into.
    pub(super) into: Option<i64>,
    /// The number of chunks written: all, unless others are being merged into this run.
    pub(super) done: u32,
    /// The entries of names before this one have been moved on.
    pub(super) from: Name,
    pub(super) filter: Filter,
}

impl Run {
    /// A run for this many entries, with no chunk yet.
    pub(super) fn new(number: i64, age: i64, entries: u64) -> Run {
        let chunks = entries.div_ceil(MAX_IN_CHUNK).next_power_of_two();
        let bits = chunks.trailing_zeros().min(MAX_BITS);
        Run {
            number,
            age,
            bits,
            entries: 0,
            freed: 0,
            into: None,
            done: 0,
            from: Name(0),
            filter: Filter::new(1 << bits),
        }
    }

    pub(super) fn read_all(connection: &Connection) -> rusqlite::Result<Vec<Run>> {
        let sql = "SELECT number, age, bits, entries, freed, merged_into, done FROM key_runs
            ORDER BY age DESC, number";
        let mut runs = connection.prepare(sql)?;
        let runs = runs.query_map([], |row| {
            let number: i64 = row.get(0)?;
            let bits: u32 = in_row("key_runs", number, row.get(2))?;
            if bits > MAX_BITS {
                return Err(error::damaged(format!(
                    "table `key_runs`, row {number}: the column `bits` has {bits}, which is out of range"
                )));
            }
            Ok(Run {
                number,
                age: row.get(1)?,
                bits,
                entries: row.get::<_, i64>(3)?.unsigned_abs(),
                freed: row.get::<_, i64>(4)?.unsigned_abs(),
                into: row.get(5)?,
                done: row.get(6)?,
                from: Name(0),
                filter: Filter::new(1 << bits),
            })
        })?;
        let mut runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
        let mut filters = connection.prepare("SELECT number, filter FROM key_filters")?;
        let mut rows = filters.query([])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let run = runs.iter_mut().find(|run| run.number == number >> 32);
            let run = run.ok_or_else(damaged)?;
            run.filter.read(number as u32, row.get_ref(1)?.as_blob()?)?;
        }
        Ok(runs)
    }

    /// Writes the state of the run.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO key_runs
            (number, age, bits, entries, freed, merged_into, done)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        connection.prepare_cached(sql)?.execute(params![
            self.number,
            self.age,
            self.bits,
            self.entries.cast_signed(),
            self.freed.cast_signed(),
            self.into,
            self.done,
        ])?;
        Ok(())
    }

    /// The end of the written chunks, or `None` if all are written.
    pub(super) fn end(&self) -> Option<Name> {
        Name::first_of(self.done, self.bits)
    }

    /// Finds a name.
    pub(super) fn find(
        &self,
        connection: &Connection,
        name: Name,
    ) -> rusqlite::Result<Option<Holder>> {
        if !self.may_have(name) {
            return Ok(None);
        }
        let mut read = connection.prepare_cached(CHUNK)?;
        let mut rows = read.query([self.row_of(name.chunk(self.bits))])?;
        match rows.next()? {
            Some(row) => find(row.get_ref(0)?.as_blob()?, name),
            None => Err(damaged()),
        }
    }

    /// Whether the run may have an entry of a name, according to the filter.
    pub(super) fn may_have(&self, name: Name) -> bool {
        let is_here = self.from <= name && self.end().is_none_or(|end| name < end);
        is_here && self.filter.may_have(name.chunk(self.bits), name)
    }

    fn row_of(&self, chunk: u32) -> i64 {
        self.number << 32 | i64::from(chunk)
    }

    /// Reads a chunk.
    pub(super) fn read(
        &self,
        connection: &Connection,
        chunk: u32,
        to: &mut Vec<Entry>,
    ) -> rusqlite::Result<()> {
        let mut read = connection.prepare_cached(CHUNK)?;
        let found = read.query_row([self.row_of(chunk)], |row| {
            to.extend(entries(row.get_ref(0)?.as_blob()?)?);
            Ok(())
        });
        found.optional()?;
        Ok(())
    }

    /// Writes the next chunk.
    pub(super) fn append(
        &mut self,
        connection: &Connection,
        entries: &[Entry],
    ) -> rusqlite::Result<()> {
        let chunk = self.done;
        let names = entries.iter().map(|entry| entry.name);
        self.filter.set(chunk, names);
        if !entries.is_empty() {
            let mut blob = Vec::new();
            entries.iter().for_each(|entry| entry.write(&mut blob));
            let number = self.row_of(chunk);
            let sql = "INSERT INTO key_chunks (number, entries) VALUES (?1, ?2)";
            connection.prepare_cached(sql)?.execute((number, blob))?;
            let sql = "INSERT INTO key_filters (number, filter) VALUES (?1, ?2)";
            let filter = self.filter.write(chunk);
            connection.prepare_cached(sql)?.execute((number, filter))?;
        }
        self.entries += entries.len() as u64;
        self.freed += entries.iter().filter(|entry| entry.is_free()).count() as u64;
        self.done += 1;
        Ok(())
    }

    /// Deletes the chunks that have only names before this one, or all chunks and the run itself if it is `None`.
    pub(super) fn delete_before(
        &self,
        connection: &Connection,
        end: Option<Name>,
    ) -> rusqlite::Result<()> {
        let first = self.row_of(0);
        let rest = match end {
            Some(end) => self.row_of(end.chunk(self.bits)),
            None => first + (1 << 32),
        };
        for sql in [
            "DELETE FROM key_chunks WHERE number >= ?1 AND number < ?2",
            "DELETE FROM key_filters WHERE number >= ?1 AND number < ?2",
        ] {
            connection.prepare_cached(sql)?.execute((first, rest))?;
        }
        if end.is_none() {
            let sql = "DELETE FROM key_runs WHERE number = ?1";
            connection.prepare_cached(sql)?.execute([self.number])?;
        }
        Ok(())
    }
}

/// The number of words in the filter of a chunk: 512 bytes.
const WORDS: usize = 64;
const LINE_WORDS: usize = 8;
/// The number of bits set in each line of 512.
const BITS: u32 = 6;

/// The filter over all chunks of a run.
#[derive(Debug)]
pub(super) struct Filter(Vec<u64>);

impl Filter {
    /// A filter of chunks that contain nothing.
    pub(super) fn new(chunks: usize) -> Filter {
        Filter(vec![0; chunks * WORDS])
    }

    /// Whether a chunk may have an entry of this name.
    pub(super) fn may_have(&self, chunk: u32, name: Name) -> bool {
        let line = self.0.get(line(chunk, name)..).unwrap_or_default();
        bits(name).all(|(word, mask)| line.get(word).is_none_or(|word| word & mask != 0))
    }

    /// Makes the filter of a chunk with these names.
    pub(super) fn set(&mut self, chunk: u32, names: impl Iterator<Item = Name>) {
        self.of(chunk).fill(0);
        for name in names {
            let line = self.0.get_mut(line(chunk, name)..).unwrap_or_default();
            for (word, mask) in bits(name) {
                if let Some(word) = line.get_mut(word) {
                    *word |= mask;
                }
            }
        }
    }

    /// Returns the filter of a chunk in the form that is stored in the file.
    pub(super) fn write(&mut self, chunk: u32) -> Vec<u8> {
        let words = self.of(chunk).iter();
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Takes the filter of a chunk from the file.
    pub(super) fn read(&mut self, chunk: u32, from: &[u8]) -> rusqlite::Result<()> {
        let (words, rest) = from.as_chunks();
        let to = self.of(chunk);
        if to.len() != words.len() || !rest.is_empty() {
            return Err(damaged());
        }
        for (to, word) in to.iter_mut().zip(words) {
            *to = u64::from_le_bytes(*word);
        }
        Ok(())
    }

    fn of(&mut self, chunk: u32) -> &mut [u64] {
        let first = chunk as usize * WORDS;
        self.0.get_mut(first..first + WORDS).unwrap_or_default()
    }
}

/// The start of the line of a name. The highest bits of names determine the chunk, so the lowest are used here.
fn line(chunk: u32, name: Name) -> usize {
    let line = name.0 as usize % (WORDS / LINE_WORDS);
    chunk as usize * WORDS + line * LINE_WORDS
}

/// The bits of a name in its line: words and masks.
fn bits(name: Name) -> impl Iterator<Item = (usize, u64)> {
    let rest = name.0 as u64 >> 3;
    (0..BITS).map(move |at| {
        let bit = rest >> (9 * at) & 511;
        (bit as usize / 64, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_chunk_has_is_never_ruled_out_and_most_else_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut names = |count| -> Vec<Name> {
            (0..count)
                .map(|_| Name(random.u128(..) & u128::MAX >> 2 | 1 << 126))
                .collect()
        };
        let mut filter = Filter::new(4);
        let inside = names(512);
        filter.set(1, inside.iter().copied());
        assert!(inside.iter().all(|name| filter.may_have(1, *name)));
        let others = names(100_000);
        let wrong = others.iter().filter(|name| filter.may_have(1, **name));
        let wrong = wrong.count();
        println!("{wrong} of 100 000 are not ruled out");
        assert!(wrong < 5_000, "{wrong} of 100 000");
        for chunk in [0, 2, 3] {
            assert!(!inside.iter().any(|name| filter.may_have(chunk, *name)));
        }
        let blob = filter.write(1);
        let mut other = Filter::new(4);
        other.read(3, &blob).unwrap();
        assert!(inside.iter().all(|name| other.may_have(3, *name)));
        assert_eq!(other.write(3), blob);
        for wrong in [&blob[1..], &blob[8..], &[]] {
            assert!(other.read(3, wrong).is_err());
        }
        assert!(other.read(4, &blob).is_err());
        // The entries of a step that was rolled back do not stay.
        other.set(3, std::iter::empty());
        assert!(!inside.iter().any(|name| other.may_have(3, *name)));
    }
}
