//! When does the file shrink?
//!
//! Deleted rows leave free pages in the file, which the next inserts use. A file with many more free pages than it needs gives them back in steps. Each step is
//! a separate transaction that moves pages from the end of the file to free ones. That requires a record of what refers to each page, which a file has from the
//! beginning or never (`PRAGMA auto_vacuum = INCREMENTAL`): 1 page in 800, and no measurable cost for inserts and settles.
//!
//! If the last page of the file is itself free, SQLite searches for it in the list of free pages, from its head. The list is in the order in which the pages
//! became free: if timers were not inserted in the order of their due times, the search reads a good part of it. So a page may take a millisecond in a file
//! with a gigabyte of free pages, and a step is limited by time, not only by a number of pages.

use std::time::{Duration, Instant};

use rusqlite::Connection;

/// When pages are given back, and how many at a time.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Vacuum {
    /// The minimum number of free pages; fewer are left as they are.
    pub min: i64,
    /// The number of pages given back in a step; four times as many while there is no commit.
    pub step: i64,
    /// The time after which a step ends with the current page, before its commit.
    pub time: Duration,
}

impl Vacuum {
    /// 4 MB, and half a megabyte at a time, or less if that takes longer than a small commit.
    pub const USUAL: Vacuum = Vacuum {
        min: 1_024,
        step: 128,
        time: Duration::from_millis(5),
    };

    /// Whether a step is due: from when a sixth of the file is free, which makes it a fifth larger than necessary, until a twentieth is.
    pub(crate) fn is_due(&self, connection: &Connection, was_due: bool) -> rusqlite::Result<bool> {
        let free = query(connection, "PRAGMA freelist_count")?;
        if free <= self.min {
            return Ok(false);
        }
        let part = if was_due { 20 } else { 6 };
        Ok(free > query(connection, "PRAGMA page_count")? / part)
    }

    /// Gives some pages back, at least one, in an open transaction.
    pub(crate) fn step(&self, connection: &Connection, is_idle: bool) -> rusqlite::Result<()> {
        let begun = Instant::now();
        let pages = if is_idle { 4 * self.step } else { self.step };
        let mut vacuum = connection.prepare_cached("PRAGMA incremental_vacuum(1)")?;
        for _ in 0..pages {
            let mut rows = vacuum.query([])?;
            // Each row stands for one page.
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

/// Prepares a new file for giving pages back.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

fn query(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}
