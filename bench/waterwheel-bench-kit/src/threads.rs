//! The threads of this process, as listed in `/proc`. Other systems have none.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of each thread. Its name is the thread's number.
pub fn all() -> impl Iterator<Item = PathBuf> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.flatten().map(|thread| thread.path())
}

/// The thread's name, of which the system keeps 15 bytes. `None` if the thread has ended.
pub fn name(thread: &Path) -> Option<String> {
    let name = fs::read_to_string(thread.join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// CPU nanoseconds since the thread started. `None` if it has ended, or if the system does not count them.
///
/// `/proc/self/schedstat` would only cover the main thread, and `/proc/self/stat` counts in hundredths of a second.
pub fn nanos(thread: &Path) -> Option<u64> {
    let line = fs::read_to_string(thread.join("schedstat")).ok()?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
