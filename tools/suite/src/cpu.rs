//! What the measured threads cost: their CPU time, and how often they woke up.
//!
//! Every thread is measured but the main one, which only waits and counts: the workers, the wakeup thread, and all other
//! threads that a contestant started. The figure of a thread that is running is up to a scheduler tick (4 ms) old, so it
//! is read while the workers rest.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// CPU nanoseconds that all measured threads take while something is done. NaN where there is no `/proc/*/schedstat`,
/// and if a thread ended meanwhile, since its figure ends with it.
///
/// `/proc/self/schedstat` would be the main thread's alone, and `/proc/self/stat` counts in hundredths of a second.
pub(crate) fn nanos_of(act: impl FnOnce()) -> f64 {
    let before = readings();
    act();
    let after = readings();
    if before.is_empty() || before.keys().any(|thread| !after.contains_key(thread)) {
        return f64::NAN;
    }
    let sum = |readings: BTreeMap<OsString, u64>| readings.into_values().sum::<u64>();
    sum(after).saturating_sub(sum(before)) as f64
}

/// CPU nanoseconds of all measured threads that there are. `None` if they are not known.
pub(crate) fn nanos() -> Option<u64> {
    readings()
        .into_values()
        .reduce(|sum, nanos| sum + nanos)
        .filter(|&nanos| nanos > 0)
}

fn readings() -> BTreeMap<OsString, u64> {
    of_each(|thread| {
        let line = fs::read_to_string(thread.join("schedstat")).ok()?;
        line.split_ascii_whitespace().next()?.parse().ok()
    })
}

/// The voluntary context switches of the measured threads with a wanted name: how often they waited, and so were woken.
/// `None` if there is no such thread.
pub(crate) fn wake_ups(wanted: impl Fn(&str) -> bool) -> Option<u64> {
    let counts = of_each(|thread| {
        let name = fs::read_to_string(thread.join("comm")).ok()?;
        if !wanted(name.trim_end()) {
            return None;
        }
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse().ok()
    });
    counts.into_values().reduce(|sum, count| sum + count)
}

/// A figure of each measured thread, by the thread's number. A thread without one does not count: it may have ended
/// between the listing and the reading.
fn of_each(figure: impl Fn(&Path) -> Option<u64>) -> BTreeMap<OsString, u64> {
    let main = std::process::id().to_string();
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return BTreeMap::new();
    };
    threads
        .flatten()
        .filter(|thread| thread.file_name() != *main)
        .filter_map(|thread| Some((thread.file_name(), figure(&thread.path())?)))
        .collect()
}
