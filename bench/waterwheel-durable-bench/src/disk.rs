//! How many times a second does this disk sync?

use std::fs::{self, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A commit of one insert: two frames of SQLite's WAL, a page and a header each.
const COMMIT: [u8; 2 * (4_096 + 24)] = [0x5a; 2 * (4_096 + 24)];
/// The length that the store's WAL reaches, in commits.
const COMMITS: u64 = 500;

/// Measures `fdatasync`s a second, each after a write of a commit's size. The file is overwritten from its start like the store's WAL, so that its length
/// does not change: such a sync does less work than that of a growing file, so the figure is higher.
pub(crate) fn syncs_a_second(folder: &Path, time: Duration) -> io::Result<f64> {
    let path = folder.join("syncs");
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    for _ in 0..COMMITS {
        file.write_all(&COMMIT)?;
    }
    file.sync_all()?;
    let start = Instant::now();
    let mut syncs = 0;
    while start.elapsed() < time {
        if syncs % COMMITS == 0 {
            file.rewind()?;
        }
        file.write_all(&COMMIT)?;
        file.sync_data()?;
        syncs += 1;
    }
    let rate = syncs as f64 / start.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}
