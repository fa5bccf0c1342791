//! A cheaper way for the watchdog thread to wake the driver than the task's waker.
//!
//! A task that is woken from outside of its runtime goes to the queue of all workers, and tokio unparks a worker to look for
//! it. When that worker has found the task, it unparks a second worker to look for more, and there is no more: two workers
//! wake for each tick (tokio 1.54, `transition_from_searching`). A worker that returns from tokio's own clock with a task to
//! run unparks no second one. So the driver also keeps a timer of tokio's, 30 days ahead, and the thread moves it to the
//! present: that unparks the worker that waits on tokio's clock, if one does. (`benches/LOG.md` has
//! the figures.)
//!
//! A nudge may have no effect. If tokio's clock was advanced within the same of its milliseconds, the timer fires on the
//! watchdog thread, which then wakes the task. If no worker waits on tokio's clock, because the one that did is blocked,
//! nothing fires; so the thread wakes the task when a nudge goes unanswered.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use tokio::task::coop;
use tokio::time::{Duration, Instant};

use super::tokio_sleep::FAR;
use crate::clock::Clock;
use crate::driver::host::{self, TokioSleep};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wheel::{Tick, Ticks};

/// tokio rounds up to its next millisecond. An instant that is this much earlier is not rounded past the present.
const ROUNDING: Duration = Duration::from_millis(1);

pub(super) struct Nudge(Mutex<State>);

struct State {
    sleep: Option<Pin<Box<TokioSleep>>>,
    /// The driver has ended, and no nudge is expected again. A timer that a late first turn made would still be there when tokio's clock ends, which
    /// fires all of its timers: the first turn would poll one of a clock that has ended, and tokio panics at that, on a worker.
    has_ended: bool,
}

impl Nudge {
    pub(super) fn new() -> Nudge {
        Nudge(Mutex::new(State {
            sleep: None,
            has_ended: false,
        }))
    }

    /// From now on a nudge wakes this waker, once. To be called in the context of the clock's home runtime.
    pub(super) fn expect(&self, clock: &Clock, waker: &Waker) {
        let mut state = self.0.lock();
        if state.has_ended {
            return;
        }
        let sleep = match &mut state.sleep {
            // Not polled: if tokio is about to fire it, the poll would wake the waker with this lock held.
            Some(sleep) if !sleep.is_elapsed() => return,
            Some(sleep) => {
                sleep.as_mut().reset(clock.now() + FAR);
                sleep
            }
            none => none.insert(Box::pin(host::sleep_until(clock.now() + FAR))),
        };
        // The wakers of this turn may have used up the task's budget. The poll is pending, unless a nudge came in between;
        // then the waker has been woken.
        let sleep = pin!(coop::unconstrained(sleep.as_mut()));
        let _ = sleep.poll(&mut Context::from_waker(waker));
    }

    /// Moves the timer to the present. `false` if no nudge was ever expected.
    pub(super) fn give(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let Some(sleep) = &mut state.sleep else {
            return false;
        };
        sleep.as_mut().reset(now - ROUNDING);
        true
    }

    /// The driver's task ends.
    pub(super) fn end(&self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        let sleep = state.sleep.take();
        drop(state);
        drop(sleep);
    }
}

// How often a driver that the thread wakes turns.
//
// A tick finer than a millisecond makes few timers precise, and many timers expensive: 10 000 a second would take a turn each.
// So a driver turns when its timers want it as long as that is a thousand times a second on average, with 32 turns in advance.
// Beyond that it turns once a millisecond, and serves all that has come due. (`benches/LOG.md` has the
// figures.)
//
// The pace is a leaky bucket. Each turn adds a millisecond to a debt, and the passing of time reduces it. A driver with a debt of
// more than 32 ms waits until it is 32.

/// The number of turns that may come at once.
const IN_ADVANCE: u64 = 32;

pub(super) struct Pace {
    /// When all turns so far will have been paid for, as a tick.
    paid: AtomicU64,
    /// The cost of a turn: a millisecond, or a tick where that is more.
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
    use std::sync::Arc;

    use std::thread;
    use std::time::{Duration, Instant};

    use super::super::{Wakeup, Waking};
    use super::Nudge;
    use crate::clock::Clock;
    use crate::tests::{Wakes, clock_of, one_worker, paused};

    fn eventually(holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(20), "never");
            thread::sleep(Duration::from_millis(1));
        }
    }

    // A paused clock stands still, here in the middle of one of tokio's milliseconds.
    #[test]
    fn a_nudge_is_not_rounded_up_past_the_present() {
        let runtime = paused();
        runtime.block_on(async {
            let clock = Clock::new(tokio::runtime::Handle::current(), None, None);
            let (nudge, (nudged, waker)) = (Nudge::new(), Wakes::new());
            for round in 1..=5 {
                tokio::time::advance(Duration::from_micros(1_300)).await;
                nudge.expect(&clock, &waker);
                assert!(nudge.give(clock.now()));
                assert_eq!(nudged.count(), round);
            }
        });
    }

    #[test]
    fn an_expected_nudge_wakes_its_waker_another_wakes_the_task() {
        let runtime = one_worker();
        let _entered = runtime.enter();
        let wakeup = Arc::new(Wakeup::new(clock_of(&runtime), Waking::Thread));
        let [(task, of_task), (nudged, waker)] = [Wakes::new(), Wakes::new()];
        wakeup.driver_runs(&of_task);
        drop(of_task);
        wakeup.nudge();
        assert_eq!((task.count(), nudged.count()), (1, 0));
        for round in 1..=3 {
            // From the second time on it is expected already.
            for _ in 0..round {
                wakeup.nudge.expect(wakeup.clock(), &waker);
            }
            wakeup.nudge();
            eventually(|| nudged.count() == round);
        }
        assert_eq!((task.count(), nudged.count()), (1, 3));
        wakeup.nudge.expect(wakeup.clock(), &waker);
        wakeup.nudge.end();
        wakeup.nudge();
        assert_eq!((task.count(), nudged.count()), (2, 3));
        // A first turn that is late makes no timer that would outlive the driver.
        wakeup.nudge.expect(wakeup.clock(), &waker);
        wakeup.nudge();
        assert_eq!((task.count(), nudged.count()), (3, 3));
        // The remaining references are ours and the waker's.
        eventually(|| (Arc::strong_count(&task), Arc::strong_count(&nudged)) == (2, 2));
    }
}

#[cfg(test)]
mod pace_tests {
    use super::{IN_ADVANCE, Pace};
    use crate::wheel::{Tick, Ticks};

    const MILLISECOND: Ticks = Ticks::new(10);

    /// The times of this many turns, if each is wanted a tick after the previous one.
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
