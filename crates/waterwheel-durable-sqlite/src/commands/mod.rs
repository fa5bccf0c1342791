//! Commands of other processes to the one that has the file open.
//!
//! A command is a row of the table `commands`. Each step of its life is one transaction, so that both sides know how far it has come:
//!
//! | step | by | the row |
//! |---|---|---|
//! | asked | the other process | is there, with a time until which it may be taken |
//! | taken | the store, once a second | `is_taken`: it cannot be withdrawn any more |
//! | answered | the store, in the commit that carries it out or in a later one | has its `answer` |
//! | read, or withdrawn before it was taken | the other process | is deleted |
//!
//! So what was withdrawn, or has waited too long, is not carried out later. How long it has waited goes by the wall clock, which both sides have: where that is set
//! back, a command that was not withdrawn, because its process was killed, may be taken for longer. A store that is opened deletes what the one before had taken and not answered: that
//! may have been carried out, and is `Unknown` to the other process.

mod error;
mod send;

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use waterwheel_durable_core::store::{Command, Op};

pub use self::error::SendError;
pub use self::send::{CommandResult, send_commands};

/// The present time in milliseconds, by the clock of SQLite, which both sides have.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// How long the row of a process that has ended is kept.
const KEPT: i64 = 3_600_000;

/// The commands that the store has taken.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// SQLite's change counter when the commands were last taken.
    seen: Option<i64>,
    /// By their numbers: some thousands come at once, and each is answered on its own.
    taken: BTreeMap<u64, Command>,
}

impl Commands {
    /// SQLite's change counter, if another connection has written since the commands were last taken.
    pub(crate) fn news(&self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        let mut version = connection.prepare_cached("PRAGMA data_version")?;
        let version = version.query_row([], |row| row.get(0))?;
        Ok(Some(version).filter(|_| self.seen != Some(version)))
    }

    /// All that are not answered.
    pub(crate) fn all(&self) -> Vec<(u64, Command)> {
        let taken = self.taken.iter();
        taken
            .map(|(number, command)| (*number, command.clone()))
            .collect()
    }

    /// Adds those that were taken by a transaction which was committed.
    pub(crate) fn add(&mut self, seen: i64, taken: Vec<(u64, Command)>) {
        self.seen = Some(seen);
        self.taken.extend(taken);
    }

    /// Forgets those that a commit has answered.
    pub(crate) fn answered(&mut self, steps: &[Op]) {
        if self.taken.is_empty() {
            return;
        }
        for step in steps {
            match step {
                Op::Reply(number, _) => {
                    self.taken.remove(number);
                }
                Op::All(steps) => self.answered(steps),
                _ => {}
            }
        }
    }
}

/// Whether there is one to take.
pub(crate) fn are_there(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM commands WHERE is_taken = 0 AND answer IS NULL LIMIT 1";
    connection.prepare_cached(sql)?.exists([])
}

/// Takes those that may be taken, within a transaction.
pub(crate) fn take(connection: &Connection) -> rusqlite::Result<Vec<(u64, Command)>> {
    let old = format!("DELETE FROM commands WHERE until < {NOW} - {KEPT}");
    connection.prepare_cached(&old)?.execute([])?;
    let sql = format!(
        "UPDATE commands SET is_taken = 1 WHERE is_taken = 0 AND answer IS NULL AND until >= {NOW}
         RETURNING number, body"
    );
    let mut take = connection.prepare_cached(&sql)?;
    let rows = take.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    let mut taken = Vec::new();
    for (number, body) in rows {
        match body.parse() {
            Ok(command) => taken.push((number.unsigned_abs(), command)),
            Err(_) => {
                let sql = "UPDATE commands SET answer = ?2 WHERE number = ?1";
                let answer = "the service does not know this request: use the `waterwheel` of the service's release";
                connection.prepare_cached(sql)?.execute((number, answer))?;
            }
        }
    }
    Ok(taken)
}

/// Deletes what the store before has taken and not answered, within a transaction.
pub(crate) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM commands WHERE is_taken = 1 AND answer IS NULL";
    connection.execute(sql, [])?;
    Ok(())
}

/// The answer of a command, if there is one. `None` if the command is gone.
fn answer_of(connection: &Connection, number: i64) -> rusqlite::Result<Option<Option<String>>> {
    let sql = "SELECT answer FROM commands WHERE number = ?1";
    let mut answer = connection.prepare_cached(sql)?;
    answer.query_row([number], |row| row.get(0)).optional()
}
