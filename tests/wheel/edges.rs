//! The numbers at which timing wheels fail.

use std::time::Duration;

use waterwheel::wheel::Resolution;

/// The ticks in a year at one millisecond. At other resolutions it is a long time.
pub(crate) const YEAR: u64 = 365 * 86_400_000;

/// The default resolution, the finest, a coarser one and the coarsest.
pub(crate) fn resolutions() -> [Resolution; 4] {
    [1_000, 100, 10_000, 1_000_000].map(|micros| {
        Resolution::new(Duration::from_micros(micros)).expect("each divides a second")
    })
}

/// The ticks in a second.
pub(crate) fn second(resolution: Resolution) -> u64 {
    u64::from(resolution.ticks_per_second())
}

/// The ticks in a full revolution of each dial: a second, a minute, an hour, a day, 64 days.
pub(crate) fn revolutions(resolution: Resolution) -> [u64; 5] {
    [1, 60, 3_600, 86_400, 64 * 86_400].map(|seconds| seconds * second(resolution))
}

/// A full revolution of each dial less one tick, a full revolution, one tick more, and two less one tick. Not zero.
pub(crate) fn delays(resolution: Resolution) -> Vec<u64> {
    let around = |whole: u64| [whole - 1, whole, whole + 1, 2 * whole - 1];
    let delays = revolutions(resolution).into_iter().flat_map(around);
    delays.filter(|&delay| delay > 0).collect()
}

/// Positions of a clock: near zero, near each wrap of a dial or of a counter, beyond the last
/// dial, near the end of time.
pub(crate) fn starts(resolution: Resolution) -> Vec<u64> {
    let mut starts = vec![0, 1, u64::MAX - 1, u64::MAX];
    for wrap in revolutions(resolution) {
        starts.extend([wrap - 1, wrap, wrap + 1, 1_000 * wrap - 1, u64::MAX - wrap]);
    }
    // 49.7 days of milliseconds, the same in microseconds, and what a signed counter holds.
    for wrap in [1 << 31, 1 << 32, (1 << 32) * 1_000, 1 << 63] {
        starts.extend([wrap - 1, wrap, wrap + 1]);
    }
    starts
}
