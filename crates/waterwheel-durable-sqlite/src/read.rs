//! Reads from the tables.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Statement};
use waterwheel_durable_core::store::{
    Bucket, Dead, DeadLetters, Due, Extras, Handle, Id, Level, PageLimit, PendingCursor, Row,
    RowCursor, Scope, Setting,
};

use super::error::{damaged, in_row};
use super::lsm::{Holder, KeyIndex};

pub(crate) const LOAD: &str = "
    SELECT id, due, failures, first_due, key, payload, starts, tag, retries, bucket FROM timers
    WHERE level = 0 AND handler = ?1 AND (bucket, id) > (?2, ?3) AND bucket < ?4
    ORDER BY bucket, id LIMIT ?5";

pub(crate) const LOAD_LEVEL: &str = "
    SELECT id, due, failures, first_due, key, payload, starts, tag, retries, far_handler, bucket FROM timers
    WHERE level = ?1 AND handler = 0 AND (bucket, id) > (?2, ?3) ORDER BY bucket, id LIMIT ?4";

pub(crate) const FIRST: &str = "
    SELECT bucket FROM timers WHERE level = ?1 AND handler = ?2 AND bucket >= ?3
    ORDER BY bucket, id LIMIT 1";

pub(crate) const DEAD: &str = "
    SELECT id, due, failures, first_due, key, payload, starts, tag, retries, handler, at, error FROM dead
    WHERE id > ?1 ORDER BY id";

/// The first rows in the buckets of a coarser level.
pub(crate) fn load_level(
    connection: &Connection,
    handlers: &Handlers,
    PendingCursor { bucket, id }: PendingCursor,
    limit: PageLimit,
) -> rusqlite::Result<Vec<Row>> {
    let level = bucket.level;
    let mut load = connection.prepare_cached(LOAD_LEVEL)?;
    let asked = (
        level.number(),
        bucket.number,
        stored(id),
        sql_limit(limit.rows),
    );
    limit.take(load.query_map(asked, |from| {
        let row = row("timers", from, handlers.name(from.get(9)?)?)?;
        match level.bucket(row.due).number == from.get::<_, i64>(10)? {
            true => Ok(row),
            false => Err(misplaced(row.id)),
        }
    })?)
}

/// Reads a row from a query whose first columns are `id, due, failures, first_due, key, payload, starts, tag, retries`.
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
        value.as_blob_or_null().map_err(|_| {
            let name = from.as_ref().column_name(at).unwrap_or_default();
            rusqlite::Error::InvalidColumnType(at, name.to_owned(), value.data_type())
        })
    };
    let payload = blob(5)?.ok_or_else(|| damaged("the column `payload` has no value"))?;
    let due = from.get(1)?;
    let first_due: Option<i64> = from.get(3)?;
    Ok(Row {
        id,
        due: Due::from_millis(due),
        first_due: Due::from_millis(first_due.unwrap_or(due)),
        handler: Arc::clone(handler),
        failures: from.get(2)?,
        key: blob(4)?.map(Arc::from),
        payload: payload.into(),
        starts: from.get::<_, i64>(6)?.unsigned_abs(),
        extras: Extras::new(from.get::<_, Option<Box<str>>>(7)?, blob(8)?.map(Box::from)),
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
        if cursor.second != from.get::<_, i64>(9)? || cursor <= last {
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
        let is_meant = scope.contains(handlers.name(from.get(9)?)?);
        let dead_letter = is_meant.then(|| dead_letter(from, handlers)).transpose()?;
        let id = Id::from_stored(from.get::<_, i64>(0)?.unsigned_abs());
        Ok((id, dead_letter))
    })?;
    DeadLetters::of(all, after, limit, examined)
}

/// A row of a query with the columns of [`DEAD`].
pub(crate) fn dead_letter(from: &rusqlite::Row<'_>, handlers: &Handlers) -> rusqlite::Result<Dead> {
    let row = row("dead", from, handlers.name(from.get(9)?)?)?;
    let at = in_row("dead", row.id, from.get(10))?;
    let error: String = in_row("dead", row.id, from.get(11))?;
    Ok(Dead {
        row,
        at: Due::from_millis(at),
        error: error.into(),
    })
}

/// The level with this number.
pub(crate) fn level(number: u8) -> rusqlite::Result<Level> {
    Level::from_number(number).ok_or_else(|| damaged("a timer is in a level that does not exist"))
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

/// The first due time as it is stored: null if it is the due time.
pub(crate) fn first_due(row: &Row) -> Option<i64> {
    row.has_moved().then(|| row.first_due.as_millis())
}

/// The tag and the retries of a row, if it has any.
pub(crate) fn extras(row: &Row) -> (Option<&str>, Option<&[u8]>) {
    let extras = row.extras.as_ref();
    let retries = extras.and_then(|it| it.retries.as_deref());
    (row.tag(), retries)
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

pub(crate) const AT: &str = "
    SELECT id, due, failures, first_due, key, payload, starts, tag, retries, coalesce(far_handler, handler)
    FROM timers WHERE level = ?1 AND handler = ?2 AND bucket = ?3 AND id = ?4";

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
    let waits = timer(connection, handlers, &found)?.is_some();
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

/// The timer with this handle, and the bucket that it is in.
pub(crate) fn timer(
    connection: &Connection,
    handlers: &Handlers,
    handle: &Handle,
) -> rusqlite::Result<Option<(Row, Bucket)>> {
    let Some(number) = handlers.number(&handle.handler) else {
        return Ok(None);
    };
    let mut moved = connection.prepare_cached(MOVED)?;
    let moved = moved.query_row([stored(handle.id)], |row| row.get(0));
    let due = moved.optional()?.map_or(handle.due, Due::from_millis);
    for level in [Level::Second].into_iter().chain(Level::CASCADING) {
        let (bucket, under) = match level {
            Level::Second => (level.bucket(due), number),
            _ => (level.bucket(due), 0),
        };
        let found = timer_in(connection, handlers, bucket, under, handle.id)?;
        // A coarser bucket has the timers of all handlers.
        let found = found.filter(|row| row.handler == handle.handler);
        if let Some(row) = found {
            return Ok(Some((row, bucket)));
        }
    }
    Ok(None)
}

pub(crate) const TAGGED: &str = "
    SELECT id, due, handler FROM tags WHERE tag = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

/// The handles of the timers with this tag, in order of their ids.
pub(crate) fn tagged(
    connection: &Connection,
    handlers: &Handlers,
    tag: &str,
    after: Id,
    limit: usize,
) -> rusqlite::Result<Vec<Handle>> {
    let mut tagged = connection.prepare_cached(TAGGED)?;
    let rows = tagged.query_map((tag, stored(after), sql_limit(limit)), |from| {
        Ok(Handle {
            id: Id::from_stored(from.get::<_, i64>(0)?.unsigned_abs()),
            due: Due::from_millis(from.get(1)?),
            handler: Arc::clone(handlers.name(from.get(2)?)?),
        })
    })?;
    rows.collect()
}

/// The timer with this id in a bucket. `handler` is 0 in coarser levels.
pub(crate) fn timer_in(
    connection: &Connection,
    handlers: &Handlers,
    bucket: Bucket,
    handler: i64,
    id: Id,
) -> rusqlite::Result<Option<Row>> {
    let mut at = connection.prepare_cached(AT)?;
    let place = (bucket.level.number(), handler, bucket.number, stored(id));
    at.query_row(place, |from| {
        row("timers", from, handlers.name(from.get(9)?)?)
    })
    .optional()
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

    /// The names in order of their numbers, which begin at 1.
    pub(crate) fn names(&self) -> &[Arc<str>] {
        &self.names
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
