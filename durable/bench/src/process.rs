//! What the operating system says of this process.

use std::fs;
use std::time::Duration;

/// The bytes that it has sent to the disk.
pub(crate) fn written() -> f64 {
    field("/proc/self/io", "write_bytes:").unwrap_or(f64::NAN)
}

/// The most memory that it has had so far, in bytes.
pub(crate) fn peak_memory() -> f64 {
    field("/proc/self/status", "VmHWM:").map_or(f64::NAN, |kilobytes| kilobytes * 1_024.0)
}

/// The CPU time of all of its threads, with those that have ended, by the kernel's ticks.
pub(crate) fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may have spaces.
    let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn field(file: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
