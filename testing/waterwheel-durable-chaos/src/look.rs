//! Reads a file by plain SQL, sharing no code with the store.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

/// All rows of a query.
pub(crate) type Rows = Vec<Vec<Value>>;

/// All timers and dead letters, and a summary of the rest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Look {
    /// The rows of timers and dead letters. That of a dead letter ends with when and why it became one.
    pub(crate) rows: Rows,
    /// The number of notes of timers whose due time differs from the one in their handles.
    pub(crate) moved: i64,
    /// The number of notes of timers with a tag.
    pub(crate) tagged: i64,
    /// The number of archived timers.
    pub(crate) archived: i64,
    pub(crate) settings: Rows,
    /// The numbers of commands, whether they were taken, and their answers.
    pub(crate) commands: Rows,
}

const ROWS: &str =
    "SELECT id, due, name, failures, first_due, key, tag, retries, payload, starts, NULL, NULL FROM timers
        LEFT JOIN handlers ON number = iif(level = 0, handler, far_handler)
    UNION ALL SELECT id, due, name, failures, first_due, key, tag, retries, payload, starts, at, error FROM dead
        LEFT JOIN handlers ON number = handler ORDER BY 1";

/// The number of counts that differ from the number of rows, in both directions. Seconds are counted by the minute: level 1.
const MISCOUNTED: &str = "
    WITH counted AS (
        SELECT max(level, 1), iif(level = 0, bucket / 60, bucket), iif(level = 0, handler, far_handler), count(*)
            FROM timers GROUP BY 1, 2, 3
        UNION ALL SELECT -1, 0, handler, count(*) FROM dead GROUP BY handler
    ), noted AS (
        SELECT level, bucket, handler, count FROM pending_counts
        UNION ALL SELECT -1, 0, handler, sum(count) FROM dead_counts GROUP BY handler
    )
    SELECT (SELECT count(*) FROM (SELECT * FROM counted EXCEPT SELECT * FROM noted))
        + (SELECT count(*) FROM (SELECT * FROM noted EXCEPT SELECT * FROM counted))";

const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN
    ('archive', 'commands', 'dead', 'dead_counts', 'handlers', 'meta', 'moved', 'pending_counts', 'settings', 'tags',
    'timers')";

/// The application id in the header of a file: `WWdt`.
const APPLICATION: i64 = 0x5757_6474;

impl Look {
    pub(crate) fn timers(&self) -> usize {
        let alive = |row: &&Vec<Value>| row.last() == Some(&Value::Null);
        self.rows.iter().filter(alive).count()
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

/// Reads the contents. `None` if there are no tables yet; an error if the file is damaged or lacks some of them.
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
        (11, APPLICATION, _) => {}
        half => return Ok(Err(format!("half of the tables are there: {half:?}"))),
    }
    let miscounted = number(MISCOUNTED)?;
    if miscounted > 0 {
        return Ok(Err(format!("{miscounted} counts differ from the rows")));
    }
    let all = |sql: &str| -> rusqlite::Result<Rows> {
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect())?;
        rows.collect()
    };
    let look = Look {
        rows: all(ROWS)?,
        moved: number("SELECT count(*) FROM moved")?,
        tagged: number("SELECT count(*) FROM tags")?,
        archived: number("SELECT coalesce(sum(count), 0) FROM archive")?,
        settings: all("SELECT name, value FROM settings ORDER BY 1")?,
        commands: all("SELECT number, is_taken, answer FROM commands ORDER BY 1")?,
    };
    let rows = [&look.rows, &look.settings, &look.commands];
    let mistyped = rows.into_iter().flatten().find(|row| !is_typed(row));
    let mistyped = mistyped.map(|row| format!("a value has another type: {row:?}"));
    Ok(mistyped.map_or(Ok(Some(look)), Err))
}

/// Whether the values of a timer, a dead letter, a setting or a command have their types.
fn is_typed(row: &[Value]) -> bool {
    use Value::{Blob, Integer, Null, Text};
    match row {
        [Text(_), Blob(_)] | [Integer(_), Integer(_), Null | Text(_)] => true,
        [
            Integer(_),
            Integer(_),
            Text(_),
            Integer(_),
            Null | Integer(_),
            Null | Blob(_),
            Null | Text(_),
            Null | Blob(_),
            Blob(_),
            Integer(_),
            dead @ ..,
        ] => matches!(dead, [Null, Null] | [Integer(_), Text(_)]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_found() {
        let number = || Value::Integer(1);
        let (text, blob) = (Value::Text("mail".to_owned()), Value::Blob(vec![7]));
        let mut row = vec![number(), number(), text.clone(), number(), number()];
        row.extend([Value::Null, text.clone(), blob.clone()]);
        row.extend([blob.clone(), number(), Value::Null, Value::Null]);
        assert!(is_typed(&row) && is_typed(&[text.clone(), blob.clone()]));
        // A timer whose handler is unknown, a tag and a payload of the wrong type, and a dead letter without a reason.
        for (column, wrong) in [(2, Value::Null), (6, blob), (8, text), (10, number())] {
            let mut row = row.clone();
            row[column] = wrong;
            assert!(!is_typed(&row), "{column}");
        }
    }
}
