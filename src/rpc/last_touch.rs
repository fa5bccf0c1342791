//! The cell of an idle timeout: the tick of its last touch.
//!
//! Many threads write it without a lock. A touch reads the cell, and writes it only if its tick is later: most touches of a busy
//! connection fall into a tick that is there already, and share the cache line with the other threads that touch.
//!
//! The write is a `fetch_max`. A store would let a thread that was delayed between its look at the clock and the store overwrite
//! a later touch of another thread, and the idle timeout would be early.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wheel::Tick;

#[derive(Debug)]
pub(super) struct LastTouch(AtomicU64);

// Relaxed everywhere: the cell guards no other data. What is promised needs the order of the accesses to this one atomic alone,
// which C++ calls its modification order: the value only grows, and a look that happens after a touch finds that touch or a later
// one. For a touch that leaves the cell as it is, this holds since its own load has found a value that is as late.
impl LastTouch {
    pub(super) fn new(tick: Tick) -> LastTouch {
        LastTouch(AtomicU64::new(tick.get()))
    }

    #[inline]
    pub(super) fn touch(&self, tick: Tick) {
        if self.0.load(Ordering::Relaxed) < tick.get() {
            self.0.fetch_max(tick.get(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn tick(&self) -> Tick {
        Tick::new(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(waterwheel_loom)))]
mod tests {
    use super::{LastTouch, Tick};

    #[test]
    fn an_older_touch_does_not_move_the_last_one_back() {
        let last = LastTouch::new(Tick::new(5));
        for (touch, after) in [(4, 5), (5, 5), (9, 9), (7, 9), (0, 9), (u64::MAX, u64::MAX)] {
            last.touch(Tick::new(touch));
            assert_eq!(last.tick(), Tick::new(after), "after {touch}");
        }
    }
}
