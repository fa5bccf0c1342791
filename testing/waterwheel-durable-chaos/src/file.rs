//! What is left in the file, read without the store's code.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use waterwheel_durable_chaos::keys;

/// How many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) timers: i64,
    pub(crate) keys: i64,
    pub(crate) moved: i64,
    pub(crate) dead: i64,
}

pub(crate) fn inspect(path: &Path) -> Result<Left, String> {
    let inspect = || -> rusqlite::Result<(Left, String)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let check = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            connection.query_row(&sql, [], |row| row.get(0))
        };
        let left = Left {
            timers: count("timers")?,
            keys: keys::read(&connection)?.left() as i64,
            moved: count("moved")?,
            dead: count("dead")?,
        };
        Ok((left, check))
    };
    match inspect() {
        Ok((left, check)) if check == "ok" => Ok(left),
        Ok((_, check)) => Err(format!("the file is damaged: {check}")),
        Err(error) => Err(format!("the file cannot be read: {error}")),
    }
}
