use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use waterwheel_store::Order;

use super::{AskError, NOW, answer_of};
use crate::OpenError;
use crate::lock::{self, Holder};
use crate::schema::{STEPS, VERSION, inspect};
use crate::store::{refuse_log_alone, resolve};

/// How often it looks for an answer.
const PAUSE: Duration = Duration::from_millis(20);

/// For how long no process has the file before an order is withdrawn early. A service that is started again takes it.
const GONE: Duration = Duration::from_millis(500);

/// What came of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The process that has the file open has carried it out, or says why not.
    Answered(Arc<str>),
    /// It has not taken the order, which is withdrawn: it is not carried out.
    Withdrawn,
    /// It has taken the order, and has not answered, or has ended. Whether it was carried out, or will be, is not known.
    Unknown,
}

/// Asks the process that has a file open to carry out these orders, and waits so long until it takes them, and as long again for its answers. If no process has
/// the file, they are withdrawn early.
///
/// # Errors
///
/// [`AskError`]: nothing was asked.
pub fn ask(
    path: impl AsRef<Path>,
    orders: &[Order],
    within: Duration,
) -> Result<Vec<Asked>, AskError> {
    let path = resolve(path.as_ref()).map_err(|error| OpenError::Sqlite(error.into()))?;
    refuse_log_alone(&path)?;
    let asking = Asking::open(&path, within)?;
    let numbers = asking.put(orders, within).map_err(AskError::of)?;
    let is_held = || lock::look(&path) != Holder::None;
    // From here on, what goes wrong leaves the outcome open: those that are not taken in time never are.
    Ok(asking
        .wait(&numbers, within, is_held)
        .unwrap_or_else(|_| vec![Asked::Unknown; numbers.len()]))
}

struct Asking {
    connection: Connection,
}

impl Asking {
    fn open(path: &Path, within: Duration) -> Result<Asking, AskError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(OpenError::of)?;
        configure(&connection, within).map_err(OpenError::of)?;
        match inspect(&connection, &STEPS)? {
            Some(VERSION) => Ok(Asking { connection }),
            Some(found) => Err(AskError::Older { found }),
            None => Err(OpenError::Empty.into()),
        }
    }

    fn put(&self, orders: &[Order], within: Duration) -> rusqlite::Result<Vec<i64>> {
        let within = i64::try_from(within.as_millis()).unwrap_or(i64::MAX / 4);
        self.change(|connection| {
            let sql = format!("INSERT INTO orders (body, until) VALUES (?1, {NOW} + ?2)");
            let mut put = connection.prepare_cached(&sql)?;
            let put = orders
                .iter()
                .map(|order| put.insert((order.to_string(), within)));
            put.collect()
        })
    }

    fn wait(
        &self,
        numbers: &[i64],
        within: Duration,
        is_held: impl Fn() -> bool,
    ) -> rusqlite::Result<Vec<Asked>> {
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
                return self.end(numbers);
            }
            thread::sleep(left.min(PAUSE));
        }
    }

    /// How many have no answer, and how many of them are taken.
    fn open_of(&self, numbers: &[i64]) -> rusqlite::Result<(usize, usize)> {
        let sql = "SELECT answer IS NULL, is_taken FROM orders WHERE number = ?1";
        let mut look = self.connection.prepare_cached(sql)?;
        let (mut open, mut taken) = (0, 0);
        for number in numbers {
            let mut rows = look.query([number])?;
            if let Some(row) = rows.next()?
                && row.get(0)?
            {
                open += 1;
                taken += usize::from(row.get::<_, bool>(1)?);
            }
        }
        Ok((open, taken))
    }

    /// Reads the answers, and withdraws what is not taken.
    fn end(&self, numbers: &[i64]) -> rusqlite::Result<Vec<Asked>> {
        self.change(|connection| {
            let sql = "DELETE FROM orders
                WHERE number = ?1 AND (answer IS NOT NULL OR is_taken = 0)";
            let mut delete = connection.prepare_cached(sql)?;
            let ends = numbers.iter().map(|number| {
                let answer = answer_of(connection, *number)?;
                let is_deleted = delete.execute([number])? == 1;
                Ok(match answer {
                    Some(Some(answer)) => Asked::Answered(answer.into()),
                    Some(None) if is_deleted => Asked::Withdrawn,
                    _ => Asked::Unknown,
                })
            });
            ends.collect()
        })
    }

    /// A short transaction: the service waits as long as it lasts.
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
    // Copying the log is for the store.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    connection.busy_timeout(within)?;
    // Without a sync, the service waits for microseconds. The commit with the answer syncs this one as well.
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF;")
}
