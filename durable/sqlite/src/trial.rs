use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::keys::Sizes;
use super::schema::Step;
use super::vacuum::Vacuum;

/// What differs in tests of faults, and nothing else does: the VFS, without which there is a lock file, and what follows.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The name of the VFS that has the file. `None` is SQLite's own.
    pub vfs: Option<&'a str>,
    /// What reads a file of it: from this byte on so many, or fewer if it ends before.
    pub read: fn(&Path, u64, usize) -> io::Result<Vec<u8>>,
    /// The value of `PRAGMA synchronous`, to see a test fail.
    pub synchronous: &'a str,
    /// How many pages the log has before they are copied into the file.
    pub long_log: i64,
    /// How the index of the keys is kept.
    pub key_sizes: Sizes,
    /// When the file becomes shorter.
    pub vacuum: Vacuum,
    /// The steps from older versions of the tables.
    pub steps: &'a [Step],
}

impl Trial<'_> {
    /// None: what is used.
    pub const NONE: Trial<'static> = Trial {
        vfs: None,
        read,
        synchronous: "EXTRA",
        long_log: 1_000,
        key_sizes: Sizes::USUAL,
        vacuum: Vacuum::USUAL,
        steps: &super::schema::STEPS,
    };
}

fn read(path: &Path, at: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
