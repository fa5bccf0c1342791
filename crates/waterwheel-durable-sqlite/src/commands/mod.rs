//! Commands from other processes to the one that has the file open.
//!
//! A command is a row of the table `commands`. Each step of its life is one transaction, so that both sides know its state:
//!
//! | step | by | the row |
//! |---|---|---|
//! | asked | the other process | exists, with a time until which it may be taken |
//! | taken | the store, once a second | `is_taken`: it can no longer be withdrawn |
//! | answered | the store, in the commit that carries it out or in a later one | has its `answer` |
//! | read, or withdrawn before it was taken | the other process | is deleted |
//!
//! A command that was withdrawn or has waited too long is therefore not carried out later. The waiting time is measured by the wall clock, which both sides
//! share: if it is set back, a command that was not withdrawn, because its process was killed, may be taken for longer. When a store is opened, it deletes the
//! commands that the previous one had taken and not answered: they may have been carried out, and are `Unknown` to the other process.

mod error;
mod send;

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use waterwheel_durable_core::store::{Command, Op};

pub use self::error::SendError;
pub use self::send::{CommandResult, send_commands};

/// The current time in milliseconds, by SQLite's clock, which both sides share.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// How long the row of an ended process is kept, in milliseconds.
const KEPT: i64 = 3_600_000;

/// The commands that the store has taken.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// SQLite's change counter when the commands were last taken.
    seen: Option<i64>,
    /// The taken commands by number: thousands come at once, and each is answered individually.
    taken: BTreeMap<u64, Command>,
}

impl Commands {
    /// SQLite's change counter, if another connection has written since the commands were last taken.
    pub(crate) fn news(&self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        let mut version = connection.prepare_cached("PRAGMA data_version")?;
        let version = version.query_row([], |row| row.get(0))?;
        Ok(Some(version).filter(|_| self.seen != Some(version)))
    }

    /// Returns all unanswered commands.
    pub(crate) fn all(&self) -> Vec<(u64, Command)> {
        let taken = self.taken.iter();
        taken
            .map(|(number, command)| (*number, command.clone()))
            .collect()
    }

    /// Adds the commands that a committed transaction has taken.
    pub(crate) fn add(&mut self, seen: i64, taken: Vec<(u64, Command)>) {
        self.seen = Some(seen);
        self.taken.extend(taken);
    }

    /// Forgets the commands that a commit has answered.
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

/// Whether there is a command to take.
pub(crate) fn are_there(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM commands WHERE is_taken = 0 AND answer IS NULL LIMIT 1";
    connection.prepare_cached(sql)?.exists([])
}

/// Takes the commands that may be taken, within a transaction.
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

/// Deletes the commands that the previous store has taken and not answered, within a transaction.
pub(crate) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM commands WHERE is_taken = 1 AND answer IS NULL";
    connection.execute(sql, [])?;
    Ok(())
}

/// Returns the answer of a command, if there is one. The outer `None` means that the command is gone.
fn answer_of(connection: &Connection, number: i64) -> rusqlite::Result<Option<Option<String>>> {
    let sql = "SELECT answer FROM commands WHERE number = ?1";
    let mut answer = connection.prepare_cached(sql)?;
    answer.query_row([number], |row| row.get(0)).optional()
}
