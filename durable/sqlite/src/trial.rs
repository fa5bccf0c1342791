use std::path::Path;
use std::{fs, io};

use super::schema::Step;

/// What differs in tests of faults, and nothing else does: the VFS, without which there is a lock file, and what follows.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The name of the VFS that has the file. `None` is SQLite's own.
    pub vfs: Option<&'a str>,
    /// What reads a whole file of it.
    pub read: fn(&Path) -> io::Result<Vec<u8>>,
    /// The value of `PRAGMA synchronous`, to see a test fail.
    pub synchronous: &'a str,
    /// How many pages the log has before they are copied into the file.
    pub long_log: i64,
    /// The steps from older versions of the tables.
    pub steps: &'a [Step],
}

impl Trial<'_> {
    /// None: what is used.
    pub const NONE: Trial<'static> = Trial {
        vfs: None,
        read: |path| fs::read(path),
        synchronous: "EXTRA",
        long_log: 1_000,
        steps: &super::schema::STEPS,
    };
}
