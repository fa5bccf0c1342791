//! What is in the tables?

use rusqlite::{Connection, Statement};
use std::sync::Arc;
use waterwheel_durable_core::store::{
    Dead, DeadLetters, Due, Id, Level, PageLimit, Row, RowCursor, Scope, Setting,
};

use super::handlers::Handlers;
use super::words::{damaged, in_row};

pub(crate) const LOAD: &str = "
    SELECT id, due, failures, has_moved, key, payload, starts, bucket FROM timers
    WHERE level = 0 AND handler = ?1 AND (bucket, id) > (?2, ?3) AND bucket < ?4
    ORDER BY bucket, id LIMIT ?5";

pub(crate) const FIRST: &str = "
    SELECT bucket FROM timers WHERE level = ?1 AND handler = ?2 AND bucket >= ?3
    ORDER BY bucket, id LIMIT 1";

pub(crate) const DEAD: &str = "
    SELECT id, due, failures, has_moved, key, payload, starts, handler, at, error FROM dead
    WHERE id > ?1 ORDER BY id";

/// A row of a table, by a query whose first columns are `id, due, failures, has_moved, key, payload, starts`.
pub(crate) fn row(
    table: &str,
    from: &rusqlite::Row<'_>,
    handler: &Arc<str>,
) -> rusqlite::Result<Row> {
    let id = from.get::<_, i64>(0)?.unsigned_abs();
    let id = Id::from_stored(id);
    in_row(table, id, columns(id, from, handler))
}

fn columns(id: Id, from: &rusqlite::Row<'_>, handler: &Arc<str>) -> rusqlite::Result<Row> {
    let blob = |at: usize| {
        let value = from.get_ref(at)?;
        let name = from.as_ref().column_name(at)?.to_owned();
        let found = value.data_type();
        let error = rusqlite::Error::InvalidColumnType(at, name, found);
        value.as_blob_or_null().map_err(|_| error)
    };
    let payload = blob(5)?.ok_or_else(|| damaged("the column `payload` has no value"))?;
    Ok(Row {
        id,
        due: Due::from_millis(from.get(1)?),
        handler: Arc::clone(handler),
        failures: from.get(2)?,
        has_moved: from.get(3)?,
        key: blob(4)?.map(Arc::from),
        payload: payload.into(),
        starts: from.get::<_, i64>(6)?.unsigned_abs(),
    })
}

pub(crate) fn load(
    connection: &Connection,
    handlers: &Handlers,
    handler: &str,
    after: RowCursor,
    before: i64,
    limit: PageLimit,
) -> rusqlite::Result<Vec<Row>> {
    let Some(number) = handlers.number(handler) else {
        return Ok(Vec::new());
    };
    let name = handlers.name(number)?;
    let mut load = connection.prepare_cached(LOAD)?;
    let asked = (
        number,
        after.second,
        stored(after.id),
        before,
        sql_limit(limit.rows),
    );
    let mut last = after;
    limit.take(load.query_map(asked, |from| {
        let row = row("timers", from, name)?;
        let cursor = row.cursor();
        // Else it would never be found by its due time, or the next load would begin before this one has.
        if cursor.second != from.get::<_, i64>(7)? || cursor <= last {
            return Err(misplaced(row.id));
        }
        last = cursor;
        Ok(row)
    })?)
}

pub(crate) fn first(
    connection: &Connection,
    level: Level,
    handler: i64,
    from: i64,
) -> rusqlite::Result<Option<i64>> {
    let mut first = connection.prepare_cached(FIRST)?;
    let mut rows = first.query((level.number(), handler, from))?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

/// A page of dead letters, by the statement [`DEAD`]. Of a dead letter that is not meant, the payload is not read.
pub(crate) fn dead(
    statement: &mut Statement<'_>,
    handlers: &Handlers,
    scope: Scope<'_>,
    after: Id,
    limit: PageLimit,
    examined: usize,
) -> rusqlite::Result<DeadLetters> {
    let all = statement.query_map([stored(after)], |from| {
        let is_meant = scope.contains(handlers.name(from.get(7)?)?);
        let dead_letter = is_meant.then(|| dead_letter(from, handlers)).transpose()?;
        let id = Id::from_stored(from.get::<_, i64>(0)?.unsigned_abs());
        Ok((id, dead_letter))
    })?;
    DeadLetters::of(all, after, limit, examined)
}

/// A row of a query with the columns of [`DEAD`].
pub(crate) fn dead_letter(from: &rusqlite::Row<'_>, handlers: &Handlers) -> rusqlite::Result<Dead> {
    let row = row("dead", from, handlers.name(from.get(7)?)?)?;
    let at = in_row("dead", row.id, from.get(8))?;
    let error: String = in_row("dead", row.id, from.get(9))?;
    Ok(Dead {
        row,
        at: Due::from_millis(at),
        error: error.into(),
    })
}

pub(crate) fn misplaced(id: Id) -> rusqlite::Error {
    damaged(format!(
        "table `timers`, row {id}: it is in a bucket of another time"
    ))
}

/// The id as SQLite has it.
pub(crate) fn stored(id: Id) -> i64 {
    i64::try_from(id.get()).unwrap_or(i64::MAX)
}

/// The starts of a row; they fit in an `i64`.
pub(crate) fn starts(row: &Row) -> i64 {
    i64::try_from(row.starts).unwrap_or(i64::MAX)
}

pub(crate) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(crate) fn settings(connection: &Connection) -> rusqlite::Result<Vec<Setting>> {
    let mut settings =
        connection.prepare_cached("SELECT name, value FROM settings ORDER BY name")?;
    settings
        .query_map([], |from| {
            let name: String = in_row("settings", "without a name", from.get(0))?;
            let value: Vec<u8> = in_row("settings", &name, from.get(1))?;
            Ok(Setting {
                name: name.into(),
                value: value.into(),
            })
        })?
        .collect()
}
