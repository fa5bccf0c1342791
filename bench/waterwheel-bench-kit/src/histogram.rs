//! A histogram of lateness. Its buckets grow with the value, so its memory does not grow with the run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Each power of two is divided into this many buckets, so a quantile is accurate to about 3 %.
const CUTS: u64 = 32;
const BUCKETS: usize = (u64::BITS as usize - 4) * CUTS as usize;

/// A histogram that all workers add to concurrently.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    longest: AtomicU64,
}

impl Histogram {
    /// Counts one value.
    pub fn add(&self, value: Duration) {
        let nanoseconds = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanoseconds)].fetch_add(1, Relaxed);
        self.longest.fetch_max(nanoseconds, Relaxed);
    }

    /// The current counts.
    pub fn counts(&self) -> Counts {
        let buckets = self.buckets.iter().map(|count| count.load(Relaxed));
        Counts {
            buckets: buckets.collect(),
            longest: self.longest.load(Relaxed),
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            longest: AtomicU64::new(0),
        }
    }
}

/// A histogram at one moment.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    buckets: Vec<u64>,
    longest: u64,
}

impl Counts {
    /// The values added since `earlier`, an older state of the same histogram. The longest of them is rounded up to the end of its
    /// bucket, like the other quantiles.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        Counts {
            buckets: pairs.map(|(now, before)| now - before).collect(),
            longest: self.longest,
        }
    }

    /// `None` if the histogram is empty.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let total: u64 = self.buckets.iter().sum();
        let quantile = |hundredths: u64| {
            // The smallest value that this share of all values does not exceed, rounded up to the end of its bucket.
            let wanted = (total * hundredths).div_ceil(100).max(1);
            let mut seen = 0;
            let reached = self.buckets.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            Duration::from_nanos(reached.map_or(self.longest, upper_end).min(self.longest))
        };
        (total > 0).then(|| Quantiles {
            p50: quantile(50),
            p99: quantile(99),
            max: quantile(100),
        })
    }
}

/// Some quantiles of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of the values are no longer than this.
    pub p50: Duration,
    /// The value that all but one in a hundred do not exceed.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// The six highest bits of a value choose its bucket; values of six bits or fewer have one each.
fn bucket(value: u64) -> usize {
    let shift = u64::from((value | CUTS).ilog2() - CUTS.ilog2());
    (shift * CUTS + (value >> shift)) as usize
}

fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / CUTS).saturating_sub(1);
    let highest_bits = bucket - shift * CUTS;
    (highest_bits << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_values_without_gap_or_overlap() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(upper_end(BUCKETS - 1), u64::MAX);
        for index in 0..BUCKETS - 1 {
            assert_eq!(bucket(upper_end(index)), index);
            assert_eq!(bucket(upper_end(index) + 1), index + 1);
        }
    }

    #[test]
    fn quantiles_are_never_below_the_truth_and_close_to_it() {
        let histogram = Histogram::default();
        assert_eq!(histogram.counts().quantiles(), None);
        // With one value, all quantiles are equal to it.
        let value = Duration::from_nanos(567);
        histogram.add(value);
        let quantiles = histogram.counts().quantiles().expect("a value");
        assert_eq!([quantiles.p50, quantiles.p99, quantiles.max], [value; 3]);
        for microseconds in 1..=1000 {
            histogram.add(Duration::from_micros(microseconds));
        }
        let Quantiles { p50, p99, max } = histogram.counts().quantiles().expect("values");
        assert_eq!(max, Duration::from_micros(1000));
        for (quantile, truth) in [(p50, 500), (p99, 990)] {
            let truth = Duration::from_micros(truth);
            assert!(
                quantile >= truth && quantile <= truth * 104 / 100,
                "{quantile:?}"
            );
        }
    }
}
