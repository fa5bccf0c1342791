//! The `SplitMix64` generator: random enough for delays, and reproducible.

use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// The generator with this number. Each number of a seed gives another sequence.
    pub(crate) fn new(seed: u64, number: u64) -> Dice {
        Dice(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from((most - least).as_nanos()).unwrap_or(u64::MAX);
        least + Duration::from_nanos(self.roll(span.max(1)))
    }
}
