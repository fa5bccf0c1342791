//! Reads from the tables.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Statement};
use waterwheel_durable_core::store::{
    Dead, DeadLetters, Due, Handle, Id, Level, PageLimit, Row, RowCursor, Scope, Setting,
};

use super::error::{damaged, in_row};
use super::lsm::{Holder, KeyIndex};

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

/// Reads a row from a query whose first columns are `id, due, failures, has_moved, key, payload, starts`.
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
        // Otherwise it would never be found by its due time, or the next load would begin before this one.
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

/// A page of dead letters, by the statement [`DEAD`]. The payload of a dead letter outside of the scope is not read.
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

/// The id as SQLite stores it.
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

pub(crate) const MOVED: &str = "SELECT due FROM moved WHERE id = ?1";

const IS_THERE: &str = "
    SELECT 1 FROM timers WHERE level = ?1 AND handler = ?2 AND bucket = ?3 AND id = ?4
    AND far_handler IS ?5";

/// The timer of a handler that has a key, if it was not delivered: an archived timer keeps its key.
pub(crate) fn find_waiting(
    connection: &Connection,
    handlers: &Handlers,
    keys: &KeyIndex,
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

/// The handle of the timer that has a key of this handler.
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
        // A coarser bucket has the rows of all handlers.
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

/// The table `handlers`, in memory. Numbers begin at 1.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    numbers: HashMap<Arc<str>, i64>,
    /// The name of number `n` at `n - 1`.
    names: Vec<Arc<str>>,
}

impl Handlers {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Handlers> {
        let mut handlers = Handlers::default();
        let sql = "SELECT number, name FROM handlers ORDER BY number";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let name: String = in_row("handlers", number, row.get(1))?;
            if number != handlers.next() {
                let next = handlers.next();
                return Err(damaged(format!(
                    "table `handlers`: the row {next} is missing, and there is a row {number}"
                )));
            }
            handlers.add(name.into());
        }
        Ok(handlers)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn name(&self, number: i64) -> rusqlite::Result<&Arc<str>> {
        let at = number
            .checked_sub(1)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.names.get(at))
            .ok_or_else(|| damaged(format!("the table `handlers` has no number {number}")))
    }

    pub(crate) fn all(&self) -> Vec<Arc<str>> {
        let mut names = self.names.clone();
        names.sort_unstable();
        names
    }

    /// Returns the number of a handler, which is written if it is new.
    pub(crate) fn intern(
        &mut self,
        name: &Arc<str>,
        connection: &Connection,
    ) -> rusqlite::Result<i64> {
        if let Some(number) = self.number(name) {
            return Ok(number);
        }
        let number = self.next();
        let sql = "INSERT INTO handlers (number, name) VALUES (?1, ?2)";
        let mut insert: CachedStatement<'_> = connection.prepare_cached(sql)?;
        insert.execute((number, &**name))?;
        self.add(Arc::clone(name));
        Ok(number)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Forgets the handlers that a rolled back transaction has added.
    pub(crate) fn truncate(&mut self, len: usize) {
        for name in self.names.drain(len.min(self.names.len())..) {
            self.numbers.remove(&name);
        }
    }

    fn add(&mut self, name: Arc<str>) {
        self.numbers.insert(Arc::clone(&name), self.next());
        self.names.push(name);
    }

    fn next(&self) -> i64 {
        self.names.len() as i64 + 1
    }
}
