//! The driver's sleep on tokio's clock.
//!
//! Where this sleep alone wakes the driver, a future that lowers the target also sets the sleep, as it updates the wake-up
//! thread elsewhere. So a future that arms a timer does not wake the driver's task. The waker that the sleep wakes takes the
//! first turn within tokio's clock, and sets the sleep for the next turn (`turn/first_turn`). On a paused clock each turn is
//! a jump of the clock, and the driver's task runs for none of them. `benches/LOG.md` has the figures.
//!
//! tokio's sleep is reset and polled with this file's lock held. What it wakes within that is the first turn, which sees
//! [`is_changing`](TokioSleep::is_changing) and wakes the driver's task. With tokio's unstable tracing, a subscriber is called
//! too; it must not arm timers there.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use tokio::task::coop;
use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::driver::host;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// As good as never. One needless wake-up in such a time costs nothing. Not longer: before 1.54, tokio's
/// wheel takes no timers beyond 2^36 ms of its clock, two years (tokio#8334), and a process should be that old before it has
/// one there.
pub(super) const FAR: Duration = Duration::from_secs(86_400 * 30);

pub(super) struct TokioSleep {
    state: Mutex<State>,
    is_changing: AtomicBool,
}

struct State {
    /// The sleep stays at one place on the heap, so that it need not be allocated again.
    sleep: Pin<Box<Option<host::TokioSleep>>>,
    /// The driver has ended, and the sleep is not made again.
    has_ended: bool,
}

/// The sleep while its lock is held.
pub(super) struct Setting<'a>(&'a mut State);

impl TokioSleep {
    pub(super) fn new() -> TokioSleep {
        TokioSleep {
            state: Mutex::new(State {
                sleep: Box::pin(None),
                has_ended: false,
            }),
            is_changing: AtomicBool::new(false),
        }
    }

    /// Calls `change` with the lock held. `change` reads the target: of two threads that set the sleep at once, the second to
    /// take the lock reads the lower target.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Setting<'_>) -> R) -> R {
        let mut state = self.state.lock();
        // Relaxed: what matters is what this thread reads within `change`, and it reads its own stores.
        self.is_changing.store(true, Ordering::Relaxed);
        // Also if tokio panics: with its alternative timers, a sleep that is reset while the runtime ends does.
        let _changing = Changing(&self.is_changing);
        change(&mut Setting(&mut state))
    }

    /// `true` on a thread that is within [`change`](TokioSleep::change). On another thread it may be either.
    pub(super) fn is_changing(&self) -> bool {
        self.is_changing.load(Ordering::Relaxed)
    }

    /// The driver's task ends.
    pub(super) fn end(&self) {
        self.change(|setting| {
            setting.0.has_ended = true;
            setting.0.sleep.set(None);
        });
    }
}

/// Clears the flag when it is dropped.
struct Changing<'a>(&'a AtomicBool);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Setting<'_> {
    /// Whether the sleep exists, so that it can be set from outside of the runtime.
    pub(super) fn is_made(&self) -> bool {
        self.0.sleep.is_some()
    }

    /// Sets the sleep to wake `waker` at an instant. Returns `false` if the instant has come already.
    ///
    /// Without a sleep yet, the caller is in the context of the clock's home runtime.
    pub(super) fn set(&mut self, at: Instant, waker: &Waker) -> bool {
        if self.0.has_ended {
            return true;
        }
        match self.0.sleep.as_mut().as_pin_mut() {
            Some(sleep) => sleep.reset(at),
            None => self.0.sleep.set(Some(host::sleep_until(at))),
        }
        let Some(sleep) = self.0.sleep.as_mut().as_pin_mut() else {
            unreachable!("it has just been set");
        };
        // The task in which this runs may have used up its budget.
        let sleep = pin!(coop::unconstrained(sleep));
        sleep.poll(&mut Context::from_waker(waker)).is_pending()
    }

    /// There is no target: the sleep wakes nothing. Returns `true`.
    pub(super) fn rest(&mut self, clock: &Clock, waker: &Waker) -> bool {
        let sleep = self.0.sleep.as_ref().as_pin_ref();
        if sleep.is_some_and(|sleep| sleep.is_elapsed()) {
            // tokio does not know of it any more, and it can be set again.
            return true;
        }
        if clock.may_jump() {
            // The clock must not jump to an old target.
            self.0.sleep.set(None);
            return true;
        }
        // It stays, so that a future can set it from outside of the runtime.
        self.set(clock.now() + FAR, waker)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use tokio::runtime::Builder;
    use tokio::time::{Duration, Instant, advance};

    use super::TokioSleep;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    // A paused clock would jump to it, and it would keep the driver's memory until then.
    #[test]
    fn after_its_end_no_sleep_is_left_and_none_is_made() {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (sleep, wakes) = (TokioSleep::new(), Arc::new(Wakes::default()));
            let waker = Waker::from(Arc::clone(&wakes));
            let second = Duration::from_secs(1);
            let set = || sleep.change(|setting| setting.set(Instant::now() + second, &waker));
            for round in 1..=2 {
                assert!(set());
                advance(second).await;
                assert_eq!(wakes.0.load(Ordering::SeqCst), round);
            }
            assert!(set());
            sleep.end();
            // A future that lowers the target meets the end of its driver.
            assert!(set());
            assert!(!sleep.change(|setting| setting.is_made()));
            assert_eq!(Arc::strong_count(&wakes), 2, "the waker is held");
            advance(2 * second).await;
            assert_eq!(wakes.0.load(Ordering::SeqCst), 2);
        });
    }
}
