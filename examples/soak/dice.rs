//! Random numbers that the seed decides: splitmix64.

use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Different ones for different numbers of a seed.
    pub(crate) fn new(seed: u64, number: u64) -> Dice {
        Dice(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// To the microsecond.
    pub(crate) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least * 1_000 + self.roll((most - least) * 1_000 + 1))
    }
}
