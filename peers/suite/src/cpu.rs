//! What the measured threads cost: their CPU time, and how often they woke up.
//!
//! Measured is every thread but the main one, which only waits and counts here: the workers, the bell, and whatever
//! else a contestant started. A thread that is running is up to a scheduler tick (4 ms) behind, one that ended is
//! missing: read while the workers rest.

use std::fs;
use std::path::Path;

/// CPU nanoseconds of all measured threads. `None` where there is no `/proc/*/schedstat`.
///
/// `/proc/self/schedstat` would be the main thread's alone, and `/proc/self/stat` counts in hundredths of a second.
pub(crate) fn nanos() -> Option<u64> {
    let nanos = sum(|thread| {
        let line = fs::read_to_string(thread.join("schedstat")).ok()?;
        line.split_ascii_whitespace().next()?.parse().ok()
    });
    nanos.filter(|&nanos| nanos > 0)
}

/// How often those measured threads whose name is wanted gave up the processor to wait, and so were woken. `None` if
/// there is no such thread.
pub(crate) fn wake_ups(wanted: impl Fn(&str) -> bool) -> Option<u64> {
    sum(|thread| {
        let name = fs::read_to_string(thread.join("comm")).ok()?;
        if !wanted(name.trim_end()) {
            return None;
        }
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse().ok()
    })
}

/// A figure of each measured thread, summed up. A thread without one does not count: it may have ended between the
/// listing and the reading. `None` if no thread has it.
fn sum(figure: impl Fn(&Path) -> Option<u64>) -> Option<u64> {
    let main = std::process::id().to_string();
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten();
    threads
        .filter(|thread| thread.file_name() != *main)
        .filter_map(|thread| figure(&thread.path()))
        .reduce(|sum, figure| sum + figure)
}
