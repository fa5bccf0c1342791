//! The numbers in the table `meta`, among them the epoch of an opening.
//!
//! Ids begin with the epoch, which rises each time the store is opened and once half of the ids of an epoch are used, so that no id is assigned twice. A copy would repeat the ids that its original file
//! assigns after the copy was made, and those that the same copy has assigned where it was restored before. So a copy continues from an epoch further ahead. It
//! also has a mark, which its first opening as a store removes: that opening continues from the number of ten-minute intervals since 2026, if that is more.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension};

use super::error::{damaged, in_row};

/// Reads a number of the table `meta` that each file has.
pub(crate) fn read_meta(connection: &Connection, key: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let found = connection.query_row(sql, [key], |row| {
        in_row("meta", format_args!("`{key}`"), row.get(0))
    });
    let missing = || damaged(format!("table `meta`: the row `{key}` is missing"));
    found.optional()?.ok_or_else(missing)
}

/// By how much the epoch of a copy is ahead of that of the original file, at least.
///
/// Ids start with the epoch, which rises by one each time a store is opened, and after some billions of inserts. The
/// copy therefore does not reuse ids that the original file assigns after it was copied, unless the epoch of the original
/// rises that often. If a copy is restored a second time, it assigns other ids than the first time, provided that at
/// least ten minutes have passed by a correct clock, and that the epoch has risen no more often than once every ten
/// minutes in between, on average.
pub const EPOCHS_AHEAD: u64 = 4_096;

/// 2026-01-01.
const START: Duration = Duration::from_secs(1_767_225_600);

const TEN_MINUTES: u64 = 600;

/// Half of the range of epochs in ids. A later time, beyond 2065, is taken for a wrong clock.
const LAST: u64 = 1 << 21;

/// Returns the epoch of an opening, in an open transaction, and whether it is the first opening of a copy.
pub(crate) fn next_epoch(
    connection: &Connection,
    now: SystemTime,
) -> rusqlite::Result<(u64, bool)> {
    let is_copy = connection.execute("DELETE FROM meta WHERE key = 'copied'", [])? > 0;
    if is_copy {
        let sql = "SELECT value FROM meta WHERE key = 'epoch'";
        let epoch: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        if let Some(more) = by_clock(now).checked_sub(epoch.unsigned_abs()) {
            raise(connection, more)?;
            raise_clean(connection, more)?;
        }
    }
    Ok((raise(connection, 1)?, is_copy))
}

/// Raises the epoch of a copy, and marks it. Returns the epoch.
pub(crate) fn raise_in_copy(copy: &Connection) -> rusqlite::Result<u64> {
    copy.execute("INSERT OR IGNORE INTO meta VALUES ('copied', 1)", [])?;
    raise_clean(copy, EPOCHS_AHEAD)?;
    raise(copy, EPOCHS_AHEAD)
}

fn by_clock(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH + START).unwrap_or_default();
    match since.as_secs() / TEN_MINUTES {
        epoch if epoch > LAST => 0,
        epoch => epoch,
    }
}

/// Raises the epoch to this one.
pub(crate) fn raise_to(connection: &Connection, min: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE meta SET value = max(value, ?1) WHERE key = 'epoch'";
    connection.execute(sql, [min.cast_signed()]).map(drop)
}

/// Raises the epoch, in an open transaction, and returns it.
pub(crate) fn raise(connection: &Connection, by: u64) -> rusqlite::Result<u64> {
    let sql = "UPDATE meta SET value = value + ?1 WHERE key = 'epoch' RETURNING value";
    let epoch: i64 = connection.query_row(sql, [by.cast_signed()], |row| row.get(0))?;
    Ok(epoch.unsigned_abs())
}

/// Raises the epoch of the last clean shutdown, from which the engine counts.
fn raise_clean(connection: &Connection, by: u64) -> rusqlite::Result<()> {
    // A second number may follow: how many epochs have begun since then without an opening.
    let sql = "UPDATE settings SET value = CAST(
            (CAST(CAST(value AS TEXT) AS INTEGER) + ?1)
            || substr(CAST(value AS TEXT), instr(CAST(value AS TEXT) || ' ', ' ')) AS BLOB)
        WHERE name = 'clean'";
    connection.execute(sql, [by.cast_signed()])?;
    Ok(())
}
