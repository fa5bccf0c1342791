//! The operating system's figures of this process.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use waterwheel_bench_kit::machine;

/// The number of bytes that the process has written to the disk.
pub(crate) fn written() -> f64 {
    io("write_bytes")
}

/// The number of bytes that the process has read from the disk.
pub(crate) fn read() -> f64 {
    io("read_bytes")
}

/// The peak memory of the process, in bytes.
pub(crate) fn peak_memory() -> f64 {
    machine::peak_memory() as f64
}

/// The current memory of the process, in bytes.
pub(crate) fn memory() -> f64 {
    machine::resident() as f64
}

/// The CPU time of all threads, including those that have ended.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
    Duration::from_nanos(nanos)
}

fn io(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let value = machine::field(&text, name).and_then(|it| it.parse().ok());
    value.unwrap_or(f64::NAN)
}
