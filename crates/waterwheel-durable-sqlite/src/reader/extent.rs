use std::path::Path;
use std::{fs, io};

use super::snapshot::Snapshot;
use crate::files::wal_of;

/// The size of a file, and other properties of the file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// The version of its tables.
    pub version: i64,
    /// A number that rises each time the file is opened as a store: the ids of newly inserted timers start with it.
    pub epoch: u64,
    /// The size of the file on disk. Commits are written to the WAL first.
    pub bytes: u64,
    /// The size of the WAL next to it.
    pub wal_bytes: u64,
    /// The size of the tables, including free pages.
    pub used_bytes: u64,
    /// The size of the free pages. They are used before the file grows.
    pub free_bytes: u64,
}

pub(crate) fn extent(snapshot: &Snapshot<'_>, path: &Path) -> rusqlite::Result<Extent> {
    let query = |sql| {
        let connection = snapshot.connection;
        connection.query_row(sql, [], |row| row.get::<_, i64>(0))
    };
    let page = query("PRAGMA page_size")?.unsigned_abs();
    let pages = query("PRAGMA page_count")?.unsigned_abs();
    let free = query("PRAGMA freelist_count")?.unsigned_abs();
    Ok(Extent {
        version: query("PRAGMA user_version")?,
        epoch: query("SELECT value FROM meta WHERE key = 'epoch'")?.unsigned_abs(),
        bytes: length(path)?,
        wal_bytes: length(&wal_of(path))?,
        used_bytes: pages * page,
        free_bytes: free * page,
    })
}

/// The length of a file, or 0 if it does not exist.
fn length(path: &Path) -> rusqlite::Result<u64> {
    match fs::metadata(path) {
        Ok(file) => Ok(file.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
    }
}
