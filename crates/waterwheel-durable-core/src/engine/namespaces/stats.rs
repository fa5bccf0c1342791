//! What has come of the timers of a namespace so far, and how late were deliveries?

/// What has come of a namespace's timers since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub inserted: u64,
    /// Inserts with a key that another timer has.
    pub duplicates: u64,
    pub refused_by_quota: u64,
    pub cancelled: u64,
    /// Attempts that have begun.
    pub delivered: u64,
    pub settled: u64,
    pub retried: u64,
    pub dead: u64,
    pub redriven: u64,
    /// Attempts that had to wait for the rate before they began, and those that began together with them.
    pub throttled: u64,
}

/// The upper bounds of the buckets, in milliseconds. What is above the last is in one more bucket.
pub const BOUNDS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
    1_800_000, 3_600_000, 86_400_000,
];

/// How many deliveries were how late.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum_micros: u64,
}

impl Histogram {
    pub fn count(&mut self, micros: u64) {
        let bucket = BOUNDS.partition_point(|bound| bound * 1_000 < micros);
        self.counts[bucket] += 1;
        self.sum_micros = self.sum_micros.saturating_add(micros);
    }

    /// Of each bucket.
    #[must_use]
    pub fn counts(&self) -> &[u64; BOUNDS.len() + 1] {
        &self.counts
    }

    /// All together, in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }
}
