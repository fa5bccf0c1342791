//! Which timer has a key, and does it wait?

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use waterwheel_durable_core::store::{Due, Handle, Id, Level};

use super::handlers::Handlers;
use super::keys::{Holder, Keys};
use super::read::stored;

pub(crate) const MOVED: &str = "SELECT due FROM moved WHERE id = ?1";

const IS_THERE: &str = "
    SELECT 1 FROM timers WHERE level = ?1 AND handler = ?2 AND bucket = ?3 AND id = ?4
    AND far_handler IS ?5";

/// The timer of a handler that has a key, if it has not been delivered: the key of one that is archived stays taken.
pub(crate) fn waiting(
    connection: &Connection,
    handlers: &Handlers,
    keys: &Keys,
    handler: &str,
    key: &[u8],
) -> rusqlite::Result<Option<Handle>> {
    let Some(number) = handlers.number(handler) else {
        return Ok(None);
    };
    let Some(holder) = keys.find(connection, keys.name(number, key))? else {
        return Ok(None);
    };
    let found = handle(handlers.name(number)?, holder);
    let waits = is_there(connection, number, &found)?;
    Ok(waits.then_some(found))
}

/// What names the timer that has a key of this handler.
pub(crate) fn handle(handler: &Arc<str>, Holder { id, due }: Holder) -> Handle {
    Handle {
        id: Id::from_stored(id.unsigned_abs()),
        due: Due::from_millis(due),
        handler: Arc::clone(handler),
    }
}

fn is_there(connection: &Connection, number: i64, handle: &Handle) -> rusqlite::Result<bool> {
    let mut moved = connection.prepare_cached(MOVED)?;
    let moved = moved.query_row([stored(handle.id)], |row| row.get(0));
    let due = moved.optional()?.map_or(handle.due, Due::from_millis);
    let mut is_there = connection.prepare_cached(IS_THERE)?;
    for level in [Level::Second].into_iter().chain(Level::CASCADING) {
        // A far bucket has rows of all handlers.
        let (under, far) = match level {
            Level::Second => (number, None),
            _ => (0, Some(number)),
        };
        let bucket = level.bucket(due).number;
        if is_there.exists((level.number(), under, bucket, stored(handle.id), far))? {
            return Ok(true);
        }
    }
    Ok(false)
}
