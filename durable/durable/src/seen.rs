use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::engine::{BOUNDS, Counts, Histogram, Namespace};
use crate::shell::state::Look;

/// What goes on: see [`Durable::metrics`](crate::Durable::metrics). These fields are of the whole service. What was inserted, delivered, settled and given up, and how
/// late, is in its [`namespaces`](Metrics::namespaces).
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
    /// How many timers are in memory: those of the next seconds, and those that are with a handler or being written.
    pub in_memory: usize,
    /// How many deliveries are with their handlers.
    pub running: usize,
    /// How many commits the store has made since it was opened.
    pub commits: u64,
    /// How many attempts have failed since then, those of timers that were given up among them.
    pub failed_attempts: u64,
    /// How often the wall clock was set, by a second or more.
    pub clock_jumps: u64,
    /// How often the store has refused a commit or a read: a full disk, for example. What the service itself wants written is tried again.
    pub refusals: u64,
    /// How many inserts have found the store [full](crate::Error::Full).
    pub full: u64,
    /// Whether the store was full at the last insert that was new to it.
    pub is_full: bool,
    /// The names that have timers which have been due for a second, and no handler.
    pub unhandled: Vec<Arc<str>>,
    /// Whether the store has failed.
    pub has_failed: bool,
    /// Of each namespace, `default` first.
    pub namespaces: Vec<NamespaceMetrics>,
}

impl Metrics {
    pub(crate) fn new(look: &Look<'_>) -> Metrics {
        let engine = look.engine();
        let namespaces = engine.namespaces().iter();
        Metrics {
            in_memory: engine.in_memory(),
            running: engine.running(),
            commits: look.commits(),
            failed_attempts: look.failed_attempts(),
            clock_jumps: look.jumps(),
            refusals: look.refusals(),
            full: look.full(),
            is_full: look.is_full(),
            unhandled: look.unhandled(),
            has_failed: look.failure().is_some(),
            namespaces: namespaces
                .filter(|it| it.is_known || it.has_handlers())
                .map(|it| NamespaceMetrics::of(look, &it.name, Some(it)))
                .collect(),
        }
    }
}

/// What has come of a namespace's timers since the store was opened: see [`Namespace::metrics`](crate::Namespace::metrics).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceMetrics {
    /// Its name.
    pub name: Arc<str>,
    /// How many timers were inserted.
    pub inserted: u64,
    /// How many inserts had the key of another timer.
    pub duplicates: u64,
    /// How many inserts were refused by the [quota](crate::Policy::insert_rate).
    pub over_quota: u64,
    /// How many timers were cancelled.
    pub cancelled: u64,
    /// How many attempts have begun.
    pub delivered: u64,
    /// How many timers were settled: their last attempt went well.
    pub settled: u64,
    /// How often a timer was put off after a failure.
    pub retried: u64,
    /// How many timers were given up.
    pub dead: u64,
    /// How many dead letters were made timers again.
    pub redriven: u64,
    /// How many attempts had to wait for the [rate](crate::Policy::rate) before they began, about: one that begins together with one that has waited counts as well.
    pub throttled: u64,
    /// How many deliveries are with their handlers.
    pub running: usize,
    /// Since when the oldest timer has been due that waits: for its handler, for a place, for the rate, or for the end of a pause. `None` if none waits. Of timers
    /// that are not in memory, it is the start of their second. Those of the store are known a moment after the start, and after a handler came.
    pub oldest_overdue: Option<SystemTime>,
    /// Whether it is paused, or its policy cannot be read.
    pub is_paused: bool,
    /// Whether it is [drained](crate::Namespace::drain).
    pub is_drained: bool,
    /// How late its handlers were called, of the attempts that have ended.
    pub lateness: Lateness,
}

impl NamespaceMetrics {
    /// Of one that has not been seen, there is nothing.
    pub(crate) fn of(
        look: &Look<'_>,
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
            dead,
            redriven,
            throttled,
        } = namespace.map_or(Counts::default(), |it| it.counts);
        let oldest = namespace.and_then(|it| look.engine().oldest_overdue(it, look.present()));
        NamespaceMetrics {
            name: Arc::clone(name),
            inserted,
            duplicates,
            over_quota: refused_by_quota,
            cancelled,
            delivered,
            settled,
            retried,
            dead,
            redriven,
            throttled,
            running: namespace.map_or(0, |it| it.running),
            oldest_overdue: oldest.and_then(|due| due.time()),
            is_drained: namespace.is_some_and(|it| it.is_drained),
            is_paused: namespace.is_some_and(|it| it.is_paused()),
            lateness: Lateness(namespace.map_or(Histogram::default(), |it| it.lateness.clone())),
        }
    }
}

/// How late attempts began, as a histogram: from the due time, or the time of the retry, to the call of the handler. An attempt is counted as it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lateness(Histogram);

impl Lateness {
    /// Each bucket's upper bound, and how many attempts are in it: not later than the bound, and later than the one before. The bounds are 1, 2, 5, 10, 20, 50, 100, 200 and
    /// 500 ms, 1, 2, 5, 10 and 30 s, 1, 5 and 30 min, 1 h, 1 day, and `Duration::MAX`.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let bounds = BOUNDS.map(Duration::from_millis).into_iter();
        bounds.chain([Duration::MAX]).zip(*self.0.counts())
    }

    /// How many attempts there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.counts().iter().sum()
    }

    /// The lateness of all of them together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.0.sum_micros())
    }

    /// The upper bound of the bucket that this part of the attempts is in or below: 0.99 gives a bound of the p99. `None` if there are none.
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
        assert_eq!(Lateness(histogram.clone()).quantile(0.5), None);
        // 90 of 1 ms and less, 9 of 3 ms, one of two days.
        for _ in 0..90 {
            histogram.count(1_000);
        }
        for _ in 0..9 {
            histogram.count(3_000);
        }
        histogram.count(2 * 86_400_000_000);
        let lateness = Lateness(histogram);
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
