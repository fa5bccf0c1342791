//! What is wrong with a file, in words of its own?
//!
//! The errors of SQLite's binding name columns by their numbers and types by its own names. Whoever reads a log knows the tables and the rows.

use std::error::Error;
use std::fmt;

use rusqlite::Error as Sqlite;
use rusqlite::types::Type;

/// Damage in words: see [`damaged`].
#[derive(Debug)]
struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Damage {}

/// The error of a row that no store has written.
pub(crate) fn damaged(what: impl Into<String>) -> Sqlite {
    let what = Damage(what.into());
    Sqlite::FromSqlConversionFailure(0, Type::Null, what.into())
}

/// What was read of a row. If that makes no sense, the error names the table and the row.
pub(crate) fn in_row<T>(
    table: &str,
    row: impl fmt::Display,
    read: rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    read.map_err(|error| match of_damage(&error) {
        Some(what) => damaged(format!("table `{table}`, row {row}: {what}")),
        None => error,
    })
}

/// What an error says of a value or a row. `None`: it is an error of SQLite itself, which has words.
pub(crate) fn of_damage(error: &Sqlite) -> Option<String> {
    Some(match error {
        Sqlite::FromSqlConversionFailure(_, _, what) if what.is::<Damage>() => what.to_string(),
        Sqlite::FromSqlConversionFailure(..) | Sqlite::Utf8Error(..) => {
            "a value is not valid for its column".to_owned()
        }
        Sqlite::InvalidColumnType(_, name, found) => {
            format!("the column `{name}` has {}", of_type(*found))
        }
        Sqlite::IntegralValueOutOfRange(_, number) => {
            format!("the number {number} is out of the range of its column")
        }
        Sqlite::QueryReturnedNoRows => "a row that every file has is missing".to_owned(),
        _ => return None,
    })
}

pub(crate) fn of_type(found: Type) -> &'static str {
    match found {
        Type::Null => "no value",
        Type::Integer => "a whole number",
        Type::Real => "a number with a fraction",
        Type::Text => "text",
        Type::Blob => "bytes",
    }
}

/// `3 times`.
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    }
}

/// `3rd`.
pub(crate) fn ordinal(number: u64) -> String {
    let is_teen = (11..=13).contains(&(number % 100));
    let ending = match number % 10 {
        1 if !is_teen => "st",
        2 if !is_teen => "nd",
        3 if !is_teen => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// An error for one of ours to have as its cause.
pub(crate) fn boxed(error: Sqlite) -> Box<dyn Error + Send + Sync> {
    match of_damage(&error) {
        Some(what) => Damage(what).into(),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_number_has_its_ending() {
        for (number, words) in [
            (0, "0th"),
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (11, "11th"),
            (112, "112th"),
            (4_101, "4101st"),
        ] {
            assert_eq!(ordinal(number), words);
        }
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }

    #[test]
    fn a_value_of_another_type_is_named_by_table_row_and_column() {
        let connection = Connection::open_in_memory().unwrap();
        let read = |sql: &str| {
            let read = connection.query_row(sql, [], |row| row.get::<_, u32>("failures"));
            boxed(in_row("timers", 7, read).unwrap_err()).to_string()
        };
        for (sql, words) in [
            (
                "SELECT 'x' AS failures",
                "table `timers`, row 7: the column `failures` has text",
            ),
            (
                "SELECT -1 AS failures",
                "table `timers`, row 7: the number -1 is out of the range of its column",
            ),
        ] {
            assert_eq!(read(sql), words);
        }
        let sqlite = read("SELECT failures");
        assert!(sqlite.starts_with("no such column"), "{sqlite}");
    }
}
