//! When does the file become shorter?
//!
//! What was deleted leaves free pages in the file, which the next inserts use. A file that has many more of them than it needs gives them back: in steps, each of
//! which moves pages from the end of the file to free ones, in a transaction of its own. It is no longer than a commit. That takes a note of who refers to each page, and a file has these from the beginning or never
//! (`PRAGMA auto_vacuum = INCREMENTAL`): 1 page in 800, and no cost of inserts and settles beyond the spread of their measurement.

use rusqlite::Connection;

/// When pages are given back, and how many at a time.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Vacuum {
    /// Fewer free pages than these are left as they are.
    pub least: i64,
    /// So many are given back in a step, and four times as many while there is no commit.
    pub step: i64,
}

impl Vacuum {
    /// 4 MB, and half of one at a time.
    pub const USUAL: Vacuum = Vacuum {
        least: 1_024,
        step: 128,
    };

    /// Whether a step is due. It is from the time on when a sixth of the file is free, which makes it a fifth larger than it had to be, until a twentieth is.
    pub(crate) fn is_due(&self, connection: &Connection, was_due: bool) -> rusqlite::Result<bool> {
        let free = ask(connection, "PRAGMA freelist_count")?;
        if free <= self.least {
            return Ok(false);
        }
        let part = if was_due { 20 } else { 6 };
        Ok(free > ask(connection, "PRAGMA page_count")? / part)
    }

    /// Gives some pages back, in a transaction that is open.
    pub(crate) fn step(&self, connection: &Connection, is_idle: bool) -> rusqlite::Result<()> {
        let pages = if is_idle { 4 * self.step } else { self.step };
        let sql = format!("PRAGMA incremental_vacuum({pages})");
        let mut vacuum = connection.prepare_cached(&sql)?;
        let mut rows = vacuum.query([])?;
        // A row a page.
        while rows.next()?.is_some() {}
        Ok(())
    }
}

/// Whether a file can give pages back.
pub(crate) fn is_possible(connection: &Connection) -> rusqlite::Result<bool> {
    const INCREMENTAL: i64 = 2;
    Ok(ask(connection, "PRAGMA auto_vacuum")? == INCREMENTAL)
}

/// Makes a new file one that can.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

fn ask(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}
