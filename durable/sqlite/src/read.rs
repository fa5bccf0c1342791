//! What is in the tables?

use rusqlite::types::Type;
use rusqlite::{Connection, Statement};
use std::sync::Arc;
use waterwheel_store::{Dead, Due, Id, Letters, Level, Most, Position, Row, Setting, Whose};

use super::handlers::Handlers;

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

/// A row of a query whose first columns are `id, due, failures, has_moved, key, payload, starts`.
pub(crate) fn row(from: &rusqlite::Row<'_>, handler: &Arc<str>) -> rusqlite::Result<Row> {
    Ok(Row {
        id: Id::from_stored(from.get::<_, i64>(0)?.unsigned_abs()),
        due: Due::from_millis(from.get(1)?),
        handler: Arc::clone(handler),
        failures: from.get(2)?,
        has_moved: from.get(3)?,
        key: from.get_ref(4)?.as_blob_or_null()?.map(Arc::from),
        payload: from.get_ref(5)?.as_blob()?.into(),
        starts: from.get::<_, i64>(6)?.unsigned_abs(),
    })
}

pub(crate) fn load(
    connection: &Connection,
    handlers: &Handlers,
    handler: &str,
    after: Position,
    before: i64,
    most: Most,
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
        limit(most.rows),
    );
    let mut last = after;
    most.of(load.query_map(asked, |from| {
        let row = row(from, name)?;
        let position = row.position();
        // Else it would never be found by its due time, or the next load would begin before this one has.
        if position.second != from.get::<_, i64>(7)? || position <= last {
            return Err(misplaced());
        }
        last = position;
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

/// A page of dead letters, by the statement [`DEAD`]. Of a letter that is not meant, the payload is not read.
pub(crate) fn dead(
    statement: &mut Statement<'_>,
    handlers: &Handlers,
    whose: Whose<'_>,
    after: Id,
    most: Most,
    looked_at: usize,
) -> rusqlite::Result<Letters> {
    let all = statement.query_map([stored(after)], |from| {
        let is_meant = whose.is(handlers.name(from.get(7)?)?);
        let letter = is_meant.then(|| letter(from, handlers)).transpose()?;
        let id = Id::from_stored(from.get::<_, i64>(0)?.unsigned_abs());
        Ok((id, letter))
    })?;
    Letters::of(all, after, most, looked_at)
}

/// A row of a query with the columns of [`DEAD`].
pub(crate) fn letter(from: &rusqlite::Row<'_>, handlers: &Handlers) -> rusqlite::Result<Dead> {
    Ok(Dead {
        row: row(from, handlers.name(from.get(7)?)?)?,
        at: Due::from_millis(from.get(8)?),
        error: from.get_ref(9)?.as_str()?.into(),
    })
}

pub(crate) fn misplaced() -> rusqlite::Error {
    damaged("a timer lies in a bucket of another time")
}

/// The error of a row that no store has written.
pub(crate) fn damaged(what: &str) -> rusqlite::Error {
    let what = format!("the file is damaged: {what}");
    rusqlite::Error::FromSqlConversionFailure(1, Type::Integer, what.into())
}

/// The id as SQLite has it.
pub(crate) fn stored(id: Id) -> i64 {
    i64::try_from(id.get()).unwrap_or(i64::MAX)
}

/// The starts of a row; they fit in an `i64`.
pub(crate) fn starts(row: &Row) -> i64 {
    i64::try_from(row.starts).unwrap_or(i64::MAX)
}

pub(crate) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

pub(crate) fn settings(connection: &Connection) -> rusqlite::Result<Vec<Setting>> {
    let mut settings =
        connection.prepare_cached("SELECT name, value FROM settings ORDER BY name")?;
    settings
        .query_map([], |from| {
            Ok(Setting {
                name: from.get_ref(0)?.as_str()?.into(),
                value: from.get_ref(1)?.as_blob()?.into(),
            })
        })?
        .collect()
}
