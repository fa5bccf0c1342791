//! What the operating system says of this process.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The bytes that it has sent to the disk.
pub(crate) fn written() -> f64 {
    field("/proc/self/io", "write_bytes:").unwrap_or(f64::NAN)
}

/// The bytes that it has fetched from the disk.
pub(crate) fn read() -> f64 {
    field("/proc/self/io", "read_bytes:").unwrap_or(f64::NAN)
}

/// The most memory that it has had so far, in bytes.
pub(crate) fn peak_memory() -> f64 {
    field("/proc/self/status", "VmHWM:").map_or(f64::NAN, |kilobytes| kilobytes * 1_024.0)
}

/// The memory that it has now, in bytes.
pub(crate) fn memory() -> f64 {
    field("/proc/self/status", "VmRSS:").map_or(f64::NAN, |kilobytes| kilobytes * 1_024.0)
}

/// The CPU time of all of its threads, with those that have ended.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
    Duration::from_nanos(nanos)
}

fn field(file: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
