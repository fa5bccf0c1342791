//! The CPU time of the process.

use std::fs;

/// CPU nanoseconds of all its threads so far, to a scheduler tick (4 ms). NaN where there is no
/// `/proc/*/schedstat`.
pub(crate) fn nanos() -> f64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return f64::NAN;
    };
    let of_thread = |line: String| line.split_ascii_whitespace().next()?.parse::<f64>().ok();
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .map(|line| of_thread(line).unwrap_or(f64::NAN))
        .sum()
}
