//! Counts the timers that completed and their lateness, collects failures, and sums up the timers' own counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use waterwheel::{Instant, Metrics};
use waterwheel_bench_kit::{Histogram, Quantiles};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sleep,
    Timeout,
    Reset,
    Tick,
    Herd,
    /// A sleep that is polled by a thread outside the runtime.
    Outside,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] = [
        Kind::Sleep,
        Kind::Timeout,
        Kind::Reset,
        Kind::Tick,
        Kind::Herd,
        Kind::Outside,
    ];
}

#[derive(Default)]
pub(crate) struct Books {
    rows: [Row; Kind::ALL.len()],
    pub(crate) early: Count,
    pub(crate) cancelled: Count,
    /// Tasks that have blocked their worker.
    pub(crate) blocked: Count,
    timers: Mutex<Totals>,
    wrong: Mutex<Vec<String>>,
}

#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[derive(Default)]
struct Row {
    completed: Count,
    lateness: Histogram,
}

/// The counters of all timers of all lives, summed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) armed: u64,
    pub(crate) fired: u64,
    pub(crate) cancelled: u64,
    pub(crate) stopped: u64,
    pub(crate) turns: u64,
}

/// The number of failures that are kept. The first few show what is wrong.
const MESSAGES: usize = 20;

impl Books {
    /// Counts a timer that has completed, and its lateness. The task that waited for it calls this.
    pub(crate) fn done(&self, kind: Kind, deadline: Instant) {
        let row = &self.rows[kind as usize];
        row.completed.add(1);
        match Instant::now().checked_duration_since(deadline) {
            Some(late) => row.lateness.add(late),
            None => self.is_early(kind),
        }
    }

    /// Counts a timer for which no task waited when it was due. Its lateness is left out: the task polled it late.
    pub(crate) fn done_unawaited(&self, kind: Kind, deadline: Instant) {
        self.rows[kind as usize].completed.add(1);
        if Instant::now() < deadline {
            self.is_early(kind);
        }
    }

    fn is_early(&self, kind: Kind) {
        self.early.add(1);
        self.wrong(format!("a timer was early: {kind:?}"));
    }

    /// Adds the counters of a `Timer` that has ended to the totals. They must add up, with nothing pending.
    pub(crate) fn close(&self, name: &str, metrics: &Metrics) {
        let ended = metrics.fired() + metrics.cancelled() + metrics.stopped();
        if metrics.armed() != ended || metrics.pending() != 0 {
            self.wrong(format!("the counters of {name} do not add up: {metrics}"));
        }
        let mut totals = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        totals.armed += metrics.armed();
        totals.fired += metrics.fired();
        totals.cancelled += metrics.cancelled();
        totals.stopped += metrics.stopped();
        totals.turns += metrics.driver_turns();
    }

    /// Keeps a failure for the report.
    pub(crate) fn wrong(&self, what: String) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() < MESSAGES {
            wrong.push(what);
        }
    }

    // ----- for the report -----

    pub(crate) fn completed(&self, kind: Kind) -> u64 {
        self.rows[kind as usize].completed.get()
    }

    pub(crate) fn all_completed(&self) -> u64 {
        Kind::ALL.iter().map(|&kind| self.completed(kind)).sum()
    }

    pub(crate) fn lateness(&self, kind: Kind) -> Option<Quantiles> {
        self.rows[kind as usize].lateness.counts().quantiles()
    }

    pub(crate) fn totals(&self) -> Totals {
        *self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all_wrong(&self) -> Vec<String> {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_timer_before_its_deadline_is_early_and_one_after_it_is_late() {
        let books = Books::default();
        books.done(Kind::Tick, Instant::now() - Duration::from_millis(1));
        assert_eq!((books.completed(Kind::Tick), books.early.get()), (1, 0));
        let late = books.lateness(Kind::Tick).expect("one was late").max;
        assert!(late >= Duration::from_millis(1));
        books.done(Kind::Herd, Instant::now() + Duration::from_secs(9));
        books.done_unawaited(Kind::Herd, Instant::now() + Duration::from_secs(9));
        assert_eq!((books.completed(Kind::Herd), books.early.get()), (2, 2));
        assert_eq!(books.lateness(Kind::Herd), None);
        assert_eq!(books.all_wrong().len(), 2);
    }
}
