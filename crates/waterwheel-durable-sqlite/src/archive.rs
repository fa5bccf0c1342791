//! How are delivered timers stored in the file?
//!
//! A block is one row: all or a part of what one commit has archived for one handler and day. So archiving costs one entry per commit instead of one per timer,
//! and expiry deletes a few large rows. Blocks have a maximum size, because a block expires as a whole, and each of its keys is looked up and freed. An entry
//! takes some 10 bytes plus its key: numbers are written in groups of seven bits, and times and ids as differences to the previous entry.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use waterwheel_durable_core::store::{ArchiveCursor, Archived, Due, Id, Outcome};

use super::error;
use super::lsm::KeyIndex;
use super::read::stored;

const LAST: &str = "
    SELECT block FROM archive WHERE handler = ?1 AND day = ?2 ORDER BY block DESC LIMIT 1";

const BLOCKS: &str = "
    SELECT day, block, entries FROM archive
    WHERE handler = ?1 AND (day, block) >= (?2, ?3) AND day < ?4
    ORDER BY day, block";

/// The blocks that may have the record of a timer.
const WITH_ID: &str = "
    SELECT day, block, entries FROM archive WHERE handler = ?1 AND ?2 BETWEEN first_id AND last_id";

const FIRST: &str = "
    SELECT day FROM archive WHERE handler = ?1 ORDER BY day, block LIMIT 1";

/// The maximum number of entries in a block.
const MAX: u32 = 512;

/// The timers that a commit archives, by handler and day.
#[derive(Debug, Default)]
pub(crate) struct Blocks(Vec<(i64, i64, Block)>);

#[derive(Debug, Default)]
struct Block {
    count: u32,
    last: Last,
    entries: Vec<u8>,
    /// The least and the greatest id.
    ids: Option<(Id, Id)>,
}

/// The previous entry.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    id: i64,
    due: i64,
    at: i64,
}

impl Blocks {
    pub(crate) fn add(&mut self, handler: i64, archived: &Archived) {
        let day = archived.at.day();
        let is_it =
            |it: &&mut (i64, i64, Block)| (it.0, it.1) == (handler, day) && it.2.count < MAX;
        match self.0.iter_mut().find(is_it) {
            Some((_, _, block)) => block.add(archived),
            None => {
                let mut block = Block::default();
                block.add(archived);
                self.0.push((handler, day, block));
            }
        }
    }

    pub(crate) fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        for (handler, day, block) in self.0 {
            let last = connection
                .prepare_cached(LAST)?
                .query_row((handler, day), |row| row.get::<_, i64>(0))
                .optional()?;
            let number = last.map_or(0, |last| last + 1);
            let (first_id, last_id) = block.ids.unwrap_or((Id::NONE, Id::NONE));
            let sql = "INSERT INTO archive (handler, day, block, count, first_id, last_id, entries)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            connection.prepare_cached(sql)?.execute(params![
                handler,
                day,
                number,
                block.count,
                stored(first_id),
                stored(last_id),
                block.entries,
            ])?;
        }
        Ok(())
    }
}

impl Block {
    fn add(&mut self, archived: &Archived) {
        let now = Last {
            id: stored(archived.id),
            due: archived.due.as_millis(),
            at: archived.at.as_millis(),
        };
        let entries = &mut self.entries;
        write(entries, zigzag(now.id.wrapping_sub(self.last.id)));
        write(entries, zigzag(now.due.wrapping_sub(self.last.due)));
        write(entries, zigzag(now.at.wrapping_sub(self.last.at)));
        write(entries, u64::from(archived.failures));
        match &archived.key {
            None => write(entries, 0),
            Some(key) => {
                write(entries, key.len() as u64 + 1);
                entries.extend_from_slice(key);
            }
        }
        self.count += 1;
        self.last = now;
        let ids = self.ids.get_or_insert((archived.id, archived.id));
        *ids = (ids.0.min(archived.id), ids.1.max(archived.id));
    }
}

/// Decodes the archived timers of a block. Returns `None` if it is damaged.
pub(crate) fn entries(mut from: &[u8]) -> Option<Vec<Archived>> {
    let mut all = Vec::new();
    let mut last = Last::default();
    while !from.is_empty() {
        last.id = last.id.wrapping_add(unzigzag(read(&mut from)?));
        last.due = last.due.wrapping_add(unzigzag(read(&mut from)?));
        last.at = last.at.wrapping_add(unzigzag(read(&mut from)?));
        let failures = u32::try_from(read(&mut from)?).ok()?;
        let key = match read(&mut from)? {
            0 => None,
            length => {
                let (key, rest) = from.split_at_checked(usize::try_from(length - 1).ok()?)?;
                from = rest;
                Some(Arc::from(key))
            }
        };
        all.push(Archived {
            id: Id::from_stored(last.id.unsigned_abs()),
            due: Due::from_millis(last.due),
            at: Due::from_millis(last.at),
            failures,
            key,
        });
    }
    Some(all)
}

/// Encodes small signed numbers as small unsigned ones.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Writes seven bits per byte, the lowest first; the eighth bit says that more follow.
fn write(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn read(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn damaged() -> rusqlite::Error {
    error::damaged("table `archive`: a block is invalid")
}

pub(crate) fn load(
    connection: &Connection,
    handler: i64,
    after: ArchiveCursor,
    before: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(ArchiveCursor, Archived)>> {
    let mut found = Vec::new();
    let mut blocks = connection.prepare_cached(BLOCKS)?;
    let mut rows = blocks.query((handler, after.day, after.block, before))?;
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let (day, block): (i64, u32) = (row.get(0)?, row.get(1)?);
        let all = entries(row.get_ref(2)?.as_blob()?).ok_or_else(damaged)?;
        let cursors = (1..).map(|index| ArchiveCursor { day, block, index });
        let rest = cursors.zip(all).filter(|(cursor, _)| *cursor > after);
        found.extend(rest.take(limit - found.len()));
    }
    Ok(found)
}

pub(crate) fn first(connection: &Connection, handler: i64) -> rusqlite::Result<Option<i64>> {
    let mut first = connection.prepare_cached(FIRST)?;
    first.query_row([handler], |row| row.get(0)).optional()
}

/// Deletes the first blocks of earlier days, and the keys of their timers.
pub(crate) fn expire(
    connection: &Connection,
    keys: &mut KeyIndex,
    handler: i64,
    before: i64,
    limit: usize,
) -> rusqlite::Result<Outcome> {
    let mut left = limit;
    let mut is_empty = false;
    while left > 0 && !is_empty {
        let mut blocks = connection.prepare_cached(BLOCKS)?;
        let mut rows = blocks.query((handler, i64::MIN, 0, before))?;
        let Some(row) = rows.next()? else {
            is_empty = true;
            break;
        };
        let (day, block): (i64, i64) = (row.get(0)?, row.get(1)?);
        let all = entries(row.get_ref(2)?.as_blob()?).ok_or_else(damaged)?;
        drop(rows);
        for archived in &all {
            let Some(key) = &archived.key else {
                continue;
            };
            let name = keys.name(handler, key);
            let holder = keys.find(connection, name)?;
            if holder.is_some_and(|holder| holder.id == stored(archived.id)) {
                keys.free(name);
            }
        }
        let sql = "DELETE FROM archive WHERE handler = ?1 AND day = ?2 AND block = ?3";
        connection
            .prepare_cached(sql)?
            .execute((handler, day, block))?;
        left = left.saturating_sub(all.len());
    }
    Ok(Outcome::Expired {
        is_empty: is_empty || first(connection, handler)?.is_none_or(|first| first >= before),
    })
}

/// Returns a block without the key of this timer, or `None` if it has no record of it.
fn without_key(bytes: &[u8], id: i64) -> rusqlite::Result<Option<Block>> {
    let mut all = entries(bytes).ok_or_else(damaged)?;
    let record = all.iter_mut().find(|archived| stored(archived.id) == id);
    let Some(record) = record else {
        return Ok(None);
    };
    record.key = None;
    let mut block = Block::default();
    for archived in &all {
        block.add(archived);
    }
    Ok(Some(block))
}

/// Deletes the key in the record of a timer. Returns whether there is such a record.
pub(crate) fn erase_key(connection: &Connection, handler: i64, id: i64) -> rusqlite::Result<bool> {
    let mut blocks = connection.prepare_cached(WITH_ID)?;
    let mut rows = blocks.query((handler, id))?;
    while let Some(row) = rows.next()? {
        let Some(block) = without_key(row.get_ref(2)?.as_blob()?, id)? else {
            continue;
        };
        let (day, number): (i64, i64) = (row.get(0)?, row.get(1)?);
        drop(rows);
        let sql = "UPDATE archive SET entries = ?4 WHERE handler = ?1 AND day = ?2 AND block = ?3";
        let mut update = connection.prepare_cached(sql)?;
        update.execute((handler, day, number, block.entries))?;
        return Ok(true);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archived(id: u64, due: i64, at: i64, key: Option<&[u8]>) -> Archived {
        Archived {
            id: Id::from_stored(id),
            due: Due::from_millis(due),
            at: Due::from_millis(at),
            failures: id as u32,
            key: key.map(Arc::from),
        }
    }

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let all = [
            archived(1, 0, 0, None),
            archived(i64::MAX as u64, i64::MIN, i64::MAX, Some(b"")),
            archived(7, i64::MAX, -1, Some(&[0xff; 1_000])),
            archived(
                1 << 40 | 300,
                1_800_000_000_000,
                1_800_000_000_123,
                Some(b"order-17"),
            ),
        ];
        let mut block = Block::default();
        for archived in &all {
            block.add(archived);
        }
        assert_eq!(entries(&block.entries).unwrap(), all);
        assert_eq!((block.count, block.ids), (4, Some((all[0].id, all[1].id))));
        // A part of a block is damage, wherever it ends within an entry.
        for length in 1..10 {
            let part = &block.entries[..length];
            assert!(
                entries(part).is_none_or(|it| it.len() < all.len()),
                "{length}"
            );
        }
        assert!(entries(&[0x80; 20]).is_none() && entries(&[0, 0, 0, 0, 9, 1]).is_none());
    }

    #[test]
    fn an_entry_of_a_busy_second_is_short() {
        let mut block = Block::default();
        for count in 0..1_000 {
            let at = 1_800_000_000_000 + count;
            block.add(&archived(1 << 40 | count as u64, at - 2, at, None));
        }
        assert!(
            block.entries.len() < 1_000 * 8 + 30,
            "{}",
            block.entries.len()
        );
    }
}
