//! Opening a file: is it one of ours, and how is SQLite configured?

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::error::OpenError;
use super::files::wal_of;
use super::meta::read_meta;
use super::options::OpenOptions;
use super::read::Handlers;
use super::schema::{APPLICATION, DEVELOPMENT, Step, TABLES, VERSION};
use super::vacuum;

/// The maximum size of the WAL in bytes once it is restarted.
pub(crate) const LONGEST_WAL: u32 = 8 << 20;

/// How long a call of the store waits for another connection. Its thread has other work, and a refused call is retried.
const BUSY: Duration = Duration::from_millis(50);

/// Opens the file and creates the tables in a new one, or upgrades those of an older version. A refused file is not written to: everything that can be wrong
/// with it is checked before.
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
    // SQLite opens a file read-only if it cannot write to it.
    if connection.is_readonly(MAIN_DB).map_err(OpenError::of)? {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        let error = rusqlite::Error::SqliteFailure(code, None);
        return Err(OpenError::of(error));
    }
    // A refused file stays as it is, and a failed store syncs nothing more.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(OpenError::of)?;
    // A plan does not depend on the bound parameters. Otherwise SQLite prepares a statement with `LIMIT ?` again for each call.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(OpenError::of)?;
    connection.set_prepared_statement_cache_capacity(64);
    let found = version(&connection)?;
    match found {
        // Must come before the first page is written.
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

/// Returns the version of the tables, or `None` if the file is empty. Fails if the version is newer, or the file is not ours.
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

/// Refuses a file whose tables are not of this version: it is not opened as a store, which would upgrade them.
pub(crate) fn require_current(connection: &Connection) -> Result<(), OpenError> {
    match version(connection)? {
        Some(VERSION) => Ok(()),
        Some(found) => Err(OpenError::Older { found }),
        None => Err(OpenError::Empty),
    }
}

pub(crate) fn configure(connection: &Connection, synchronous: &str) -> rusqlite::Result<()> {
    // SQLite keeps the mode where the file system cannot share memory; its older journal then also syncs each commit.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // In WAL mode, `EXTRA` equals `FULL`; with the older journal it also syncs the directory, without which a deleted journal may reappear after a power cut.
    connection.pragma_update(None, "synchronous", synchronous)?;
    // On macOS, `fsync` does not flush the disk's own cache; elsewhere the last two have no effect.
    connection.execute_batch(
        "PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -16000;
         PRAGMA trusted_schema = OFF;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;",
    )?;
    // Releases the space by which the WAL has grown during a long read transaction.
    let limit = format!("PRAGMA journal_size_limit = {LONGEST_WAL}");
    connection.query_row(&limit, [], |_| Ok(()))?;
    // The store runs checkpoints itself and handles their errors: SQLite ignores the errors of its automatic ones.
    connection.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    let tables = connection.unchecked_transaction()?;
    tables.execute_batch(TABLES)?;
    tables.pragma_update(None, "application_id", APPLICATION)?;
    tables.pragma_update(None, "user_version", VERSION)?;
    tables.commit()
}

/// Upgrades the tables of an older version.
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

/// Reads the whole file, and checks that its pages are consistent.
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

/// Reads a row of each table, with all columns in use, and returns the handlers.
pub(crate) fn look_into(connection: &Connection) -> rusqlite::Result<Handlers> {
    read_meta(connection, "epoch")?;
    for sql in [
        "SELECT level, handler, bucket, id, due, failures, first_due, far_handler, key, tag, retries, payload, starts FROM timers LIMIT 1",
        "SELECT number, name FROM handlers LIMIT 1",
        "SELECT id, due FROM moved LIMIT 1",
        "SELECT tag, id, handler, due FROM tags LIMIT 1",
        "SELECT level, bucket, handler, count FROM pending_counts LIMIT 1",
        "SELECT handler, error, count FROM dead_counts LIMIT 1",
        "SELECT number, entries FROM key_changes LIMIT 1",
        "SELECT number, age, bits, entries, freed, merged_into, done FROM key_runs LIMIT 1",
        "SELECT number, entries FROM key_chunks LIMIT 1",
        "SELECT number, filter FROM key_filters LIMIT 1",
        "SELECT id, handler, due, failures, first_due, key, tag, retries, payload, at, error, starts FROM dead LIMIT 1",
        "SELECT name, value FROM settings LIMIT 1",
        "SELECT handler, day, block, count, first_id, last_id, entries FROM archive LIMIT 1",
        "SELECT number, body, until, is_taken, answer FROM commands LIMIT 1",
    ] {
        let mut statement = connection.prepare(sql)?;
        statement.query([])?.next()?;
    }
    Handlers::read(connection)
}

/// Refuses a WAL without its file: SQLite would delete the WAL. It may contain all timers, because they are copied into the file only now and then.
pub(crate) fn refuse_wal_alone(path: &Path) -> Result<(), OpenError> {
    match is_empty(path)? && !is_empty(&wal_of(path))? {
        true => {
            let what = "it is empty or missing, but its `-wal` is not";
            Err(OpenError::Corrupt(what.into()))
        }
        false => Ok(()),
    }
}

/// Whether a file is empty or does not exist.
pub(crate) fn is_empty(path: &Path) -> Result<bool, OpenError> {
    match fs::metadata(path) {
        Ok(file) => Ok(file.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(OpenError::io(path, error)),
    }
}

/// How long a read waits when readers of the WAL have to: another process is opening or closing the file, and has it locked.
const BUSY_READ: Duration = Duration::from_secs(5);

/// Opens a file of this version for reading.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path)?;
    require_current(&connection)?;
    look_into(&connection).map_err(OpenError::in_tables)?;
    Ok(connection)
}

/// Connects to a file, whatever it contains.
pub(crate) fn connect(path: &Path) -> Result<Connection, OpenError> {
    refuse_wal_alone(path)?;
    // SQLite reports all of these in the same words.
    match fs::metadata(path) {
        Ok(file) if file.is_dir() => {
            return Err(OpenError::io(path, io::ErrorKind::IsADirectory.into()));
        }
        Ok(_) => {}
        Err(error) => return Err(OpenError::io(path, error)),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(OpenError::of)?;
    configure_to_read(&connection).map_err(OpenError::of)?;
    Ok(connection)
}

fn configure_to_read(connection: &Connection) -> rusqlite::Result<()> {
    // Only the store copies the WAL.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY_READ)?;
    connection.execute_batch(
        "PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -16000;
         PRAGMA trusted_schema = OFF;",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_cannot_write() {
        let name = format!("waterwheel-reads-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("timers.db");
        drop(crate::SqliteStore::open(&path).unwrap());
        let connection = open_to_read(&path).unwrap();
        let refused = connection.execute("UPDATE meta SET value = 7", []);
        let code = refused.unwrap_err().sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::ReadOnly));
        drop(connection);
        fs::remove_dir_all(folder).unwrap();
    }
}
