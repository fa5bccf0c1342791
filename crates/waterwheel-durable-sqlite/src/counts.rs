//! How many timers and dead letters are there?
//!
//! The tables `pending_counts` and `dead_counts` are part of each commit. A commit adds up its own changes first, so that a thousand inserts into a bucket update
//! one row.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, ToSql};
use waterwheel_durable_core::store::{self, Bucket, DeadCount, PendingCount};

use super::read::{Handlers, level};

const ADD_PENDING: &str = "
    INSERT INTO pending_counts (level, bucket, handler, count) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET count = count + excluded.count";

const SUBTRACT_PENDING: &str = "
    UPDATE pending_counts SET count = count + ?4 WHERE level = ?1 AND bucket = ?2 AND handler = ?3";

const LAST_PENDING: &str = "
    DELETE FROM pending_counts WHERE level = ?1 AND bucket = ?2 AND handler = ?3 AND count = -?4";

const ADD_DEAD: &str = "
    INSERT INTO dead_counts (handler, error, count) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET count = count + excluded.count";

const SUBTRACT_DEAD: &str =
    "UPDATE dead_counts SET count = count + ?3 WHERE handler = ?1 AND error = ?2";

const LAST_DEAD: &str = "DELETE FROM dead_counts WHERE handler = ?1 AND error = ?2 AND count = -?3";

/// The changes of a commit.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// By level, bucket and handler.
    pending: BTreeMap<(u8, i64, i64), i64>,
    /// The last change, which is most often followed by one of the same bucket.
    last: Option<((u8, i64, i64), i64)>,
    /// By handler and kind of error.
    dead: BTreeMap<(i64, Box<str>), i64>,
}

impl Changes {
    /// Adds this many timers to a bucket, or removes them.
    pub(crate) fn pending(&mut self, bucket: Bucket, handler: i64, more: i64) {
        let bucket = PendingCount::bucket_of(bucket);
        let at = (bucket.level.number(), bucket.number, handler);
        match &mut self.last {
            Some((last, sum)) if *last == at => *sum += more,
            last => {
                if let Some((at, sum)) = last.replace((at, more)) {
                    *self.pending.entry(at).or_insert(0) += sum;
                }
            }
        }
    }

    /// Adds a dead letter with this error, or removes it.
    pub(crate) fn dead(&mut self, handler: i64, error: &str, more: i64) {
        let kind = DeadCount::kind(error).into();
        *self.dead.entry((handler, kind)).or_insert(0) += more;
    }

    pub(crate) fn write(mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some((at, sum)) = self.last {
            *self.pending.entry(at).or_insert(0) += sum;
        }
        for ((level, bucket, handler), more) in self.pending {
            let values: [&dyn ToSql; 4] = [&level, &bucket, &handler, &more];
            add(
                connection,
                [ADD_PENDING, SUBTRACT_PENDING, LAST_PENDING],
                &values,
                more,
            )?;
        }
        for ((handler, error), more) in self.dead {
            let values: [&dyn ToSql; 3] = [&handler, &error, &more];
            add(
                connection,
                [ADD_DEAD, SUBTRACT_DEAD, LAST_DEAD],
                &values,
                more,
            )?;
        }
        Ok(())
    }
}

/// Adds to a count. A row whose count becomes 0 is deleted.
fn add(
    connection: &Connection,
    [add, subtract, last]: [&str; 3],
    values: &[&dyn ToSql],
    more: i64,
) -> rusqlite::Result<()> {
    if more == 0 || more < 0 && connection.prepare_cached(last)?.execute(values)? == 1 {
        return Ok(());
    }
    let sql = if more > 0 { add } else { subtract };
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Counts all rows again in a table of counts that is empty although there are rows: an operator has emptied it. With `discard`, in any case: what a crash has left
/// may be of different commits.
pub(crate) fn complete(connection: &Connection, discard: bool) -> rusqlite::Result<()> {
    let is_missing = |counts: &str, rows: &str| {
        let sql =
            format!("SELECT NOT EXISTS (SELECT 1 FROM {counts}) AND EXISTS (SELECT 1 FROM {rows})");
        connection.query_row(&sql, [], |row| row.get::<_, bool>(0))
    };
    let transaction = connection.unchecked_transaction()?;
    if discard {
        transaction.execute_batch("DELETE FROM pending_counts; DELETE FROM dead_counts")?;
    }
    if is_missing("pending_counts", "timers")? {
        transaction.execute(RECOUNT_PENDING, [])?;
    }
    if is_missing("dead_counts", "dead")? {
        let mut changes = Changes::default();
        let mut dead = transaction.prepare("SELECT handler, error FROM dead")?;
        let mut rows = dead.query([])?;
        while let Some(row) = rows.next()? {
            // A row that cannot be read is reported by a check.
            if let (Ok(handler), Ok(error)) = (row.get(0), row.get_ref(1)?.as_str()) {
                changes.dead(handler, error, 1);
            }
        }
        changes.write(&transaction)?;
    }
    transaction.commit()
}

/// `/` rounds towards zero, so 1 is subtracted from a negative quotient that is not whole.
const RECOUNT_PENDING: &str = "
    INSERT INTO pending_counts (level, bucket, handler, count)
    SELECT max(level, 1), iif(level = 0, bucket / 60 - (bucket % 60 < 0), bucket),
        coalesce(far_handler, handler), count(*)
    FROM timers GROUP BY 1, 2, 3";

pub(crate) fn read(
    connection: &Connection,
    handlers: &Handlers,
) -> rusqlite::Result<store::Counts> {
    let sql = "SELECT level, bucket, handler, count FROM pending_counts WHERE count > 0";
    let mut statement: CachedStatement<'_> = connection.prepare_cached(sql)?;
    let pending = statement.query_map([], |row| {
        let (level, number) = (level(row.get(0)?)?, row.get(1)?);
        Ok(PendingCount {
            handler: Arc::clone(handlers.name(row.get(2)?)?),
            bucket: Bucket { level, number },
            count: row.get::<_, i64>(3)?.unsigned_abs(),
        })
    })?;
    let pending = pending.filter_map(is_valid).collect::<Result<_, _>>()?;
    let sql = "SELECT handler, error, count FROM dead_counts WHERE count > 0";
    let mut statement = connection.prepare_cached(sql)?;
    let dead = statement.query_map([], |row| {
        Ok(DeadCount {
            handler: Arc::clone(handlers.name(row.get(0)?)?),
            error: row.get::<_, String>(1)?.into(),
            count: row.get::<_, i64>(2)?.unsigned_abs(),
        })
    })?;
    let dead = dead.filter_map(is_valid).collect::<Result<_, _>>()?;
    Ok(store::Counts { pending, dead })
}

/// Leaves out a count that cannot be read: timers are delivered even if they are counted wrongly.
fn is_valid<T>(read: rusqlite::Result<T>) -> Option<rusqlite::Result<T>> {
    match read {
        Err(error) if error.sqlite_error_code().is_none() => None,
        read => Some(read),
    }
}
