//! splitmix64: the same sequence for every contestant, and no dependency.

use std::ops::Range;
use std::time::Duration;

/// A generator; the state is the seed.
pub(crate) struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Evenly below `bound`, but for a bias of `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Evenly within `range`.
    pub(crate) fn duration(&mut self, range: &Range<Duration>) -> Duration {
        let width = range.end - range.start;
        range.start + Duration::from_nanos(self.below(width.as_nanos() as u64))
    }
}
