use std::time::{Duration, SystemTime};

use super::files::Files;
use super::lsm::Sizes;
use super::schema::{STEPS, Step};
use super::vacuum::Vacuum;

/// All options for opening a file. [`Sqlite`](super::Sqlite) sets some of them for users; tests also set the others, to inject faults and to reach limits sooner.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The name of the VFS, or `None` for SQLite's own.
    pub vfs: Option<&'a str>,
    /// The file operations that do not go through SQLite.
    pub files: Files,
    /// The value of `PRAGMA synchronous`. Tests lower it to see that they fail.
    pub synchronous: &'a str,
    /// The number of pages in the WAL at which they are copied into the file.
    pub long_wal: i64,
    /// The number of uncopied pages at which a separate thread copies the WAL. On a VFS, it never does.
    pub checkpointer_wal: i64,
    /// The sizes of the index of the keys.
    pub key_sizes: Sizes,
    /// When the file shrinks.
    pub vacuum: Vacuum,
    /// The steps from older versions of the tables.
    pub steps: &'a [Step],
    /// The minimum and maximum length of the reserve. If both are 0, there is none.
    pub reserve: (u64, u64),
    /// How long a full disk is considered full before it is checked again.
    pub full: Duration,
    /// The wall clock, from which the first opening of a copy derives its epoch.
    pub now: fn() -> SystemTime,
    /// The maximum size of the file.
    pub limit: Option<u64>,
    /// Whether a file is opened although acknowledged work is gone.
    pub accept_loss: bool,
}

impl OpenOptions<'_> {
    /// The options of [`SqliteStore::open`](super::SqliteStore::open).
    pub const DEFAULT: OpenOptions<'static> = OpenOptions {
        vfs: None,
        files: Files::SYSTEM,
        synchronous: "EXTRA",
        long_wal: 1_000,
        checkpointer_wal: 8_192,
        key_sizes: Sizes::USUAL,
        vacuum: Vacuum::USUAL,
        steps: &STEPS,
        reserve: (1 << 20, 16 << 20),
        full: Duration::from_secs(1),
        now: SystemTime::now,
        limit: None,
        accept_loss: false,
    };
}
