//! The tables of this version, and the steps that upgrade those of older versions.

use rusqlite::Connection;

/// The version of the tables. A file of a newer version is refused.
pub const VERSION: i64 = 1;

/// A step from a version to the next one. It is one transaction that also writes the version number, so the file always has the tables of a single version.
/// Everything that it writes is in the WAL until it is copied.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The version that it begins with.
    pub from: i64,
    /// The statements of the step.
    pub sql: &'static str,
    /// The code that runs after them.
    pub then: Option<fn(&Connection) -> rusqlite::Result<()>>,
}

/// The steps from older versions, in order. No older version was released.
pub const STEPS: [Step; 0] = [];

/// The application id in the file's header: `WWdt`.
pub(crate) const APPLICATION: i64 = 0x5757_6474;

/// The application id of development versions, which had other tables and version numbers.
pub(crate) const DEVELOPMENT: i64 = 0x5757_746d;

/// `handler` is 0 in coarser levels, where `far_handler` has the number; in the finest level `far_handler` is null, which takes no space. `first_due`
/// is null if it is equal to `due`. `moved` has the timers, without dead letters, for which it is not. `tags` has the handles of the timers that have a
/// tag, so that a move does not touch it: an index of `timers` would also take time for timers without one.
pub(crate) const TABLES: &str = "
    CREATE TABLE timers (
        level INTEGER NOT NULL,
        handler INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        id INTEGER NOT NULL,
        due INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        first_due INTEGER,
        far_handler INTEGER,
        key BLOB,
        tag TEXT,
        retries BLOB,
        payload BLOB NOT NULL,
        starts INTEGER NOT NULL,
        PRIMARY KEY (level, handler, bucket, id)
    ) WITHOUT ROWID;
    CREATE TABLE handlers (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE moved (id INTEGER PRIMARY KEY, due INTEGER NOT NULL);
    CREATE TABLE tags (
        tag TEXT NOT NULL,
        id INTEGER NOT NULL,
        handler INTEGER NOT NULL,
        due INTEGER NOT NULL,
        PRIMARY KEY (tag, id)
    ) WITHOUT ROWID;
    CREATE TABLE pending_counts (
        level INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        handler INTEGER NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (level, bucket, handler)
    ) WITHOUT ROWID;
    CREATE TABLE dead_counts (
        handler INTEGER NOT NULL,
        error TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (handler, error)
    ) WITHOUT ROWID;
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
        first_due INTEGER,
        key BLOB,
        tag TEXT,
        retries BLOB,
        payload BLOB NOT NULL,
        at INTEGER NOT NULL,
        error TEXT NOT NULL,
        starts INTEGER NOT NULL
    );
    CREATE INDEX dead_keys ON dead (handler, key) WHERE key IS NOT NULL;
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
