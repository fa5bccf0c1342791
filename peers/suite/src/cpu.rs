//! The CPU time of the measured threads.

use std::fs;

/// CPU nanoseconds of every thread but the main one, which only waits and counts here: the workers, the bell, and
/// whatever else a contestant started. `None` where there is no `/proc/*/schedstat`.
///
/// `/proc/self/schedstat` would be the main thread's alone, and `/proc/self/stat` counts in hundredths of a second. A thread that
/// is running is up to a scheduler tick (4 ms) behind, one that ended is missing: read while the workers rest.
pub(crate) fn nanos() -> Option<u64> {
    let main = std::process::id().to_string();
    let mut sum = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let thread = thread.ok()?;
        if thread.file_name() == *main {
            continue;
        }
        // A thread may end between the listing and the reading.
        let Ok(line) = fs::read_to_string(thread.path().join("schedstat")) else {
            continue;
        };
        sum += line.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
    }
    (sum > 0).then_some(sum)
}
