//! Is this file one that can be read?

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::OpenError;
use crate::schema::{look_into, require_current};
use crate::store::refuse_wal_alone;

/// How long a read waits where readers of the WAL have to: another process opens or closes the file at that moment, and has it for itself.
const BUSY: Duration = Duration::from_secs(5);

pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path)?;
    require_current(&connection)?;
    look_into(&connection).map_err(OpenError::in_tables)?;
    Ok(connection)
}

/// Whatever is in the file.
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
    configure(&connection).map_err(OpenError::of)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // Copying the WAL is for the store.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY)?;
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
        let connection = open(&path).unwrap();
        let refused = connection.execute("UPDATE meta SET value = 7", []);
        let code = refused.unwrap_err().sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::ReadOnly));
        drop(connection);
        fs::remove_dir_all(folder).unwrap();
    }
}
