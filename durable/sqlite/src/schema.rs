//! Which tables are there, and is this file one of ours?

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

use super::OpenError;

/// The version of the tables. A file of a newer one is refused.
pub(crate) const VERSION: i64 = 1;

/// In the file's header, in letters: `WWtm`.
const APPLICATION: i64 = 0x5757_746d;

/// `handler` is 0 in far levels, where `far_handler` has its number; in the finest level `far_handler` is null, which takes no space.
const TABLES: &str = "
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
        PRIMARY KEY (level, handler, bucket, id)
    ) WITHOUT ROWID;
    CREATE TABLE handlers (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE moved (id INTEGER PRIMARY KEY, due INTEGER NOT NULL);
    CREATE TABLE keys (
        handler INTEGER NOT NULL,
        key BLOB NOT NULL,
        id INTEGER NOT NULL,
        due INTEGER NOT NULL,
        PRIMARY KEY (handler, key)
    ) WITHOUT ROWID;
    CREATE TABLE dead (
        id INTEGER PRIMARY KEY,
        handler INTEGER NOT NULL,
        due INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        has_moved INTEGER NOT NULL,
        key BLOB,
        payload BLOB NOT NULL,
        at INTEGER NOT NULL,
        error TEXT NOT NULL
    );
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('epoch', 0);
";

/// Opens the file and creates the tables in a new one. A file that is refused is not written to.
pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(OpenError::of)?;
    // A file that is refused stays as it is, and a store that has failed syncs nothing more.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(OpenError::of)?;
    connection.set_prepared_statement_cache_capacity(64);
    let is_new = inspect(&connection)?;
    configure(&connection).map_err(OpenError::of)?;
    if is_new {
        create(&connection).map_err(OpenError::of)?;
    }
    look_into(&connection).map_err(OpenError::in_tables)?;
    Ok(connection)
}

/// Whether the file is empty; an error if it is another's.
fn inspect(connection: &Connection) -> Result<bool, OpenError> {
    let ask = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = ask("PRAGMA application_id").map_err(OpenError::of)?;
    let version = ask("PRAGMA user_version").map_err(OpenError::of)?;
    let tables = ask("SELECT count(*) FROM sqlite_schema").map_err(OpenError::of)?;
    match application {
        0 if tables == 0 && version == 0 => Ok(true),
        APPLICATION if version > VERSION => Err(OpenError::Newer { found: version }),
        APPLICATION if version == VERSION => Ok(false),
        APPLICATION => Err(OpenError::Corrupt(
            format!("there is no version {version} of the tables").into(),
        )),
        _ => Err(OpenError::NotOurs),
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // SQLite leaves the mode as it is where the file system cannot share memory; then its older journal syncs each commit as well.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -16000;
         PRAGMA trusted_schema = OFF;",
    )?;
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

/// Reads a row of each table, by the columns that are used.
fn look_into(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT value FROM meta WHERE key = 'epoch'", [], |row| {
        row.get::<_, i64>(0)
    })?;
    for sql in [
        "SELECT level, handler, bucket, id, due, failures, has_moved, far_handler, key, payload FROM timers LIMIT 1",
        "SELECT number, name FROM handlers LIMIT 1",
        "SELECT id, due FROM moved LIMIT 1",
        "SELECT handler, key, id, due FROM keys LIMIT 1",
        "SELECT id, handler, due, failures, has_moved, key, payload, at, error FROM dead LIMIT 1",
    ] {
        let mut statement = connection.prepare(sql)?;
        statement.query([])?.next()?;
    }
    Ok(())
}
