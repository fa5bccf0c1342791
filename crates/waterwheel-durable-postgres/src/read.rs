//! Reads from the tables.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use tokio_postgres::Row as Columns;
use waterwheel_durable_core::store::{
    ArchiveCursor, Archived, Bucket, Counts, Dead, DeadCount, DeadLetters, Due, Extras, Handle,
    HandlePage, Id, Level, PageLimit, PendingCount, PendingCursor, Row, RowCursor, Scope, Setting,
};

use crate::connection::Connection;
use crate::error::{Error, get};
use crate::names::Table;
use crate::protocol::Drawn;
use crate::statement::Statement;

/// The columns of a row.
pub(crate) const ROW: &str =
    "id, due, first_due, failures, starts, key, payload, tag, retries, handler";

/// The size of a row in bytes, as [`Row::bytes`] says.
pub(crate) const SIZE: &str = "
    octet_length(payload) + coalesce(octet_length(key), 0) + coalesce(octet_length(tag), 0) + coalesce(octet_length(retries), 0)";

/// An id as it is stored.
pub(crate) fn stored(id: Id) -> i64 {
    i64::try_from(id.get()).unwrap_or(i64::MAX)
}

/// A number of rows or bytes.
pub(crate) fn bytes(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn id(from: &Columns, at: usize) -> Result<Id, Error> {
    Ok(Id::from_stored(get::<i64>(from, at)?.cast_unsigned()))
}

/// Reads the columns [`ROW`].
pub(crate) fn row(from: &Columns, names: &Table) -> Result<Row, Error> {
    let (due, first_due): (i64, i64) = (get(from, 1)?, get(from, 2)?);
    let failures: i64 = get(from, 3)?;
    let (key, payload): (Option<&[u8]>, &[u8]) = (get(from, 5)?, get(from, 6)?);
    let (tag, retries): (Option<&str>, Option<&[u8]>) = (get(from, 7)?, get(from, 8)?);
    Ok(Row {
        id: id(from, 0)?,
        due: Due::from_millis(due),
        first_due: Due::from_millis(first_due),
        handler: names.name(get(from, 9)?)?,
        failures: u32::try_from(failures).unwrap_or(u32::MAX),
        starts: get::<i64>(from, 4)?.cast_unsigned(),
        key: key.map(Arc::from),
        payload: payload.into(),
        extras: Extras::new(tag.map(Box::from), retries.map(Box::from)),
    })
}

static HANDED_OVER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ROW} FROM waterwheel.timers WHERE partition = $1 AND id = ANY ($2) ORDER BY id"
    )
});

static LOAD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ROW} FROM (
            SELECT *, sum(size) OVER (ORDER BY bucket, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS size_before FROM (
                SELECT *, {SIZE} AS size FROM waterwheel.timers
                WHERE partition = $1 AND handler = $2 AND level = 0 AND (bucket, id) > ($3, $4) AND bucket < $5
                ORDER BY bucket, id LIMIT $6
            ) AS first
        ) AS sized WHERE size_before IS NULL OR size_before < $7 ORDER BY bucket, id"
    )
});

static LOAD_LEVEL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ROW} FROM (
            SELECT *, sum(size) OVER (ORDER BY bucket, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS size_before FROM (
                SELECT *, {SIZE} AS size FROM waterwheel.timers
                WHERE partition = $1 AND level > 0 AND level = $2 AND (bucket, id) > ($3, $4)
                ORDER BY bucket, id LIMIT $5
            ) AS first
        ) AS sized WHERE size_before IS NULL OR size_before < $6 ORDER BY bucket, id"
    )
});

const FIRST_SECOND: &str = "
    SELECT bucket FROM waterwheel.timers WHERE partition = $1 AND handler = $2 AND level = 0 AND bucket >= $3
    ORDER BY bucket, id LIMIT 1";

const FIRST_BUCKET: &str = "
    SELECT bucket FROM waterwheel.timers WHERE partition = $1 AND level > 0 AND level = $2
    ORDER BY bucket, id LIMIT 1";

const FIND: &str = "
    SELECT it.id, it.first_due FROM waterwheel.keys it
    WHERE it.partition = $1 AND it.handler = $2 AND it.name = waterwheel.key_name($3)
        AND EXISTS (SELECT FROM waterwheel.timers WHERE timers.id = it.id)";

static GET: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {ROW} FROM waterwheel.timers WHERE id = $2 AND partition = $1 AND handler = $3")
});

/// Each handler's seconds, and each coarser level, are in order already.
const HANDLES: &str = "
    SELECT part.level, it.bucket, it.id, it.handler, it.first_due
    FROM unnest($2::smallint[], $3::integer[], $4::bigint[], $5::bigint[]) AS part (level, handler, bucket, id),
    LATERAL (
        (SELECT bucket, id, handler, first_due FROM waterwheel.timers
        WHERE part.level = 0 AND partition = $1 AND level = 0 AND handler = part.handler AND (bucket, id) > (part.bucket, part.id)
        ORDER BY bucket, id LIMIT $6)
        UNION ALL
        (SELECT bucket, id, handler, first_due FROM waterwheel.timers
        WHERE part.level > 0 AND partition = $1 AND level > 0 AND level = part.level AND (bucket, id) > (part.bucket, part.id)
        ORDER BY bucket, id LIMIT $6)
    ) AS it";

const EXAMINE_DEAD: &str = "
    SELECT id, handler FROM waterwheel.dead
    WHERE (partition, id) > ($1, $2) AND partition <= $1 ORDER BY partition, id LIMIT $3";

static DEAD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ROW}, at, error FROM (
            SELECT *, sum(size) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS size_before FROM (
                SELECT *, octet_length(error) + {SIZE} AS size FROM waterwheel.dead
                WHERE partition = $1 AND id = ANY ($2) AND id >= $5 AND id <= $6 ORDER BY id LIMIT $3
            ) AS first
        ) AS sized WHERE size_before IS NULL OR size_before < $4 ORDER BY id"
    )
});

const TAGGED: &str = "
    SELECT id, first_due, handler FROM waterwheel.timers
    WHERE partition = $1 AND tag IS NOT NULL AND (tag, id) > ($2, $3) AND tag <= $2 ORDER BY tag, id LIMIT $4";

const ARCHIVED: &str = "
    SELECT day, block, index, id, due, at, failures, key FROM waterwheel.archive
    WHERE partition = $1 AND handler = $2 AND (day, block, index) > ($3, $4, $5) AND day < $6
    ORDER BY day, block, index LIMIT $7";

const FIRST_ARCHIVED: &str = "
    SELECT day FROM waterwheel.archive WHERE partition = $1 AND handler = $2 ORDER BY day, block, index LIMIT 1";

const SETTINGS: &str = "
    SELECT name, value FROM waterwheel.settings WHERE partition = $1 ORDER BY name COLLATE \"C\"";

const PENDING_COUNTS: &str = "
    SELECT handler, level, bucket, sum(count)::bigint FROM (
        SELECT handler, level, bucket, count FROM waterwheel.pending_counts WHERE partition = $1
        UNION ALL SELECT handler, level, bucket, count FROM waterwheel.pending_changes WHERE partition = $1
    ) AS it GROUP BY handler, level, bucket HAVING sum(count) <> 0";

const DEAD_COUNTS: &str = "
    SELECT handler, kind, sum(count)::bigint FROM (
        SELECT handler, kind, count FROM waterwheel.dead_counts WHERE partition = $1
        UNION ALL SELECT handler, kind, count FROM waterwheel.dead_changes WHERE partition = $1
    ) AS it GROUP BY handler, kind HAVING sum(count) <> 0";

/// The number of pending timers and dead letters.
const ROWS: &str = "
    SELECT coalesce(sum(count), 0)::bigint FROM (
        SELECT count FROM waterwheel.pending_counts WHERE partition = $1
        UNION ALL SELECT count FROM waterwheel.pending_changes WHERE partition = $1
        UNION ALL SELECT count FROM waterwheel.dead_counts WHERE partition = $1
        UNION ALL SELECT count FROM waterwheel.dead_changes WHERE partition = $1
    ) AS it";

/// Reads of a partition.
pub(crate) struct Reads<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) partition: u8,
}

impl Reads<'_> {
    fn statement(&self, sql: &'static str) -> Statement<'static> {
        Statement::new(sql).small(self.partition)
    }

    fn number(&self, handler: &str) -> i32 {
        self.connection.names.lock().number(handler)
    }

    async fn rows<T>(
        &mut self,
        statement: Statement<'_>,
        read: impl Fn(&Columns, &Table) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let rows = self.connection.transaction(vec![statement]).await?;
        let names = self.connection.names.lock();
        rows.iter().map(|row| read(row, &names)).collect()
    }

    /// Reads the names of all handlers.
    pub(crate) async fn names(&mut self) -> Result<Table, Error> {
        let sql =
            "SELECT number, name FROM waterwheel.handlers WHERE partition = $1 ORDER BY number";
        let rows = self
            .connection
            .transaction(vec![self.statement(sql)])
            .await?;
        let mut table = Table::default();
        for row in &rows {
            let (number, name): (i32, &str) = (get(row, 0)?, get(row, 1)?);
            if table.assign(&name.into()) != number {
                let message = format!("the table `handlers` lacks the number before {number}");
                return Err(Error::Unexpected(message.into()));
            }
        }
        table.set_all_stored();
        Ok(table)
    }

    pub(crate) async fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, Error> {
        let load = self.statement(&LOAD).int(self.number(handler));
        let load = load.big(after.second).big(stored(after.id)).big(before);
        let load = load.big(bytes(limit.rows)).big(bytes(limit.bytes));
        self.rows(load, row).await
    }

    pub(crate) async fn load_level(
        &mut self,
        after: PendingCursor,
        limit: PageLimit,
    ) -> Result<Vec<Row>, Error> {
        let load = self.statement(&LOAD_LEVEL);
        let load = load.small(after.bucket.level.number());
        let load = load.big(after.bucket.number).big(stored(after.id));
        let load = load.big(bytes(limit.rows)).big(bytes(limit.bytes));
        self.rows(load, row).await
    }

    /// Reads the timers with these ids, whose handlers have been called.
    pub(crate) async fn handed_over(&mut self, ids: &[Id]) -> Result<Vec<Row>, Error> {
        let ids = ids.iter().map(|id| stored(*id)).collect();
        self.rows(self.statement(&HANDED_OVER).bigs(ids), row).await
    }

    pub(crate) async fn first_second(
        &mut self,
        handler: &str,
        from: i64,
    ) -> Result<Option<i64>, Error> {
        let first = self
            .statement(FIRST_SECOND)
            .int(self.number(handler))
            .big(from);
        Ok(self.rows(first, |row, _| get(row, 0)).await?.pop())
    }

    pub(crate) async fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, Error> {
        let first = self.statement(FIRST_BUCKET).small(level.number());
        Ok(self.rows(first, |row, _| get(row, 0)).await?.pop())
    }

    pub(crate) async fn find(
        &mut self,
        handler: &str,
        key: &[u8],
    ) -> Result<Option<Handle>, Error> {
        let number = self.number(handler);
        let find = self.statement(FIND).int(number).bytes(key);
        let found = self.rows(find, |row, names| handle(row, 0, names.name(number)?));
        Ok(found.await?.pop())
    }

    pub(crate) async fn get(&mut self, handle: &Handle) -> Result<Option<Row>, Error> {
        let number = self.number(&handle.handler);
        let get = self.statement(&GET).big(stored(handle.id)).int(number);
        Ok(self.rows(get, row).await?.pop())
    }

    pub(crate) async fn handles(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, Error> {
        let numbers: Vec<i32> = {
            let names = self.connection.names.lock();
            let all = names.all().filter(|(_, name)| scope.contains(name));
            all.map(|(number, _)| number).collect()
        };
        if numbers.is_empty() {
            // Coarser buckets have rows of all handlers, so they would be read to their end.
            let (handles, next) = (Vec::new(), None);
            return Ok(HandlePage { handles, next });
        }
        let seconds = numbers.into_iter().map(|number| (Level::Second, number));
        let parts: Vec<_> = seconds
            .chain(Level::CASCADING.map(|level| (level, 0)))
            .collect();
        let bounds: Vec<_> = parts
            .iter()
            .map(|(level, _)| PendingCursor::after_in(*level, after))
            .collect();
        let at_a_time = HandlePage::EXAMINED / parts.len() + 1;
        let select = self.statement(HANDLES);
        let select = select.smalls(
            parts
                .iter()
                .map(|(level, _)| level.number().into())
                .collect(),
        );
        let select = select.ints(parts.iter().map(|(_, number)| *number).collect());
        let select = select.bigs(bounds.iter().map(|it| it.bucket.number).collect());
        let select = select.bigs(bounds.iter().map(|it| stored(it.id)).collect());
        let select = select.big(bytes(at_a_time));
        let all = self.rows(select, |row, names| {
            let (number, id) = (get(row, 1)?, id(row, 2)?);
            let bucket = Bucket {
                level: level(get(row, 0)?)?,
                number,
            };
            let number = get(row, 3)?;
            let (name, due) = (names.name(number)?, Due::from_millis(get(row, 4)?));
            let handle = scope.contains(&name).then_some(Handle {
                id,
                due,
                handler: name,
            });
            // Coarser levels have rows of all handlers in order.
            let part = match bucket.level {
                Level::Second => (Level::Second, number),
                level => (level, 0),
            };
            Ok((PendingCursor { bucket, id }, part, handle))
        });
        let mut all = all.await?;
        all.sort_unstable_by_key(|(cursor, ..)| *cursor);
        let mut last_of = HashMap::new();
        for (cursor, part, _) in &all {
            let (count, last) = last_of.entry(*part).or_insert((0, *cursor));
            (*count, *last) = (*count + 1, *cursor);
        }
        // A part that has more rows may have some before the later ones of other parts.
        let unread = last_of.values().filter(|(count, _)| *count == at_a_time);
        let end = unread.map(|(_, last)| *last).min();
        let read = all
            .into_iter()
            .filter(|(cursor, ..)| end.is_none_or(|end| *cursor <= end));
        let read = read.map(|(cursor, _, handle)| Ok::<_, Error>((cursor, handle)));
        let mut page = HandlePage::of(read, limit, HandlePage::EXAMINED)?;
        page.next = page.next.or(end);
        Ok(page)
    }

    pub(crate) async fn dead(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, Error> {
        let examine = self.statement(EXAMINE_DEAD).big(stored(after));
        let examine = examine.big(bytes(DeadLetters::EXAMINED));
        let examined = self.rows(examine, |row, names| {
            let is_meant = scope.contains(&names.name(get(row, 1)?)?);
            Ok((get::<i64>(row, 0)?, is_meant))
        });
        let examined = examined.await?;
        let meant = examined.iter().filter(|(_, is_meant)| *is_meant);
        let meant: Vec<i64> = meant.map(|(id, _)| *id).collect();
        let first = meant.first().copied().unwrap_or_default();
        let last = meant.last().copied().unwrap_or_default();
        let dead = self.statement(&DEAD).bigs(meant);
        let dead = dead.big(bytes(limit.rows)).big(bytes(limit.bytes));
        let dead = dead.big(first).big(last);
        let mut dead = self.rows(dead, dead_letter).await?.into_iter();
        // The page ends where the second statement has ended.
        let all = examined.iter().map(|(examined, is_meant)| {
            let id = Id::from_stored(examined.cast_unsigned());
            Ok((id, is_meant.then(|| dead.next()).flatten()))
        });
        DeadLetters::of(all, after, limit, DeadLetters::EXAMINED)
    }

    pub(crate) async fn counts(&mut self) -> Result<Counts, Error> {
        let pending = self.rows(self.statement(PENDING_COUNTS), |row, names| {
            let bucket = Bucket {
                level: level(get(row, 1)?)?,
                number: get(row, 2)?,
            };
            Ok(PendingCount {
                handler: names.name(get(row, 0)?)?,
                bucket,
                count: get::<i64>(row, 3)?.cast_unsigned(),
            })
        });
        let pending = pending.await?;
        let dead = self.rows(self.statement(DEAD_COUNTS), |row, names| {
            Ok(DeadCount {
                handler: names.name(get(row, 0)?)?,
                error: text(get(row, 1)?)?,
                count: get::<i64>(row, 2)?.cast_unsigned(),
            })
        });
        let dead = dead.await?;
        Ok(Counts { pending, dead })
    }

    /// Returns the number of pending timers and dead letters.
    pub(crate) async fn count_rows(&mut self) -> Result<u64, Error> {
        let rows = self.rows(self.statement(ROWS), |row, _| get::<i64>(row, 0));
        let rows = rows.await?.pop().unwrap_or_default();
        Ok(u64::try_from(rows).unwrap_or(0))
    }

    pub(crate) async fn tagged(
        &mut self,
        tag: &str,
        after: Id,
        limit: usize,
    ) -> Result<Vec<Handle>, Error> {
        let tagged = self
            .statement(TAGGED)
            .text(tag)
            .big(stored(after))
            .big(bytes(limit));
        self.rows(tagged, |row, names| {
            handle(row, 0, names.name(get(row, 2)?)?)
        })
        .await
    }

    pub(crate) async fn archived(
        &mut self,
        handler: &str,
        after: ArchiveCursor,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(ArchiveCursor, Archived)>, Error> {
        let select = self.statement(ARCHIVED).int(self.number(handler));
        let select = select
            .big(after.day)
            .big(after.block.into())
            .big(after.index.into());
        let select = select.big(before).big(bytes(limit));
        self.rows(select, |row, _| archived(row)).await
    }

    pub(crate) async fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, Error> {
        let first = self.statement(FIRST_ARCHIVED).int(self.number(handler));
        Ok(self.rows(first, |row, _| get(row, 0)).await?.pop())
    }

    pub(crate) async fn settings(&mut self) -> Result<Vec<Setting>, Error> {
        self.rows(self.statement(SETTINGS), |row, _| {
            let (name, value): (&str, &[u8]) = (get(row, 0)?, get(row, 1)?);
            Ok(Setting {
                name: name.into(),
                value: value.into(),
            })
        })
        .await
    }
}

/// Reads the id and the first due time of a timer.
fn handle(from: &Columns, at: usize, handler: Arc<str>) -> Result<Handle, Error> {
    Ok(Handle {
        id: id(from, at)?,
        due: Due::from_millis(get(from, at + 1)?),
        handler,
    })
}

fn dead_letter(from: &Columns, names: &Table) -> Result<Dead, Error> {
    Ok(Dead {
        row: row(from, names)?,
        at: Due::from_millis(get(from, 10)?),
        error: text(get(from, 11)?)?,
    })
}

fn archived(from: &Columns) -> Result<(ArchiveCursor, Archived), Error> {
    let number = |at| Ok::<_, Error>(u32::try_from(get::<i64>(from, at)?).unwrap_or(u32::MAX));
    let cursor = ArchiveCursor {
        day: get(from, 0)?,
        block: number(1)?,
        index: number(2)?,
    };
    let archived = Archived {
        id: id(from, 3)?,
        due: Due::from_millis(get(from, 4)?),
        at: Due::from_millis(get(from, 5)?),
        failures: number(6)?,
        key: get::<Option<&[u8]>>(from, 7)?.map(Arc::from),
    };
    Ok((cursor, archived))
}

/// A text that may contain NUL, so that it is stored as bytes.
fn text(bytes: &[u8]) -> Result<Arc<str>, Error> {
    let text = str::from_utf8(bytes);
    text.map(Arc::from)
        .map_err(|error| Error::Unexpected(error.to_string().into()))
}

fn level(number: i16) -> Result<Level, Error> {
    let level = u8::try_from(number).ok().and_then(Level::from_number);
    level.ok_or_else(|| Error::Unexpected(format!("there is no level {number}").into()))
}

/// Draws an epoch, from the columns `epoch`, `epoch_timeline` and the timeline of the server.
pub(crate) fn drawn(row: &Columns, at: usize) -> Result<Drawn, Error> {
    let last = Drawn {
        epoch: get::<i64>(row, at)?.cast_unsigned(),
        timeline: get::<i32>(row, at + 1)?.cast_unsigned(),
    };
    let timeline = get::<i32>(row, at + 2)?.cast_unsigned();
    Ok(last.next(timeline))
}
