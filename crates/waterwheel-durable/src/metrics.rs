use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::shell::shared::View;
use waterwheel_durable_core::engine::{BOUNDS, Counts, Histogram, Namespace};

/// A snapshot of the service: see [`Durable::metrics`](crate::Durable::metrics). These fields are for the service as a
/// whole. Inserts, deliveries, settled timers, dead letters and lateness are counted for each
/// [namespace](Metrics::namespaces).
///
/// ```
/// # fn example(timers: &waterwheel_durable::Durable) {
/// for namespace in timers.metrics().namespaces {
///     let p99 = namespace.lateness.quantile(0.99);
///     println!("{}: {} settled, {} dead, {p99:?} late", namespace.name, namespace.settled, namespace.dead);
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// The number of timers in memory: those of the next few seconds, and those that are with a handler or being
    /// written.
    pub in_memory: usize,
    /// The number of deliveries whose handlers are running.
    pub running: usize,
    /// The number of commits since the store was opened.
    pub commits: u64,
    /// The number of failed attempts since then, including those that made the timer a dead letter.
    pub failed_attempts: u64,
    /// The number of times that the wall clock was set by a second or more.
    pub clock_jumps: u64,
    /// The number of commits and reads that the store refused, for example because the disk is full. The service
    /// retries its own.
    pub refusals: u64,
    /// The number of inserts that failed because the store was [full](crate::Error::Full).
    pub full: u64,
    /// Whether the store was full at the last insert that had something to write.
    pub is_full: bool,
    /// The handler names with timers that have been due for a second and have no handler.
    pub unhandled: Vec<Arc<str>>,
    /// Whether deliveries wait because the [lease](crate::store::Lease) of the store is not held.
    pub has_lost_lease: bool,
    /// Whether the store has failed.
    pub has_failed: bool,
    /// The metrics of each namespace, `default` first.
    pub namespaces: Vec<NamespaceMetrics>,
}

impl Metrics {
    pub(crate) fn new(view: &View<'_>) -> Metrics {
        let engine = view.engine();
        let namespaces = engine.namespaces().iter();
        Metrics {
            in_memory: engine.stats().in_memory,
            running: engine.stats().running,
            commits: view.commits(),
            failed_attempts: view.failed_attempts(),
            clock_jumps: view.jumps(),
            refusals: view.refusals(),
            full: view.full(),
            is_full: view.is_full(),
            unhandled: view.unhandled(),
            has_lost_lease: !engine.is_lease_held(),
            has_failed: view.failure().is_some(),
            namespaces: namespaces
                .filter(|it| it.is_known || it.has_handlers())
                .map(|it| NamespaceMetrics::of(view, &it.name, Some(it)))
                .collect(),
        }
    }
}

/// The metrics of a namespace since the store was opened: see [`Namespace::metrics`](crate::Namespace::metrics).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceMetrics {
    /// The name of the namespace.
    pub name: Arc<str>,
    /// The number of timers inserted.
    pub inserted: u64,
    /// The number of inserts whose key belonged to another timer.
    pub duplicates: u64,
    /// The number of inserts refused by the [quota](crate::Policy::insert_rate).
    pub over_quota: u64,
    /// The number of timers cancelled.
    pub cancelled: u64,
    /// The number of attempts started.
    pub delivered: u64,
    /// The number of timers settled: their last attempt succeeded.
    pub settled: u64,
    /// The number of times that a timer was rescheduled after a failure.
    pub retried: u64,
    /// The number of times that a handler [snoozed](crate::Snooze) its timer.
    pub snoozed: u64,
    /// The number of timers that became dead letters.
    pub dead: u64,
    /// The number of dead letters that were redriven.
    pub redriven: u64,
    /// The approximate number of attempts that had to wait for the [rate](crate::Policy::rate): one that starts
    /// together with an attempt that has waited counts as well.
    pub throttled: u64,
    /// The number of deliveries whose handlers are running.
    pub running: usize,
    /// The due time of the oldest overdue timer that is waiting: for a handler, for capacity, for the rate or for the
    /// end of a pause. `None` if there is none. For timers that are not in memory, it is the start of their second.
    /// Timers in the store are known a moment after the start, and after a handler was registered.
    pub oldest_overdue: Option<SystemTime>,
    /// Whether the namespace is paused, or its policy cannot be read.
    pub is_paused: bool,
    /// Whether the namespace is [drained](crate::Namespace::drain).
    pub is_drained: bool,
    /// How late the handlers were called, for the attempts that have ended.
    pub lateness: DeliveryLateness,
}

impl NamespaceMetrics {
    /// The metrics of a namespace; all zero if its name has not been seen.
    pub(crate) fn of(
        view: &View<'_>,
        name: &Arc<str>,
        namespace: Option<&Namespace>,
    ) -> NamespaceMetrics {
        let Counts {
            inserted,
            duplicates,
            refused_by_quota,
            cancelled,
            delivered,
            settled,
            retried,
            snoozed,
            dead,
            redriven,
            throttled,
        } = namespace.map_or(Counts::default(), |it| it.counts);
        let oldest = namespace.and_then(|it| view.engine().oldest_overdue(it, view.present()));
        NamespaceMetrics {
            name: Arc::clone(name),
            inserted,
            duplicates,
            over_quota: refused_by_quota,
            cancelled,
            delivered,
            settled,
            retried,
            snoozed,
            dead,
            redriven,
            throttled,
            running: namespace.map_or(0, |it| it.running),
            oldest_overdue: oldest.and_then(|due| due.time()),
            is_drained: namespace.is_some_and(|it| it.is_drained),
            is_paused: namespace.is_some_and(|it| it.is_paused()),
            lateness: DeliveryLateness(
                namespace.map_or(Histogram::default(), |it| it.lateness.clone()),
            ),
        }
    }
}

/// A histogram of how late attempts started: from the due time, or the time of the retry, to the call of the handler.
/// An attempt is counted when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryLateness(Histogram);

impl DeliveryLateness {
    /// Returns the upper bound of each bucket, and the number of attempts in it: those later than the previous bound
    /// and not later than this one. The bounds are 1, 2, 5, 10, 20, 50, 100, 200 and 500 ms, 1, 2, 5, 10 and 30 s, 1, 5
    /// and 30 min, 1 h, 1 day, and `Duration::MAX`.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let bounds = BOUNDS.map(Duration::from_millis).into_iter();
        bounds.chain([Duration::MAX]).zip(*self.0.counts())
    }

    /// Returns the number of attempts.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.counts().iter().sum()
    }

    /// Returns the sum of the lateness of all attempts.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.0.sum_micros())
    }

    /// Returns an upper bound of a quantile of the lateness: 0.99 gives a bound of the p99. It is the bound of the
    /// bucket in which the quantile lies. `None` if there are no attempts.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        let rank = (part.clamp(0.0, 1.0) * count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        self.buckets().find_map(|(bound, of)| {
            below += of;
            (count > 0 && below >= rank).then_some(bound)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let mut histogram = Histogram::default();
        assert_eq!(DeliveryLateness(histogram.clone()).quantile(0.5), None);
        // 90 attempts at most 1 ms late, 9 of 3 ms, one of two days.
        for _ in 0..90 {
            histogram.count(1_000);
        }
        for _ in 0..9 {
            histogram.count(3_000);
        }
        histogram.count(2 * 86_400_000_000);
        let lateness = DeliveryLateness(histogram);
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(lateness.count(), 100);
        assert_eq!(
            lateness.sum(),
            Duration::from_micros(90_000 + 27_000 + 2 * 86_400_000_000)
        );
        assert_eq!(lateness.quantile(0.0), millis(1));
        assert_eq!(lateness.quantile(0.9), millis(1));
        assert_eq!(lateness.quantile(0.91), millis(5));
        assert_eq!(lateness.quantile(0.99), millis(5));
        assert_eq!(lateness.quantile(1.0), Some(Duration::MAX));
    }
}
