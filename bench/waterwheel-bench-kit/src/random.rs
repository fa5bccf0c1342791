//! Random numbers.

use std::ops::Range;
use std::time::Duration;

/// The generator with this number. Each number of a seed gives a different sequence.
pub fn generator(seed: u64, number: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

/// A uniform duration within a range. The start of an empty one.
pub fn duration(random: &mut fastrand::Rng, range: Range<Duration>) -> Duration {
    let width = range.end.saturating_sub(range.start).as_nanos();
    let width = u64::try_from(width).unwrap_or(u64::MAX);
    range.start + Duration::from_nanos(random.u64(0..width.max(1)))
}
