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

/// tokio rounds up to its next millisecond. An instant that is so much earlier is not rounded past the present.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::super::{Wakeup, Waking};
    use super::Nudge;
    use crate::clock::Clock;
    use crate::wheel::Resolution;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Wakes {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let clock = Clock::new(tokio::runtime::Handle::current(), None, None);
            let (nudge, nudged) = (Nudge::new(), Arc::new(Wakes::default()));
            let waker = Waker::from(Arc::clone(&nudged));
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
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let clock = Clock::new(
            runtime.handle().clone(),
            None,
            Some(Resolution::MILLISECOND),
        );
        let wakeup = Arc::new(Wakeup::new(clock, Waking::Precise));
        let [task, nudged] = [(), ()].map(|()| Arc::new(Wakes::default()));
        wakeup.driver_runs(&Waker::from(Arc::clone(&task)));
        let waker = Waker::from(Arc::clone(&nudged));
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
        // What is left is ours, and the waker that each is woken by.
        eventually(|| (Arc::strong_count(&task), Arc::strong_count(&nudged)) == (2, 2));
    }
}
