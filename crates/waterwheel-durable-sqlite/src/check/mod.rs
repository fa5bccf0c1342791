//! Is a file intact: its pages, and the rows that we have written?
//!
//! The check assumes only that SQLite opens the file, so it also covers a file that no store opens. It reads in slices of some 20 ms, each a separate
//! transaction: while one is open, SQLite cannot restart the WAL of a service. Between two slices the check rests as long as the slice took, and longer while
//! the WAL is long, so that it also finishes on a busy machine. A slice begins after the last key of the previous one.
//!
//! | what | how |
//! |---|---|
//! | pages | `PRAGMA integrity_check`, as a whole if no process has the file open, otherwise only if that takes less than [`WHOLE`]. The slices read each page with rows anyway |
//! | a row | by its own [columns](rows), and against other tables in the same transaction |
//! | a count | the rows that were read are counted; not compared if a process has the file open |
//! | a note of a timer that is gone (`moved`, the index of the keys) | the ids of the timers with a note are collected, 8 bytes each. Notes of other ids are checked individually |

mod finding;
mod rows;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode};

pub use self::finding::Finding;
use self::rows::{Cells, Counted, Orphans, TABLES, Table};
use super::connection::{LONGEST_WAL, connect, require_current};
use super::error::{boxed, damaged};
use super::files::{resolve, wal_of};
use super::lock::{self, Holder};
use super::lsm::{KeyIndex, Sizes};
use super::meta::read_meta;
use super::{OpenError, SqliteStore};

/// The approximate duration of a slice.
const SLICE: Duration = Duration::from_millis(20);

/// How long the check of all pages at once may take while a service has the file open.
const WHOLE: Duration = Duration::from_millis(250);

/// How long the check rests between two slices while the WAL is long.
const LONG_REST: Duration = Duration::from_millis(50);

/// The result of a [`check`]: what was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// The number of rows.
    pub rows: u64,
    /// The number of findings.
    pub findings: u64,
    /// Whether a process had the file open as a store, or may have had.
    pub is_beside: bool,
    /// Whether SQLite has checked all pages, including the free ones. While a service has the file open, this is
    /// skipped if it would take long; the pages with rows are read in any case.
    pub all_pages: bool,
}

/// Checks a file for damage, with or without a service that has it open, and passes each finding to `found`. Nothing is
/// changed.
///
/// The whole file is read, in short transactions, so that the WAL of a service can be copied and started again
/// meanwhile. Timers that are inserted or moved meanwhile may or may not be checked.
///
/// # Errors
///
/// [`OpenError`]: the file is not a timer database, or cannot be read at all. If it can be read, damage is reported as
/// a [`Finding`].
pub fn check(path: impl AsRef<Path>, found: &mut dyn FnMut(Finding)) -> Result<Checked, OpenError> {
    let path = resolve(path.as_ref()).map_err(|error| OpenError::io(path.as_ref(), error))?;
    let mut findings = 0;
    let mut found = |finding| {
        findings += 1;
        found(finding);
    };
    let is_beside = lock::inspect(&path) != Holder::None;
    match SqliteStore::lost(&path) {
        Ok(Some(loss)) => found(Finding::of_loss(&loss)),
        Err(error @ OpenError::StaleWal(_)) => return Err(error),
        // The checks below report why it cannot be read.
        Ok(None) | Err(_) => {}
    }
    let opened = connect(&path).and_then(|connection| {
        require_current(&connection)?;
        Ok(connection)
    });
    let mut checked = Checked {
        rows: 0,
        findings: 0,
        is_beside,
        all_pages: false,
    };
    match opened {
        Ok(connection) => {
            let mut check = Check {
                wal: length(&wal_of(&path)).max(u64::from(LONGEST_WAL)),
                connection: &connection,
                path: path.clone(),
                is_beside,
                rows: 0,
                found: &mut found,
                orphans: Orphans::default(),
                counted: Counted::default(),
                known: None,
                reading_keys: Duration::ZERO,
            };
            checked.all_pages = check.all().map_err(|error| error.of_file(&path, false))?;
            checked.rows = check.rows;
        }
        Err(OpenError::Corrupt(what)) => found(Finding::of_pages(None, what.to_string())),
        Err(error) => return Err(error.of_file(&path, false)),
    }
    checked.findings = findings;
    Ok(checked)
}

struct Check<'a> {
    connection: &'a Connection,
    path: PathBuf,
    is_beside: bool,
    rows: u64,
    found: &'a mut dyn FnMut(Finding),
    orphans: Orphans,
    counted: Counted,
    known: Option<Known>,
    /// How long the index of the keys took to read.
    reading_keys: Duration,
    /// The length above which a WAL counts as long.
    wal: u64,
}

/// The state that rows are compared with, as one commit left it.
struct Known {
    /// A counter that SQLite raises at each commit of another connection.
    data_version: i64,
    /// The highest handler number; the lowest is 1. `None` if the table cannot be read.
    handlers: Option<i64>,
    /// The number of times the file was opened, or `None` if it cannot be read.
    epoch: Option<u64>,
    /// The index of the keys, once it was needed. The inner `None` means that it cannot be read.
    keys: Option<Option<KeyIndex>>,
}

impl Check<'_> {
    /// Checks everything. Returns whether all pages were checked.
    fn all(&mut self) -> Result<bool, OpenError> {
        let all_pages = self.pages()?;
        self.meta()?;
        for table in &TABLES {
            self.table(table, &mut |check, cells| check.row(table, cells))?;
        }
        self.look_for_missing_counts();
        let keys = KeyIndex::read(self.connection, Sizes::USUAL).map(drop);
        self.of_table(Some("key_runs"), keys)?;
        self.look_for_lost_keys()?;
        Ok(all_pages)
    }

    /// Lets SQLite check all pages. If a service has the file open, this is interrupted when it takes long.
    fn pages(&mut self) -> Result<bool, OpenError> {
        let interrupt = self.connection.get_interrupt_handle();
        let (ended, has_ended) = mpsc::channel::<()>();
        let is_beside = self.is_beside;
        let connection = self.connection;
        let lines = thread::scope(|scope| {
            scope.spawn(move || {
                // If the check ends earlier, the sender is dropped.
                if is_beside
                    && has_ended.recv_timeout(WHOLE) == Err(mpsc::RecvTimeoutError::Timeout)
                {
                    interrupt.interrupt();
                }
            });
            let lines = integrity(connection);
            drop(ended);
            lines
        });
        let lines = match lines {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                return Ok(false);
            }
            lines => self.of_table(None, lines)?,
        };
        for (table, what) in lines.unwrap_or_default() {
            (self.found)(Finding::of_pages(table, what));
        }
        Ok(true)
    }

    fn meta(&mut self) -> Result<(), OpenError> {
        for key in ["epoch", "key secret 1", "key secret 2"] {
            if let Err(error) = read_meta(self.connection, key) {
                let read: rusqlite::Result<()> = Err(error);
                self.of_table(Some("meta"), read)?;
            }
        }
        Ok(())
    }

    /// Returns the result of a read. Damage becomes a finding.
    fn of_table<T>(
        &mut self,
        table: Option<&str>,
        read: rusqlite::Result<T>,
    ) -> Result<Option<T>, OpenError> {
        use ErrorCode::{DatabaseCorrupt, NotADatabase, SystemIoFailure, Unknown};
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) => match error.sqlite_error_code() {
                None | Some(DatabaseCorrupt | NotADatabase | SystemIoFailure | Unknown) => {
                    let what = boxed(error).to_string();
                    (self.found)(Finding::of_pages(table.map(str::to_owned), what));
                    Ok(None)
                }
                Some(_) => Err(OpenError::of(error)),
            },
        }
    }

    /// Reads a table in slices, and passes each row to `look`.
    fn table(
        &mut self,
        table: &Table,
        look: &mut dyn FnMut(&mut Self, &mut Cells<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), OpenError> {
        let mut after: Option<Vec<Value>> = None;
        // Rows appended meanwhile are not read: a service may append them as fast as they are read.
        let last = match table.last_sql() {
            Some(sql) => {
                let last = self.connection.query_row(&sql, [], |row| row.get(0));
                match self.of_table(Some(table.name), last)? {
                    Some(last) => Some(last),
                    None => return Ok(()),
                }
            }
            None => None,
        };
        loop {
            let begun = Instant::now();
            let slice = self.slice(table, &mut after, last.as_ref(), look);
            match self.of_table(Some(table.name), slice)? {
                Some(true) => {}
                Some(false) => return Ok(()),
                // A page cannot be read, so no key leads to what comes after it.
                None => {
                    self.orphans.is_partial |= ["timers", "archive"].contains(&table.name);
                    self.counted.is_partial |= table.name == "dead";
                    return Ok(());
                }
            }
            self.rest(begun.elapsed());
        }
    }

    /// Reads the rows after a key, and advances it. Returns whether there may be more.
    fn slice(
        &mut self,
        table: &Table,
        after: &mut Option<Vec<Value>>,
        last: Option<&Value>,
        look: &mut dyn FnMut(&mut Self, &mut Cells<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<bool> {
        let transaction = self.connection.unchecked_transaction()?;
        let begun = Instant::now();
        self.know(&transaction)?;
        let mut statement = transaction.prepare_cached(&table.sql(after.is_some()))?;
        let mut rows = statement.query(rusqlite::params_from_iter(after.iter().flatten()))?;
        while let Some(row) = rows.next()? {
            let mut cells = Cells::new(&transaction, table, row)?;
            let key = cells.key()?;
            if after.as_ref().is_some_and(|after| !is_after(&key, after)) {
                let row = cells.name();
                return Err(damaged(format!(
                    "the row {row} is out of order, so a lookup may not find rows"
                )));
            }
            if last.is_some_and(|last| is_after(&key, std::slice::from_ref(last))) {
                return Ok(false);
            }
            *after = Some(key);
            look(self, &mut cells)?;
            self.rows += 1;
            cells.hand_over(self.found);
            // The index of the keys is read for each slice; however large it is, that must not be most of the slice's time.
            if begun.elapsed() >= SLICE.max(2 * self.reading_keys) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the state that rows are compared with, if another connection has committed.
    fn know(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let data_version: i64 =
            connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        if self
            .known
            .as_ref()
            .is_none_or(|it| it.data_version != data_version)
        {
            let sql = "SELECT coalesce(max(number), 0) FROM handlers";
            let handlers = connection.query_row(sql, [], |row| row.get(0)).ok();
            let epoch = read_meta(connection, "epoch").ok();
            self.known = Some(Known {
                data_version,
                handlers,
                epoch: epoch.map(i64::unsigned_abs),
                keys: None,
            });
        }
        Ok(())
    }

    /// Returns the index of the keys, or `None` if it is damaged, which the check of its own tables reports.
    fn keys(&mut self, connection: &Connection) -> Option<&KeyIndex> {
        let known = self.known.as_mut()?;
        let reading_keys = &mut self.reading_keys;
        let keys = known.keys.get_or_insert_with(|| {
            let begun = Instant::now();
            let keys = KeyIndex::read(connection, Sizes::USUAL).ok();
            *reading_keys = begun.elapsed();
            keys
        });
        keys.as_ref()
    }

    /// Rests, so that the service can continue.
    fn rest(&self, took: Duration) {
        if self.is_beside {
            let is_long = length(&wal_of(&self.path)) > self.wal;
            thread::sleep(if is_long { took.max(LONG_REST) } else { took });
        }
    }
}

/// SQLite's findings about the pages: the table, if SQLite names it, and the problem.
fn integrity(connection: &Connection) -> rusqlite::Result<Vec<(Option<String>, String)>> {
    let mut check = connection.prepare("PRAGMA integrity_check")?;
    let said = check.query_map([], |row| row.get::<_, String>(0))?;
    let said: Vec<String> = said.collect::<Result<_, _>>()?;
    let lines = said.iter().flat_map(|said| said.lines());
    // Rows have their own check, which identifies them.
    let lines = lines.filter(|line| {
        *line != "ok" && !line.starts_with("***") && !line.starts_with("NULL value in")
    });
    let lines = lines.map(|line| {
        let root = line.strip_prefix("Tree ").and_then(|rest| {
            let root = rest.split(' ').next()?.parse::<i64>().ok()?;
            let sql = "SELECT tbl_name FROM sqlite_schema WHERE rootpage = ?1";
            connection.query_row(sql, [root], |row| row.get(0)).ok()
        });
        (root, line.to_owned())
    });
    Ok(lines.collect())
}

/// Whether a key comes after another one in SQLite's order.
fn is_after(key: &[Value], other: &[Value]) -> bool {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    };
    let orders = key
        .iter()
        .zip(other)
        .map(|(one, other)| match (one, other) {
            (Value::Integer(one), Value::Integer(other)) => one.cmp(other),
            (Value::Text(one), Value::Text(other)) => one.cmp(other),
            (Value::Blob(one), Value::Blob(other)) => one.cmp(other),
            // No table has fractional numbers in its key, so their order does not matter.
            (Value::Real(_), _) | (_, Value::Real(_)) => Ordering::Greater,
            (one, other) => rank(one).cmp(&rank(other)),
        });
    orders.fold(Ordering::Equal, Ordering::then) == Ordering::Greater
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
