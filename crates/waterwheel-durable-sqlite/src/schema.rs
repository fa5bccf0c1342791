//! Which tables are there, and is this file one of ours?

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension};
use std::path::Path;
use std::time::Duration;

use super::OpenError;
use super::handlers::Handlers;
use super::open_options::OpenOptions;
use super::vacuum;
use super::words::{damaged, in_row};

/// The version of the tables. A file of a newer one is refused.
pub const VERSION: i64 = 1;

/// From a version to the next one. It is one transaction, with the number of the version in it, so that a file has the tables of one version, whatever
/// happens. The WAL has all that it writes until it is copied.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The version that it begins with.
    pub from: i64,
    /// What it does.
    pub sql: &'static str,
    /// What it does after that.
    pub then: Option<fn(&Connection) -> rusqlite::Result<()>>,
}

/// The steps from older versions, in order. None was released before this one.
pub const STEPS: [Step; 0] = [];

/// How many bytes the WAL has at most once it is begun again.
pub(crate) const LONGEST_WAL: u32 = 8 << 20;

/// How long a call of the store waits for another connection. Its thread has other work, and what is refused is tried again.
const BUSY: Duration = Duration::from_millis(50);

/// In the file's header: `WWdt`.
const APPLICATION: i64 = 0x5757_6474;

/// The same of development versions, whose tables and version numbers were others.
const DEVELOPMENT: i64 = 0x5757_746d;

/// `handler` is 0 in far levels, where `far_handler` has its number; in the finest level `far_handler` is null, which takes no space.
pub(super) const TABLES: &str = "
    CREATE TABLE timers (
        level INTEGER NOT NULL,
        handler INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        id INTEGER NOT NULL,
        due INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        has_moved INTEGER NOT NULL,
        far_handler INTEGER,
        key BLOB,
        payload BLOB NOT NULL,
        starts INTEGER NOT NULL,
        PRIMARY KEY (level, handler, bucket, id)
    ) WITHOUT ROWID;
    CREATE TABLE handlers (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE moved (id INTEGER PRIMARY KEY, due INTEGER NOT NULL);
    CREATE TABLE key_changes (number INTEGER PRIMARY KEY, entries BLOB NOT NULL);
    CREATE TABLE key_runs (
        number INTEGER PRIMARY KEY,
        age INTEGER NOT NULL,
        bits INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        freed INTEGER NOT NULL,
        merged_into INTEGER,
        done INTEGER NOT NULL
    );
    CREATE TABLE key_chunks (number INTEGER PRIMARY KEY, entries BLOB NOT NULL);
    CREATE TABLE key_filters (number INTEGER PRIMARY KEY, filter BLOB NOT NULL);
    CREATE TABLE dead (
        id INTEGER PRIMARY KEY,
        handler INTEGER NOT NULL,
        due INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        has_moved INTEGER NOT NULL,
        key BLOB,
        payload BLOB NOT NULL,
        at INTEGER NOT NULL,
        error TEXT NOT NULL,
        starts INTEGER NOT NULL
    );
    CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE archive (
        handler INTEGER NOT NULL,
        day INTEGER NOT NULL,
        block INTEGER NOT NULL,
        count INTEGER NOT NULL,
        first_id INTEGER NOT NULL,
        last_id INTEGER NOT NULL,
        entries BLOB NOT NULL,
        PRIMARY KEY (handler, day, block)
    ) WITHOUT ROWID;
    CREATE TABLE commands (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        body TEXT NOT NULL,
        until INTEGER NOT NULL,
        is_taken INTEGER NOT NULL DEFAULT 0,
        answer TEXT
    );
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('epoch', 0), ('key secret 1', random()), ('key secret 2', random());
";

/// Opens the file and creates the tables in a new one, or brings those of an older version up to date. A file that is refused is not written to: all that can
/// be wrong with it is looked for before.
pub(crate) fn open(
    path: &Path,
    options: &OpenOptions<'_>,
) -> Result<(Connection, Handlers), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    };
    let connection = connection.map_err(OpenError::of)?;
    // SQLite opens a file to read it if it cannot be written to.
    if connection.is_readonly(MAIN_DB).map_err(OpenError::of)? {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        let error = rusqlite::Error::SqliteFailure(code, None);
        return Err(OpenError::of(error));
    }
    // A file that is refused stays as it is, and a store that has failed syncs nothing more.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(OpenError::of)?;
    // A plan does not depend on what a parameter is bound to. Otherwise SQLite prepares a statement with `LIMIT ?` again for each call.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(OpenError::of)?;
    connection.set_prepared_statement_cache_capacity(64);
    let found = version(&connection)?;
    match found {
        // Before the first page is written.
        None => vacuum::prepare(&connection).map_err(OpenError::of)?,
        Some(VERSION) => {
            look_into(&connection).map_err(OpenError::in_tables)?;
        }
        Some(older) if options.steps.iter().all(|step| step.from != older) => {
            let what = format!("there is no version {older} of the tables");
            return Err(OpenError::Corrupt(what.into()));
        }
        Some(_) => {}
    }
    configure(&connection, options.synchronous).map_err(OpenError::of)?;
    match found {
        None => create(&connection).map_err(OpenError::of)?,
        Some(VERSION) => {}
        Some(older) => migrate(&connection, older, options.steps).map_err(OpenError::in_tables)?,
    }
    let handlers = look_into(&connection).map_err(OpenError::in_tables)?;
    connection.busy_timeout(BUSY).map_err(OpenError::of)?;
    Ok((connection, handlers))
}

/// The version of the tables, which is not a newer one. `None` if the file is empty; an error if it is not a file of ours.
fn version(connection: &Connection) -> Result<Option<i64>, OpenError> {
    let query = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = query("PRAGMA application_id").map_err(OpenError::of)?;
    let version = query("PRAGMA user_version").map_err(OpenError::of)?;
    let tables = query("SELECT count(*) FROM sqlite_schema").map_err(OpenError::of)?;
    match application {
        0 if tables == 0 && version == 0 => Ok(None),
        APPLICATION if version > VERSION => Err(OpenError::Newer { found: version }),
        APPLICATION => Ok(Some(version)),
        DEVELOPMENT => Err(OpenError::Development),
        _ => Err(OpenError::NotOurs),
    }
}

/// Refuses a file whose tables are not those of this version: it is not opened as a store, which would bring them up to date.
pub(crate) fn require_current(connection: &Connection) -> Result<(), OpenError> {
    match version(connection)? {
        Some(VERSION) => Ok(()),
        Some(found) => Err(OpenError::Older { found }),
        None => Err(OpenError::Empty),
    }
}

pub(crate) fn configure(connection: &Connection, synchronous: &str) -> rusqlite::Result<()> {
    // SQLite leaves the mode as it is where the file system cannot share memory; then its older journal syncs each commit as well.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // `EXTRA` is `FULL`, and the older journal syncs the folder, too: else the journal that a commit has deleted may be there after a power cut.
    connection.pragma_update(None, "synchronous", synchronous)?;
    // On macOS, `fsync` leaves the disk's own cache as it is; elsewhere the last two are the same as without.
    connection.execute_batch(
        "PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -16000;
         PRAGMA trusted_schema = OFF;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;",
    )?;
    // What the WAL has grown by, beside a reader that took long, is given back.
    let limit = format!("PRAGMA journal_size_limit = {LONGEST_WAL}");
    connection.query_row(&limit, [], |_| Ok(()))?;
    // The store does it, and looks at what comes of it: SQLite ignores the errors of its own.
    connection.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    let tables = connection.unchecked_transaction()?;
    tables.execute_batch(TABLES)?;
    tables.pragma_update(None, "application_id", APPLICATION)?;
    tables.pragma_update(None, "user_version", VERSION)?;
    tables.commit()
}

/// Brings the tables of an older version up to date.
fn migrate(connection: &Connection, older: i64, steps: &[Step]) -> rusqlite::Result<()> {
    let mut version = older;
    while version < VERSION {
        let step = steps.iter().find(|step| step.from == version);
        let step = step.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(step.sql)?;
        if let Some(then) = step.then {
            then(&transaction)?;
        }
        version += 1;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Reads the whole file, and looks whether its pages fit together.
pub(crate) fn check_pages(connection: &Connection) -> Result<(), OpenError> {
    let sql = "PRAGMA integrity_check(1)";
    let said: String = connection
        .query_row(sql, [], |row| row.get(0))
        .map_err(OpenError::in_tables)?;
    match said.as_str() {
        "ok" => Ok(()),
        _ => Err(OpenError::Corrupt(said.replace('\n', " ").into())),
    }
}

/// A number of the table `meta`, which each file has.
pub(crate) fn read_meta(connection: &Connection, key: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let found = connection.query_row(sql, [key], |row| {
        in_row("meta", format_args!("`{key}`"), row.get(0))
    });
    let missing = || damaged(format!("table `meta`: the row `{key}` is missing"));
    found.optional()?.ok_or_else(missing)
}

/// Reads a row of each table, by the columns that are used, and the handlers.
pub(crate) fn look_into(connection: &Connection) -> rusqlite::Result<Handlers> {
    read_meta(connection, "epoch")?;
    for sql in [
        "SELECT level, handler, bucket, id, due, failures, has_moved, far_handler, key, payload, starts FROM timers LIMIT 1",
        "SELECT number, name FROM handlers LIMIT 1",
        "SELECT id, due FROM moved LIMIT 1",
        "SELECT number, entries FROM key_changes LIMIT 1",
        "SELECT number, age, bits, entries, freed, merged_into, done FROM key_runs LIMIT 1",
        "SELECT number, entries FROM key_chunks LIMIT 1",
        "SELECT number, filter FROM key_filters LIMIT 1",
        "SELECT id, handler, due, failures, has_moved, key, payload, at, error, starts FROM dead LIMIT 1",
        "SELECT name, value FROM settings LIMIT 1",
        "SELECT handler, day, block, count, first_id, last_id, entries FROM archive LIMIT 1",
        "SELECT number, body, until, is_taken, answer FROM commands LIMIT 1",
    ] {
        let mut statement = connection.prepare(sql)?;
        statement.query([])?.next()?;
    }
    Handlers::read(connection)
}
