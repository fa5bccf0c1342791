//! Opening a file: is it one of ours, and how is SQLite set up?

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

/// How many bytes the WAL has at most once it is begun again.
pub(crate) const LONGEST_WAL: u32 = 8 << 20;

/// How long a call of the store waits for another connection. Its thread has other work, and what is refused is tried again.
const BUSY: Duration = Duration::from_millis(50);

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

/// SQLite would delete the WAL then. It may have all timers: they are copied into the file only now and then.
pub(crate) fn refuse_wal_alone(path: &Path) -> Result<(), OpenError> {
    match is_empty(path)? && !is_empty(&wal_of(path))? {
        true => {
            let what = "it is empty or missing, but its `-wal` is not";
            Err(OpenError::Corrupt(what.into()))
        }
        false => Ok(()),
    }
}

/// Whether a file has no byte, or is not there.
pub(crate) fn is_empty(path: &Path) -> Result<bool, OpenError> {
    match fs::metadata(path) {
        Ok(file) => Ok(file.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(OpenError::io(path, error)),
    }
}

/// How long a read waits where readers of the WAL have to: another process opens or closes the file at that moment, and has it for itself.
const BUSY_READ: Duration = Duration::from_secs(5);

/// Opens a file of this version, to read it.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path)?;
    require_current(&connection)?;
    look_into(&connection).map_err(OpenError::in_tables)?;
    Ok(connection)
}

/// Connects to a file, whatever it contains.
pub(crate) fn connect(path: &Path) -> Result<Connection, OpenError> {
    refuse_wal_alone(path)?;
    // SQLite's own words are the same for all of these.
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
    // Copying the WAL is for the store.
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
