//! When does the file become shorter?
//!
//! Deleted rows leave free pages in the file, which the next inserts use. A file that has many more of them than it needs gives them back: in steps, each of
//! which moves pages from the end of the file to free ones, in a transaction of its own. That takes a note of who refers to each page, and a file has these from
//! the beginning or never (`PRAGMA auto_vacuum = INCREMENTAL`): 1 page in 800, and no cost of inserts and settles beyond the spread of their measurement.
//!
//! If the last page of the file is free itself, SQLite looks for it in the list of free pages, from its head. The list is in the order in which the pages became
//! free: where timers were inserted in another order than that of their due times, the search reads a good part of it. So a page may take a millisecond in a file
//! with a gigabyte of free pages, and a step ends by the time that it takes, and not by a number of pages alone.

use std::time::{Duration, Instant};

use rusqlite::Connection;

/// When pages are given back, and how many at a time.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Vacuum {
    /// Fewer free pages than these are left as they are.
    pub min: i64,
    /// So many are given back in a step, and four times as many while there is no commit.
    pub step: i64,
    /// A step ends with the page after which it has taken so long, before its commit.
    pub time: Duration,
}

impl Vacuum {
    /// 4 MB, and half of one at a time: fewer, if that takes longer than a small commit.
    pub const USUAL: Vacuum = Vacuum {
        min: 1_024,
        step: 128,
        time: Duration::from_millis(5),
    };

    /// Whether a step is due. It is from the time on when a sixth of the file is free, which makes it a fifth larger than it had to be, until a twentieth is.
    pub(crate) fn is_due(&self, connection: &Connection, was_due: bool) -> rusqlite::Result<bool> {
        let free = query(connection, "PRAGMA freelist_count")?;
        if free <= self.min {
            return Ok(false);
        }
        let part = if was_due { 20 } else { 6 };
        Ok(free > query(connection, "PRAGMA page_count")? / part)
    }

    /// Gives some pages back, in a transaction that is open: one at least.
    pub(crate) fn step(&self, connection: &Connection, is_idle: bool) -> rusqlite::Result<()> {
        let begun = Instant::now();
        let pages = if is_idle { 4 * self.step } else { self.step };
        let mut vacuum = connection.prepare_cached("PRAGMA incremental_vacuum(1)")?;
        for _ in 0..pages {
            let mut rows = vacuum.query([])?;
            // A row a page.
            while rows.next()?.is_some() {}
            if begun.elapsed() >= self.time {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a file can give pages back.
pub(crate) fn is_possible(connection: &Connection) -> rusqlite::Result<bool> {
    const INCREMENTAL: i64 = 2;
    Ok(query(connection, "PRAGMA auto_vacuum")? == INCREMENTAL)
}

/// Makes a new file one that can.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

fn query(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}
