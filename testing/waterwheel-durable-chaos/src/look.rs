//! What is left in a file? Some lines of plain SQL, which share no code with the store.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// All timers and dead letters, and the rest in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) rows: Vec<Seen>,
    /// How many notes there are of timers that are due at another time than their handles say.
    pub(crate) moved: i64,
    /// How many timers are archived.
    pub(crate) archived: i64,
    pub(crate) settings: Vec<(String, Vec<u8>)>,
    /// The numbers of commands, whether they were taken, and their answers.
    pub(crate) commands: Vec<(i64, bool, Option<String>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) id: i64,
    pub(crate) due: i64,
    pub(crate) handler: String,
    pub(crate) failures: i64,
    pub(crate) has_moved: bool,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) payload: Vec<u8>,
    pub(crate) starts: i64,
    /// Since when it is a dead letter, and why.
    pub(crate) dead: Option<(i64, String)>,
}

const ROWS: &str =
    "SELECT id, due, name, failures, has_moved, key, payload, starts, NULL, NULL FROM timers
        LEFT JOIN handlers ON number = iif(level = 0, handler, far_handler)
    UNION ALL SELECT id, due, name, failures, has_moved, key, payload, starts, at, error FROM dead
        LEFT JOIN handlers ON number = handler ORDER BY 1";

const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN
    ('archive', 'commands', 'dead', 'handlers', 'meta', 'moved', 'settings', 'timers')";

/// In the header of a file: `WWdt`.
const APPLICATION: i64 = 0x5757_6474;

impl Look {
    pub(crate) fn timers(&self) -> usize {
        self.rows.iter().filter(|it| it.dead.is_none()).count()
    }

    pub(crate) fn dead(&self) -> usize {
        self.rows.len() - self.timers()
    }
}

/// Looks at a real file.
pub(crate) fn look_at(path: &Path) -> Result<Option<Look>, String> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    look(&connection.map_err(|error| format!("the file cannot be opened: {error}"))?)
}

/// `None` if there are no tables yet. An error if the file is damaged, or has half of them.
pub(crate) fn look(connection: &Connection) -> Result<Option<Look>, String> {
    read(connection).unwrap_or_else(|error| Err(format!("the file cannot be read: {error}")))
}

fn read(connection: &Connection) -> rusqlite::Result<Result<Option<Look>, String>> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let check = "PRAGMA integrity_check";
    let check: String = connection.query_row(check, [], |row| row.get(0))?;
    if check != "ok" {
        return Ok(Err(format!("the file is damaged: {check}")));
    }
    let all = number("SELECT count(*) FROM sqlite_schema")?;
    match (number(TABLES)?, number("PRAGMA application_id")?, all) {
        (0, 0, 0) => return Ok(Ok(None)),
        (8, APPLICATION, _) => {}
        half => return Ok(Err(format!("half of the tables are there: {half:?}"))),
    }
    let seen = |row: &rusqlite::Row<'_>| {
        Ok(Seen {
            id: row.get(0)?,
            due: row.get(1)?,
            handler: row.get(2)?,
            failures: row.get(3)?,
            has_moved: row.get(4)?,
            key: row.get(5)?,
            payload: row.get(6)?,
            starts: row.get(7)?,
            dead: row.get::<_, Option<i64>>(8)?.zip(row.get(9)?),
        })
    };
    let settings = "SELECT name, value FROM settings ORDER BY 1";
    let commands = "SELECT number, is_taken, answer FROM commands ORDER BY 1";
    Ok(Ok(Some(Look {
        rows: all_of(connection, ROWS, seen)?,
        moved: number("SELECT count(*) FROM moved")?,
        archived: number("SELECT coalesce(sum(count), 0) FROM archive")?,
        settings: all_of(connection, settings, |row| Ok((row.get(0)?, row.get(1)?)))?,
        commands: all_of(connection, commands, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?,
    })))
}

fn all_of<T>(
    connection: &Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], read)?.collect()
}
