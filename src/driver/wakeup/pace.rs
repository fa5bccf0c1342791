//! How often a precise driver turns.
//!
//! A tick finer than a millisecond makes few timers precise, and many timers expensive: 10 000 a second would take a turn each.
//! So a driver turns when its timers want it as long as that is a thousand times a second on average, with 32 turns in advance.
//! Beyond that it turns once a millisecond, and serves all that has come due. (`benches/LOG.md` has the
//! figures.)
//!
//! It is a leaky bucket. Each turn adds a millisecond to a debt, and the time that passes takes it off again. A driver with a
//! debt of more than 32 ms waits until it is 32.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wheel::{Tick, Ticks};

/// How many turns may come at once.
const IN_ADVANCE: u64 = 32;

pub(super) struct Pace {
    /// When all turns so far will have been paid for, as a tick.
    paid: AtomicU64,
    /// What a turn costs: a millisecond, or a tick where that is more.
    millisecond: Ticks,
}

impl Pace {
    pub(super) fn new(millisecond: Ticks) -> Pace {
        Pace {
            paid: AtomicU64::new(0),
            millisecond,
        }
    }

    /// Counts a turn that ends at `now`.
    pub(super) fn count(&self, now: Tick) {
        // The debt is bounded: turns that no target asked for are counted as well.
        let most = now.saturating_add(self.in_advance());
        let paid = self
            .paid()
            .clamp(now, most)
            .saturating_add(self.millisecond);
        // Relaxed, as the load: it sets when a turn comes within a millisecond, and nothing else.
        self.paid.store(paid.get(), Ordering::Relaxed);
    }

    /// No turn is to come before this tick.
    pub(super) fn not_before(&self) -> Tick {
        self.paid().saturating_sub(self.in_advance())
    }

    fn in_advance(&self) -> Ticks {
        Ticks::new(self.millisecond.get() * IN_ADVANCE)
    }

    fn paid(&self) -> Tick {
        Tick::new(self.paid.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::{IN_ADVANCE, Pace};
    use crate::wheel::{Tick, Ticks};

    const MILLISECOND: Ticks = Ticks::new(10);

    /// When each of so many turns comes, if each is wanted a tick after the one before.
    fn turns(pace: &Pace, first: Tick, count: u64) -> Vec<u64> {
        let mut now = first;
        (0..count)
            .map(|_| {
                now = pace.not_before().max(now);
                pace.count(now);
                let came = now.get();
                now = now.saturating_add(Ticks::new(1));
                came
            })
            .collect()
    }

    #[test]
    fn turns_come_when_wanted_and_then_once_a_millisecond() {
        let pace = Pace::new(MILLISECOND);
        let came = turns(&pace, Tick::new(1_000), 100);
        // Each turn adds ten ticks to the debt, and a tick passes: the debt grows by nine a turn.
        let at_once = IN_ADVANCE * 10 / 9;
        for (n, came) in came.iter().enumerate().take(at_once as usize) {
            assert_eq!(*came, 1_000 + n as u64);
        }
        for pair in came[at_once as usize + 1..].windows(2) {
            assert_eq!(pair[1] - pair[0], 10);
        }
    }

    #[test]
    fn after_a_rest_turns_come_when_wanted_again() {
        let pace = Pace::new(MILLISECOND);
        turns(&pace, Tick::new(1_000), 100);
        let came = turns(&pace, Tick::new(100_000), 10);
        assert_eq!(came, (100_000..100_010).collect::<Vec<_>>());
    }

    #[test]
    fn however_many_turns_come_at_once_the_next_waits_a_millisecond() {
        let pace = Pace::new(MILLISECOND);
        let now = Tick::new(5_000);
        (0..1_000).for_each(|_| pace.count(now));
        assert_eq!(pace.not_before(), now.saturating_add(MILLISECOND));
    }

    #[test]
    fn turns_once_a_millisecond_never_wait() {
        let pace = Pace::new(MILLISECOND);
        for now in (0..10_000).step_by(10) {
            assert!(pace.not_before() <= Tick::new(now));
            pace.count(Tick::new(now));
        }
    }
}
