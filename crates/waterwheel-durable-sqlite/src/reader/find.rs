//! Where is this timer, or this dead letter?

use rusqlite::{OptionalExtension, Row as SqlRow};
use waterwheel_durable_core::store::{Bucket, Dead, Handle, Id, PageLimit, Row, Scope};

use super::snapshot::Snapshot;
use crate::lsm::{KeyIndex, Sizes};
use crate::read::{self, DEAD, Handlers, dead_letter, handle, row, stored};

const SEARCH: &str = "
    SELECT id, due, failures, first_due, key, payload, starts, tag, retries, level, bucket, coalesce(far_handler, handler)
    FROM timers WHERE id = ?1";

/// A pending timer, and the bucket that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The timer.
    pub row: Row,
    /// The bucket that it is in.
    pub bucket: Bucket,
}

impl Pending {
    /// Returns the handle of the timer, which is the one that its insert returned.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.row.handle()
    }
}

/// The timer that has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The handle with which an insert with the key would be answered.
    pub handle: Handle,
    /// The timer, or `None` if it was delivered and is archived.
    pub pending: Option<Pending>,
}

pub(crate) fn by_key(
    snapshot: &Snapshot<'_>,
    handler: &str,
    key: &[u8],
) -> rusqlite::Result<Option<Keyed>> {
    let Some(number) = snapshot.handlers.number(handler) else {
        return Ok(None);
    };
    let keys = KeyIndex::read(snapshot.connection, Sizes::USUAL)?;
    let Some(holder) = keys.find(snapshot.connection, keys.name(number, key))? else {
        return Ok(None);
    };
    let handle = handle(snapshot.handlers.name(number)?, holder);
    let pending = by_handle(snapshot, &handle)?;
    Ok(Some(Keyed { handle, pending }))
}

pub(crate) fn by_handle(
    snapshot: &Snapshot<'_>,
    handle: &Handle,
) -> rusqlite::Result<Option<Pending>> {
    let found = read::timer(snapshot.connection, &snapshot.handlers, handle)?;
    Ok(found.map(|(row, bucket)| Pending { row, bucket }))
}

pub(crate) fn by_id(snapshot: &Snapshot<'_>, id: Id) -> rusqlite::Result<Option<Pending>> {
    let mut search = snapshot.prepare(SEARCH)?;
    search
        .query_row([stored(id)], |row| pending(row, &snapshot.handlers))
        .optional()
}

fn pending(from: &SqlRow<'_>, handlers: &Handlers) -> rusqlite::Result<Pending> {
    let level = read::level(from.get(9)?)?;
    Ok(Pending {
        row: row("timers", from, handlers.name(from.get(11)?)?)?,
        bucket: Bucket {
            level,
            number: from.get(10)?,
        },
    })
}

const ONE_DEAD: &str = "
    SELECT id, due, failures, first_due, key, payload, starts, tag, retries, handler, at, error FROM dead WHERE id = ?1";

pub(crate) fn dead_page(
    snapshot: &Snapshot<'_>,
    scope: Scope<'_>,
    after: Id,
    limit: PageLimit,
) -> rusqlite::Result<Vec<Dead>> {
    let mut dead = snapshot.prepare(DEAD)?;
    // No process waits for this connection, so the number of examined rows is unlimited.
    let examined = usize::MAX;
    let page = read::dead(&mut dead, &snapshot.handlers, scope, after, limit, examined)?;
    Ok(page.dead)
}

pub(crate) fn dead_by_id(snapshot: &Snapshot<'_>, id: Id) -> rusqlite::Result<Option<Dead>> {
    let mut one = snapshot.prepare(ONE_DEAD)?;
    one.query_row([stored(id)], |row| dead_letter(row, &snapshot.handlers))
        .optional()
}
