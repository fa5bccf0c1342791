//! Finds lost timers, which have not completed long after their deadline.
//!
//! Each waiting task has a [`Slot`], into which it writes its deadline and its number of timers. A thread that does not use
//! waterwheel checks all slots in a loop, so a run with a lost timer still ends, and reports it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A timer that has not completed this long after its deadline is lost. Even a busy machine is faster than this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Watch {
    start: Instant,
    patience: Duration,
    slots: Mutex<Vec<Weak<Slot>>>,
    lost: AtomicU64,
}

/// The deadline that one task waits for.
pub(crate) struct Slot {
    start: Instant,
    /// The deadline in milliseconds since the start, rounded up. Zero if the task does not wait.
    deadline: AtomicU64,
    timers: AtomicU64,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch::with_patience(PATIENCE)
    }

    fn with_patience(patience: Duration) -> Watch {
        Watch {
            start: Instant::now(),
            patience,
            slots: Mutex::new(Vec::new()),
            lost: AtomicU64::new(0),
        }
    }

    /// A new slot. It is watched until its task drops it.
    pub(crate) fn slot(&self) -> Arc<Slot> {
        let slot = Arc::new(Slot {
            start: self.start,
            deadline: AtomicU64::new(0),
            timers: AtomicU64::new(0),
        });
        self.slots().push(Arc::downgrade(&slot));
        slot
    }

    /// Counts overdue timers as lost, each of them once.
    pub(crate) fn look(&self) {
        let overdue = self.start.elapsed().saturating_sub(self.patience);
        let overdue = overdue.as_millis() as u64;
        self.slots().retain(|slot| {
            let Some(slot) = slot.upgrade() else {
                return false;
            };
            let deadline = slot.deadline.load(SeqCst);
            let is_lost = deadline > 0
                && deadline < overdue
                && slot
                    .deadline
                    .compare_exchange(deadline, 0, SeqCst, SeqCst)
                    .is_ok();
            if is_lost {
                self.lost.fetch_add(slot.timers.load(SeqCst), SeqCst);
            }
            true
        });
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(SeqCst)
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Weak<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Notes that the task begins to wait for this many timers with this deadline.
    pub(crate) fn expects(&self, timers: u64, deadline: tokio::time::Instant) {
        let since = deadline.into_std().saturating_duration_since(self.start);
        self.timers.store(timers, SeqCst);
        self.deadline.store(since.as_millis() as u64 + 1, SeqCst);
    }

    /// Notes that one of several timers has completed.
    pub(crate) fn one_done(&self) {
        self.timers.fetch_sub(1, SeqCst);
    }

    /// Notes that all timers have completed.
    pub(crate) fn all_done(&self) {
        self.deadline.store(0, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_what_is_long_past_its_deadline_is_lost_and_only_once() {
        let watch = Watch::with_patience(Duration::from_millis(20));
        let now = tokio::time::Instant::now;
        let [done, herd, waits, gone] = [(); 4].map(|()| watch.slot());
        done.expects(1, now());
        done.all_done();
        herd.expects(3, now());
        herd.one_done();
        waits.expects(1, now() + Duration::from_secs(3600));
        gone.expects(1, now());
        drop(gone);
        watch.look();
        assert_eq!(watch.lost(), 0, "not yet");
        thread::sleep(Duration::from_millis(50));
        watch.look();
        watch.look();
        assert_eq!(watch.lost(), 2, "what the herd still waited for");
    }
}
