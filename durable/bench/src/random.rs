//! splitmix64: the same sequence in each run, and no dependency.

/// A generator; the state is the seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Evenly below `bound`, but for a bias of `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at as u64 + 1);
            items.swap(at, usize::try_from(other).unwrap_or(at));
        }
    }
}
