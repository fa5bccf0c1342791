//! What was given up?

use std::collections::HashSet;

use rusqlite::OptionalExtension;
use waterwheel_store::{Dead, Id, Most};

use super::snapshot::Snapshot;
use crate::read::{DEAD, letter, stored};

const ONE: &str = "
    SELECT id, due, failures, has_moved, key, payload, starts, handler, at, error FROM dead WHERE id = ?1";

pub(crate) fn page(
    snapshot: &Snapshot<'_>,
    of: &HashSet<i64>,
    after: Id,
    most: Most,
) -> rusqlite::Result<Vec<Dead>> {
    let mut dead = snapshot.prepare(DEAD)?;
    let mut rows = dead.query((stored(after), -1))?;
    let all = std::iter::from_fn(|| {
        loop {
            let row = match rows.next().transpose()? {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            match row.get(7) {
                Ok(handler) if !of.contains(&handler) => {}
                Ok(_) => return Some(letter(row, &snapshot.handlers)),
                Err(error) => return Some(Err(error)),
            }
        }
    });
    most.of_sized(all, |dead| dead.row.bytes() + dead.error.len())
}

pub(crate) fn one(snapshot: &Snapshot<'_>, id: Id) -> rusqlite::Result<Option<Dead>> {
    let mut one = snapshot.prepare(ONE)?;
    one.query_row([stored(id)], |row| letter(row, &snapshot.handlers))
        .optional()
}
