//! A cheaper way for the bell to wake the driver's task than its waker.
//!
//! A task that is woken from outside of its runtime goes to a queue that all workers share, and a
//! worker is unparked to look for it. Once that one has found it, it unparks another worker to look
//! for more, which there is not: two workers awake for each tick (tokio 1.54,
//! `transition_from_searching`). A worker that comes back from tokio's own clock with a task in hand
//! does not. So the driver also keeps a timer of tokio's, far away, and the bell moves
//! it to the present: that unparks the worker who waits on tokio's clock, if there is one, and only
//! that. (`fire`, 100 000 timers over a second: 1000 wake-ups of workers in place of 1800.)
//!
//! It is a shortcut and no more. If tokio's clock was turned within the same of its milliseconds, the
//! timer fires on the bell's own thread, which then rings. Where nobody waits on tokio's clock, because whoever did is
//! blocked, nothing comes of it; so the bell uses the waker when a nudge was not followed.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use super::clock::Clock;
use super::host::Sleep;
use crate::sync::Mutex;
use tokio::task::coop;
use tokio::time::{Duration, Instant};

/// So long that a needless wake-up after it is nothing. Not longer: before 1.54, tokio's wheel takes no
/// timers beyond 2^36 ms of its clock, two years (tokio#8334), and a process should be that old
/// before it has one there.
const FAR: Duration = Duration::from_secs(86_400 * 30);

/// tokio rounds up to its next millisecond; by so much earlier, that is not after the present.
const ROUNDING: Duration = Duration::from_millis(1);

pub(super) struct Nudge(Mutex<Option<Pin<Box<Sleep>>>>);

impl Nudge {
    pub(super) fn new() -> Nudge {
        Nudge(Mutex::new(None))
    }

    /// From now on a nudge wakes this waker, once.
    pub(super) fn expect(&self, clock: &Clock, waker: &Waker) {
        let mut sleep = self.0.lock();
        let sleep = match &mut *sleep {
            // Not polled all the same: a waker that tokio is about to wake would be woken here, under
            // this lock.
            Some(sleep) if !sleep.is_elapsed() => return,
            Some(sleep) => {
                sleep.as_mut().reset(clock.now() + FAR);
                sleep
            }
            none => none.insert(Box::pin(clock.sleep_until(clock.now() + FAR))),
        };
        // Whatever the wakers of this turn have left of the task's budget. Pending, unless a nudge came in between; then the task has been woken.
        let sleep = pin!(coop::unconstrained(sleep.as_mut()));
        let _ = sleep.poll(&mut Context::from_waker(waker));
    }

    /// Nudges whoever expected it, if anybody ever did.
    pub(super) fn give(&self, now: Instant) -> bool {
        let mut sleep = self.0.lock();
        let Some(sleep) = &mut *sleep else {
            return false;
        };
        sleep.as_mut().reset(now - ROUNDING);
        true
    }

    /// The task is gone.
    pub(super) fn forget(&self) {
        let sleep = self.0.lock().take();
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

    use super::super::{clock::Clock, shared::Shared};
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

    #[test]
    fn whoever_expects_a_nudge_is_nudged_and_whoever_does_not_is_rung() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let clock = Clock::new(runtime.handle().clone(), Resolution::MILLISECOND);
        let shared = Shared::new(clock, true);
        let [task, nudged] = [(), ()].map(|()| Arc::new(Wakes::default()));
        shared.wake_up(&Waker::from(Arc::clone(&task)));
        shared.keep_first_bite(Waker::from(Arc::clone(&nudged)));
        shared.nudge();
        assert_eq!((task.count(), nudged.count()), (1, 0));
        for round in 1..=3 {
            // From the second time on it is expected already.
            for _ in 0..round {
                shared.expect_nudge();
            }
            shared.nudge();
            eventually(|| nudged.count() == round);
        }
        assert_eq!((task.count(), nudged.count()), (1, 3));
        shared.expect_nudge();
        shared.forget_nudge();
        shared.nudge();
        assert_eq!((task.count(), nudged.count()), (2, 3));
        // Nothing is left of them but ours and the two that the timer keeps.
        eventually(|| (Arc::strong_count(&task), Arc::strong_count(&nudged)) == (2, 2));
    }
}
