//! A handler's observations, from many workers at once.

use std::future::{Ready, ready};
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use waterwheel_durable::{Delivery, Failure, Namespace, Shift};

use crate::place::HANDLER;
use crate::sample::Sample;

/// When each delivery came, and how late it was, in µs.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Vec<(Instant, i64)>>);

impl Seen {
    /// Reserves space for `count` deliveries: growing while they are noted would take milliseconds.
    pub(crate) fn with_room_for(count: usize) -> Seen {
        Seen(Mutex::new(Vec::with_capacity(count)))
    }

    /// Registers a handler that notes its deliveries by a shifted wall clock, and takes this long.
    pub(crate) fn see(
        self: &Arc<Self>,
        namespace: &Namespace,
        shift: &Arc<Shift>,
        takes: Duration,
    ) {
        let (seen, shift) = (Arc::clone(self), Arc::clone(shift));
        namespace.handle(HANDLER, move |delivery| {
            seen.one(micros_late(delivery.due(), ahead(&shift)));
            async move {
                if !takes.is_zero() {
                    tokio::time::sleep(takes).await;
                }
                Ok(())
            }
        });
    }

    pub(crate) fn one(&self, micros_late: i64) {
        self.lock().push((Instant::now(), micros_late));
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn take(&self) -> Vec<(Instant, i64)> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of deliveries that a handler has seen.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) all: AtomicUsize,
    pub(crate) early: AtomicUsize,
    wanted: AtomicUsize,
    reached: Notify,
}

impl Delivered {
    pub(crate) fn one(&self, is_early: bool) {
        self.early.fetch_add(usize::from(is_early), Relaxed);
        let all = self.all.fetch_add(1, SeqCst) + 1;
        if all == self.wanted.load(SeqCst) {
            self.reached.notify_one();
        }
    }

    /// A handler that counts deliveries, by a shifted wall clock.
    pub(crate) fn handler(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
    ) -> impl Fn(Delivery) -> Ready<Result<(), Failure>> + use<> {
        let (seen, shift) = (Arc::clone(self), Arc::clone(shift));
        move |delivery| {
            seen.one(now(&shift) < delivery.due());
            ready(Ok(()))
        }
    }

    /// Waits for this many deliveries.
    pub(crate) async fn wait(&self, wanted: usize) {
        self.wanted.store(wanted, SeqCst);
        while self.all.load(SeqCst) < wanted {
            self.reached.notified().await;
        }
    }

    /// Advances time step by step, waiting for the due deliveries after each step. The due times are sorted.
    pub(crate) async fn live(&self, shift: &Shift, step: Duration, dues: &[SystemTime]) {
        let mut due = 0;
        while due < dues.len() {
            pass(shift, step);
            due = dues.partition_point(|it| *it <= now(shift));
            self.wait(due).await;
        }
    }

    /// Notes what went wrong among this many timers.
    pub(crate) fn note(&self, timers: usize, sample: &mut Sample) {
        let all = self.all.load(Relaxed);
        sample.set("lost", timers.saturating_sub(all) as f64);
        sample.set("twice", all.saturating_sub(timers) as f64);
        sample.set("early", self.early.load(Relaxed) as f64);
    }
}

/// How far the wall clock is ahead of the machine's.
pub(crate) fn ahead(shift: &Shift) -> Duration {
    Duration::from_micros(shift.wall().unsigned_abs())
}

/// The time on the shifted wall clock.
pub(crate) fn now(shift: &Shift) -> SystemTime {
    SystemTime::now() + ahead(shift)
}

/// Advances the shifted wall clock by `time` at once.
pub(crate) fn pass(shift: &Shift, time: Duration) {
    shift.suspend(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
}

/// How late a delivery is now, by a wall clock that is `ahead` of the machine's; negative if early.
pub(crate) fn micros_late(due: SystemTime, ahead: Duration) -> i64 {
    let now = SystemTime::now() + ahead;
    let late = match now.duration_since(due) {
        Ok(late) => i64::try_from(late.as_nanos()),
        Err(early) => i64::try_from(early.duration().as_nanos()).map(|nanos| -nanos),
    };
    late.map_or(i64::MAX, |nanos| nanos.div_euclid(1_000))
}

/// The maximum number of times within any window of this length.
pub(crate) fn most_in(window: Duration, mut times: Vec<Instant>) -> usize {
    times.sort_unstable();
    let mut first = 0;
    let lengths = times.iter().enumerate().map(|(last, time)| {
        while *time - times[first] >= window {
            first += 1;
        }
        last + 1 - first
    });
    lengths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_window_is_found_wherever_it_lies() {
        let start = Instant::now();
        let at = |millis: &[u64]| {
            let times = millis.iter();
            times
                .map(|millis| start + Duration::from_millis(*millis))
                .collect()
        };
        let second = Duration::from_secs(1);
        assert_eq!(most_in(second, at(&[])), 0);
        // A time at the end of the second belongs to the next one.
        assert_eq!(most_in(second, at(&[0, 1_000, 2_000])), 1);
        assert_eq!(most_in(second, at(&[0, 999, 1_000])), 2);
        assert_eq!(
            most_in(second, at(&[2_400, 0, 1_600, 2_000, 1_500, 900])),
            4
        );
    }
}
