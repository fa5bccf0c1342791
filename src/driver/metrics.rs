//! The counters of a timer: kept by each shard under its own lock, added up when asked.

use std::fmt;
use std::time::Duration;

/// The counters of a [`Timer`](crate::Timer) since its start. Returned by
/// [`Timer::metrics`](crate::Timer::metrics).
///
/// Counting is always on and costs no shared cache line: each shard counts under the lock that it holds anyway.
/// Reading locks one shard after the other, so the numbers of one shard are from the same moment, and at every
/// moment
///
/// > armed = fired + cancelled + stopped + pending
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, Timer, sleep};
///
/// sleep(Duration::from_millis(2)).await;
/// let metrics = Timer::current().metrics();
/// assert_eq!(metrics.armed(), metrics.fired() + metrics.pending());
/// println!("{metrics}");
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(super) armed: u64,
    pub(super) fired: u64,
    pub(super) cancelled: u64,
    pub(super) stopped: u64,
    pub(super) pending: u64,
    pub(super) cascaded: u64,
    pub(super) turns: u64,
    pub(super) lateness: Lateness,
}

impl Metrics {
    /// Returns how many timers were put into a wheel.
    ///
    /// A future is armed by its first poll that returns `Pending`, so a future that is ready at once never is. One
    /// that is reset after it fired is armed again.
    #[must_use]
    pub fn armed(&self) -> u64 {
        self.armed
    }

    /// Returns how many timers ended because their deadline passed, whether the driver or a poll noticed it.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.fired
    }

    /// Returns how many timers were dropped before their deadline.
    #[must_use]
    pub fn cancelled(&self) -> u64 {
        self.cancelled
    }

    /// Returns how many timers ended before their deadline because the `Timer` was stopped.
    #[must_use]
    pub fn stopped(&self) -> u64 {
        self.stopped
    }

    /// Returns how many timers are waiting for their deadline.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Returns how often a timer was filed again because its slot on a dial above the first, or the slot beyond
    /// the last dial, came up.
    #[must_use]
    pub fn cascaded(&self) -> u64 {
        self.cascaded
    }

    /// Returns how often the driver turned the wheels. The driver of an idle timer does not turn them.
    ///
    /// The turns of the helper tasks that relieve the driver on a saturated runtime are not included.
    #[must_use]
    pub fn driver_turns(&self) -> u64 {
        self.turns
    }

    /// Returns how late the driver fired timers.
    #[must_use]
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "armed {}, fired {}, cancelled {}, stopped {}, pending {}, cascaded {}, turns {}, \
             lateness {}",
            self.armed,
            self.fired,
            self.cancelled,
            self.stopped,
            self.pending,
            self.cascaded,
            self.turns,
            self.lateness,
        )
    }
}

/// The buckets of [`Lateness`]: less than 1 µs, 2 µs, 4 µs, … and the last of all that is more.
const BUCKETS: usize = 32;

/// A histogram of how late the driver fired timers: the driver's current time minus the tick that the deadline was
/// rounded up to.
///
/// A lateness is never negative. It does not include the rounding, which is up to one tick, and timers that a poll
/// found past their deadline before the driver did are not counted.
#[derive(Clone, Default)]
pub struct Lateness {
    count: u64,
    nanos: u128,
    most_nanos: u64,
    buckets: [u64; BUCKETS],
}

impl Lateness {
    /// Returns how many timers the driver fired.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean lateness, or zero if the driver fired no timer.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.nanos / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the greatest lateness, or zero if the driver fired no timer.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.most_nanos)
    }

    /// Returns the sum of the lateness of all timers that the driver fired.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(u64::MAX))
    }

    /// Returns upper bounds, each with the number of timers that were less late: the cumulative buckets of a
    /// histogram such as Prometheus's.
    ///
    /// The bounds start at 1 µs and double each time. Timers beyond the last bound are only included in
    /// [`count`](Lateness::count).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{Duration, Timer, sleep};
    ///
    /// sleep(Duration::from_millis(2)).await;
    /// let metrics = Timer::current().metrics();
    /// for (bound, count) in metrics.lateness().buckets() {
    ///     println!("waterwheel_lateness_seconds_bucket{{le=\"{}\"}} {count}", bound.as_secs_f64());
    /// }
    /// # }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + use<> {
        let counts = self.buckets.into_iter().take(BUCKETS - 1);
        let cumulative = counts.scan(0, |below, count| {
            *below += count;
            Some(*below)
        });
        cumulative
            .enumerate()
            .map(|(bucket, below)| (Duration::from_micros(1 << bucket), below))
    }

    /// Returns a lateness that this share of the timers, from 0 to 1, did not exceed.
    ///
    /// It is exact to a factor of two, rounded up, and never more than [`max`](Lateness::max).
    ///
    /// # Panics
    ///
    /// Panics if `share` is not from 0 to 1.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        assert!(
            (0.0..=1.0).contains(&share),
            "`share` must be from 0 to 1, but is {share}"
        );
        let rank = (share * self.count as f64).ceil() as u64;
        let mut below = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank && below > 0 {
                return self.max().min(Duration::from_micros(1 << bucket));
            }
        }
        self.max()
    }

    #[inline]
    pub(super) fn add_one(&mut self, nanos: u64) {
        self.count += 1;
        self.nanos += u128::from(nanos);
        self.most_nanos = self.most_nanos.max(nanos);
        let micros = nanos / 1_000;
        let bucket = micros.checked_ilog2().map_or(0, |log| log as usize + 1);
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
    }

    pub(super) fn add(&mut self, other: &Lateness) {
        self.count += other.count;
        self.nanos += other.nanos;
        self.most_nanos = self.most_nanos.max(other.most_nanos);
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += count;
        }
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lateness")
            .field("count", &self.count)
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean {:?}, p50 ≤ {:?}, p99 ≤ {:?}, max {:?}",
            self.mean(),
            self.quantile(0.5),
            self.quantile(0.99),
            self.max()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Lateness, Metrics};
    use std::time::Duration;

    #[test]
    fn quantiles_round_up_to_a_power_of_two_and_stop_at_the_maximum() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), Duration::ZERO);
        for micros in 1..=100 {
            lateness.add_one(micros * 1_000);
        }
        assert_eq!(lateness.count(), 100);
        assert_eq!(lateness.mean(), Duration::from_nanos(50_500));
        assert_eq!(lateness.max(), Duration::from_micros(100));
        assert_eq!(lateness.quantile(0.0), Duration::from_micros(2));
        assert_eq!(lateness.quantile(0.5), Duration::from_micros(64));
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(100));
        lateness.add_one(u64::MAX);
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(1 << 31));
    }

    #[test]
    fn buckets_count_what_is_less_late_than_their_bound() {
        let mut lateness = Lateness::default();
        for nanos in [999, 1_000, 1_999, 3_000_000, u64::MAX] {
            lateness.add_one(nanos);
        }
        let buckets: Vec<_> = lateness.buckets().collect();
        let below = |micros| {
            let bound = Duration::from_micros(micros);
            buckets.iter().find(|bucket| bucket.0 == bound).unwrap().1
        };
        assert_eq!([below(1), below(2), below(2048), below(4096)], [1, 3, 3, 4]);
        assert_eq!(
            buckets.last().unwrap().1,
            4,
            "the last timer is beyond all bounds"
        );
        assert_eq!(lateness.count(), 5);
        assert_eq!(lateness.sum(), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn the_lateness_of_two_shards_is_that_of_all_their_timers() {
        let (mut one, mut other) = (Lateness::default(), Lateness::default());
        one.add_one(1_000_000);
        for _ in 0..3 {
            other.add_one(50_000);
        }
        one.add(&other);
        assert_eq!((one.count(), one.max()), (4, Duration::from_millis(1)));
        assert_eq!(one.mean(), Duration::from_nanos(287_500));
        assert_eq!(one.quantile(0.75), Duration::from_micros(64));
        assert_eq!(one.quantile(0.76), Duration::from_millis(1));
    }

    #[test]
    fn display_shows_all_figures() {
        let mut metrics = Metrics {
            armed: 10,
            fired: 4,
            cancelled: 3,
            stopped: 2,
            pending: 1,
            cascaded: 5,
            turns: 6,
            ..Metrics::default()
        };
        metrics.lateness.add_one(3_000);
        assert_eq!(
            metrics.to_string(),
            "armed 10, fired 4, cancelled 3, stopped 2, pending 1, cascaded 5, turns 6, \
             lateness mean 3µs, p50 ≤ 3µs, p99 ≤ 3µs, max 3µs"
        );
    }
}
