//! What was given up?

use rusqlite::OptionalExtension;
use waterwheel_durable_core::store::{Dead, Id, PageLimit, Scope};

use super::snapshot::Snapshot;
use crate::read::{self, DEAD, dead_letter, stored};

const ONE: &str = "
    SELECT id, due, failures, has_moved, key, payload, starts, handler, at, error FROM dead WHERE id = ?1";

pub(crate) fn page(
    snapshot: &Snapshot<'_>,
    scope: Scope<'_>,
    after: Id,
    limit: PageLimit,
) -> rusqlite::Result<Vec<Dead>> {
    let mut dead = snapshot.prepare(DEAD)?;
    // No process waits for this connection.
    let examined = usize::MAX;
    let page = read::dead(&mut dead, &snapshot.handlers, scope, after, limit, examined)?;
    Ok(page.dead)
}

pub(crate) fn one(snapshot: &Snapshot<'_>, id: Id) -> rusqlite::Result<Option<Dead>> {
    let mut one = snapshot.prepare(ONE)?;
    one.query_row([stored(id)], |row| dead_letter(row, &snapshot.handlers))
        .optional()
}
