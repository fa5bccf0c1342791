use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use waterwheel_durable_core::store::Command;

use super::{NOW, SendError, answer_of};
use crate::OpenError;
use crate::connection::{refuse_wal_alone, require_current};
use crate::files::resolve;
use crate::lock::{self, Holder};

/// The interval between two looks for answers.
const PAUSE: Duration = Duration::from_millis(20);

/// The number of commands that one transaction writes. The service waits for it for at most 50 ms, and then refuses its own commit.
const SLICE: usize = 500;

/// The pause between two of these transactions, for the service. While the service waits for the file, it retries every few milliseconds.
const GAP: Duration = Duration::from_millis(10);

/// How long no process may have the file open before a command is withdrawn early. A restarted service takes it.
const GONE: Duration = Duration::from_millis(500);

/// The outcome of a command that was sent with [`send_commands`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandResult {
    /// The process that has the file open has carried out the command, or says why not.
    Answered(Arc<str>),
    /// The process did not accept the command, which was withdrawn and will not be carried out.
    Withdrawn,
    /// The process accepted the command and then did not answer, or ended. It is not known whether the command was or
    /// will be carried out.
    Unknown,
}

/// Sends commands to the process that has a file open. Waits up to `within` until they are accepted, and then up to
/// `within` for the answers. If no process has the file open, they are withdrawn early.
///
/// The commands are written a few hundred at a time, so that thousands of them do not delay a commit of that process
/// for long. If not all of them can be written, the rest is [withdrawn](CommandResult::Withdrawn).
///
/// # Errors
///
/// [`SendError`]: no command was sent.
pub fn send_commands(
    path: impl AsRef<Path>,
    commands: &[Command],
    within: Duration,
) -> Result<Vec<CommandResult>, SendError> {
    let path = resolve(path.as_ref()).map_err(|error| OpenError::io(path.as_ref(), error))?;
    refuse_wal_alone(&path)?;
    let sending = Sender::open(&path, within)?;
    let numbers = sending
        .put(commands, within)
        .map_err(|error| SendError::of(error, &path))?;
    let is_held = || lock::inspect(&path) != Holder::None;
    // From here on, an error leaves the outcome open: commands that are not taken in time never are.
    let results = sending.wait(&numbers, within, is_held);
    let mut results = results.unwrap_or_default();
    results.resize(numbers.len(), CommandResult::Unknown);
    results.resize(commands.len(), CommandResult::Withdrawn);
    Ok(results)
}

struct Sender {
    connection: Connection,
}

impl Sender {
    fn open(path: &Path, within: Duration) -> Result<Sender, SendError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let of_file = |error: OpenError| error.of_file(path, true);
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.map_err(|error| of_file(OpenError::of(error)))?;
        let configured = configure(&connection, within);
        configured.map_err(|error| of_file(OpenError::of(error)))?;
        require_current(&connection).map_err(of_file)?;
        Ok(Sender { connection })
    }

    /// Writes the commands and returns their numbers; after an error, only those of the first commands.
    fn put(&self, commands: &[Command], within: Duration) -> rusqlite::Result<Vec<i64>> {
        let within = i64::try_from(within.as_millis()).unwrap_or(i64::MAX / 4);
        let sql = format!("INSERT INTO commands (body, until) VALUES (?1, {NOW} + ?2)");
        let (numbers, ended) = self.change_each(commands, |connection, command| {
            let mut put = connection.prepare_cached(&sql)?;
            put.insert((command.to_string(), within))
        });
        match numbers.is_empty() {
            true => ended.map(|()| numbers),
            false => Ok(numbers),
        }
    }

    fn wait(
        &self,
        numbers: &[i64],
        within: Duration,
        is_held: impl Fn() -> bool,
    ) -> rusqlite::Result<Vec<CommandResult>> {
        let begun = Instant::now();
        let mut held = begun;
        loop {
            let (open, taken) = self.open_of(numbers)?;
            let limit = if taken == 0 { within } else { within * 2 };
            let left = limit.saturating_sub(begun.elapsed());
            if is_held() {
                held = Instant::now();
            }
            let is_gone = taken == 0 && held.elapsed() >= GONE;
            if open == 0 || left.is_zero() || is_gone {
                return Ok(self.end(numbers));
            }
            thread::sleep(left.min(PAUSE));
        }
    }

    /// Returns the number of unanswered commands, and how many of those are taken.
    fn open_of(&self, numbers: &[i64]) -> rusqlite::Result<(i64, i64)> {
        let sql = "SELECT count(*), coalesce(sum(is_taken), 0) FROM commands
            WHERE number BETWEEN ?1 AND ?2 AND answer IS NULL";
        let mut look = self.connection.prepare_cached(sql)?;
        let (mut open, mut taken) = (0, 0);
        // Between two runs of numbers, another sender has written its commands.
        for run in numbers.chunk_by(|one, next| *next == one + 1) {
            let (first, last) = (run[0], run[run.len() - 1]);
            let of_run = look.query_row([first, last], |row| Ok((row.get(0)?, row.get(1)?)));
            let of_run: (i64, i64) = of_run?;
            open += of_run.0;
            taken += of_run.1;
        }
        Ok((open, taken))
    }

    /// Reads the answers, and withdraws the commands that are not taken. After an error, returns the results so far.
    fn end(&self, numbers: &[i64]) -> Vec<CommandResult> {
        let sql = "DELETE FROM commands
            WHERE number = ?1 AND (answer IS NOT NULL OR is_taken = 0)";
        let (ends, _) = self.change_each(numbers, |connection, number| {
            let answer = answer_of(connection, *number)?;
            let is_deleted = connection.prepare_cached(sql)?.execute([number])? == 1;
            Ok(match answer {
                Some(Some(answer)) => CommandResult::Answered(answer.into()),
                Some(None) if is_deleted => CommandResult::Withdrawn,
                _ => CommandResult::Unknown,
            })
        });
        ends
    }

    /// Applies a change to each item, a slice at a time. Returns the results of the committed slices, and the error that ended it, if any.
    fn change_each<T, U>(
        &self,
        all: &[T],
        mut change: impl FnMut(&Connection, &T) -> rusqlite::Result<U>,
    ) -> (Vec<U>, rusqlite::Result<()>) {
        let mut changed = Vec::with_capacity(all.len());
        for slice in all.chunks(SLICE) {
            if !changed.is_empty() {
                thread::sleep(GAP);
            }
            let of_slice = self.change(|connection| {
                let each = slice.iter().map(|it| change(connection, it));
                each.collect::<rusqlite::Result<Vec<U>>>()
            });
            match of_slice {
                Ok(of_slice) => changed.extend(of_slice),
                Err(error) => return (changed, Err(error)),
            }
        }
        (changed, Ok(()))
    }

    /// Runs a short transaction: the service waits for its duration.
    fn change<T>(
        &self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let changed = change(&self.connection).and_then(|changed| {
            self.connection.execute_batch("COMMIT")?;
            Ok(changed)
        });
        if changed.is_err() && !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        changed
    }
}

fn configure(connection: &Connection, within: Duration) -> rusqlite::Result<()> {
    // Only the store copies the WAL.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    connection.busy_timeout(within)?;
    // Without a sync, the service waits only microseconds. The commit with the answer also syncs this one.
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF;")
}
