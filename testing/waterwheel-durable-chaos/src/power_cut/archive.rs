//! What must be archived, and what is? The blocks are read without the store's code.

use std::collections::BTreeMap;

use rusqlite::{Connection, Error};
use waterwheel_durable_core::store::{Due, Row};

use crate::keys::each;

/// What is archived of a handler on a day, by blocks: what one commit has archived of it is one.
type Blocks = BTreeMap<i64, Vec<Archived>>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Archive {
    days: BTreeMap<(String, i64), Blocks>,
    /// What the commit that goes on archives.
    pending: BTreeMap<(String, i64), Vec<Archived>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Archived {
    pub(super) id: i64,
    due: i64,
    at: i64,
    failures: u64,
    pub(super) key: Option<Vec<u8>>,
}

const DAY: i64 = 86_400_000;

impl Archive {
    pub(super) fn add(&mut self, row: &Row, at: Due) {
        let day = at.as_millis().div_euclid(DAY);
        let archived = Archived {
            id: row.id.get().cast_signed(),
            due: row.due.as_millis(),
            at: at.as_millis(),
            failures: u64::from(row.failures),
            key: row.key.as_deref().map(<[u8]>::to_vec),
        };
        let place = (row.handler.to_string(), day);
        self.pending.entry(place).or_default().push(archived);
    }

    pub(super) fn end_commit(&mut self) {
        for (place, block) in std::mem::take(&mut self.pending) {
            let blocks = self.days.entry(place).or_default();
            let number = blocks.keys().next_back().map_or(0, |last| last + 1);
            blocks.insert(number, block);
        }
    }

    /// Takes out the first blocks of a handler, on days before this one: so many that they have as many as this, or a few more.
    pub(super) fn expire(&mut self, handler: &str, before: i64, limit: usize) -> Vec<Archived> {
        let mut gone = Vec::new();
        while gone.len() < limit {
            let mut days = self.days.iter_mut();
            let first = days.find(|((of, day), _)| of == handler && *day < before);
            let Some((place, blocks)) = first else {
                break;
            };
            let place = place.clone();
            gone.extend(blocks.pop_first().into_iter().flat_map(|(_, block)| block));
            if blocks.is_empty() {
                self.days.remove(&place);
            }
        }
        gone
    }

    pub(super) fn len(&self) -> usize {
        let blocks = self.days.values().flat_map(Blocks::values);
        blocks.map(Vec::len).sum()
    }

    pub(super) fn read(
        connection: &Connection,
        handlers: &BTreeMap<i64, String>,
    ) -> rusqlite::Result<Archive> {
        let mut archive = Archive::default();
        let sql = "SELECT handler, day, block, count, first_id, last_id, entries FROM archive";
        each(connection, sql, |row| {
            let handler = handlers.get(&row.get(0)?).ok_or(Error::InvalidQuery)?;
            let block = block(row.get_ref(6)?.as_blob()?).ok_or(Error::InvalidQuery)?;
            let ids = || block.iter().map(|archived| archived.id);
            let found = (block.len() as i64, ids().min(), ids().max());
            if found != (row.get(3)?, row.get(4)?, row.get(5)?) {
                return Err(Error::InvalidQuery);
            }
            let place = (handler.clone(), row.get(1)?);
            let blocks = archive.days.entry(place).or_default();
            blocks.insert(row.get(2)?, block);
            Ok(())
        })?;
        Ok(archive)
    }
}

fn block(mut from: &[u8]) -> Option<Vec<Archived>> {
    let mut all = Vec::new();
    let (mut id, mut due, mut at) = (0_i64, 0_i64, 0_i64);
    while !from.is_empty() {
        id += signed(&mut from)?;
        due += signed(&mut from)?;
        at += signed(&mut from)?;
        let failures = number(&mut from)?;
        let length = number(&mut from)?;
        let key = match length {
            0 => None,
            _ => {
                let (key, rest) = from.split_at_checked(usize::try_from(length - 1).ok()?)?;
                from = rest;
                Some(key.to_vec())
            }
        };
        all.push(Archived {
            id,
            due,
            at,
            failures,
            key,
        });
    }
    Some(all)
}

/// In groups of seven bits, the lowest first. The eighth bit says that more follow.
fn number(from: &mut &[u8]) -> Option<u64> {
    let length = 1 + from.iter().position(|byte| byte & 0x80 == 0)?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    let groups = bytes.iter().rev().map(|byte| u64::from(byte & 0x7f));
    Some(groups.fold(0, |number, group| number << 7 | group))
}

/// 0, -1, 1, -2 … as 0, 1, 2, 3 …
fn signed(from: &mut &[u8]) -> Option<i64> {
    let number = number(from)?;
    let half = (number / 2).cast_signed();
    Some(if number.is_multiple_of(2) {
        half
    } else {
        !half
    })
}
