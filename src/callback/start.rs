//! The methods of [`Timer`] that take callbacks, and the stop that gives them back.

use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::call::Call;
use super::runner::Runner;
use super::{TimeoutHandle, Unrun};
use crate::Timer;
use crate::error::Error;
use crate::time::Sleep;

impl Timer {
    /// Calls `callback` when `delay` has passed, by the timer's clock. Needs no runtime around it, and no task waits.
    ///
    /// It is never called before the deadline. It is [due](crate::time#when-a-timer-is-due) as a sleep is, so a zero delay is due at
    /// the end of the running tick; a delay is cut to 30 years. Then a task of the timer's runtime calls it: [`callback`](crate::callback)
    /// says when, in which order, and what becomes of a panic. A callback that blocks holds up the other callbacks of the timer: let it
    /// call [`spawn_blocking`](tokio::task::spawn_blocking), or [`tokio::spawn`] if it has to wait.
    ///
    /// The handle may be dropped: the callback runs nevertheless.
    ///
    /// # Panics
    ///
    /// If the timer was stopped or has reached its `max_pending`; see [`try_call_after`](Timer::try_call_after).
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use tokio::sync::oneshot;
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().name("orders").start()?;
    /// let (sender, receiver) = oneshot::channel();
    /// let order = timer.call_after(Duration::from_millis(10), move || {
    ///     let _ = sender.send("closed");
    /// });
    /// assert_eq!(receiver.await, Ok("closed"));
    /// assert!(order.is_expired() && !order.cancel());
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn call_after<F>(&self, delay: Duration, callback: F) -> TimeoutHandle
    where
        F: FnOnce() + Send + 'static,
    {
        expect(self.try_call_after(delay, callback))
    }

    /// Calls `callback` at `deadline`; one whose tick has passed is due at once. Otherwise as [`call_after`](Timer::call_after).
    ///
    /// # Panics
    ///
    /// If the timer was stopped or has reached its `max_pending`; see [`try_call_at`](Timer::try_call_at).
    #[track_caller]
    pub fn call_at<F>(&self, deadline: Instant, callback: F) -> TimeoutHandle
    where
        F: FnOnce() + Send + 'static,
    {
        expect(self.try_call_at(deadline, callback))
    }

    /// [`call_after`](Timer::call_after), or an error; then the callback is dropped.
    ///
    /// A callback that is submitted while the timer is stopped runs, or is refused here, or is returned by
    /// [`shutdown_now`](Timer::shutdown_now).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().max_pending(1).start()?;
    /// let minute = Duration::from_secs(60);
    /// let first = timer.try_call_after(minute, || ())?;
    /// assert!(timer.try_call_after(minute, || ()).unwrap_err().is_at_capacity());
    /// first.cancel();
    /// assert!(timer.try_call_after(minute, || ()).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::is_shutdown`] if the timer was stopped, [`Error::is_at_capacity`] if it has reached its `max_pending`.
    pub fn try_call_after<F>(&self, delay: Duration, callback: F) -> Result<TimeoutHandle, Error>
    where
        F: FnOnce() + Send + 'static,
    {
        self.submit(|| self.try_sleep(delay), callback)
    }

    /// [`call_at`](Timer::call_at), or an error; then the callback is dropped.
    ///
    /// # Errors
    ///
    /// As [`try_call_after`](Timer::try_call_after).
    pub fn try_call_at<F>(&self, deadline: Instant, callback: F) -> Result<TimeoutHandle, Error>
    where
        F: FnOnce() + Send + 'static,
    {
        self.submit(|| self.try_sleep_until(deadline), callback)
    }

    /// Stops the timer as [`shutdown`](Timer::shutdown) does, and returns the callbacks that never ran because of it, by deadline.
    ///
    /// These are all that are not due, and all that are due and have not begun. Their handles count as cancelled. Each callback
    /// either runs or is returned, once: a second call returns none, and of two at a time each may get a part. One that the driver is
    /// just handing over, or that has begun on another thread, runs to its end.
    ///
    /// It waits for nothing, so a callback may call it too: that callback runs on. Futures of the timer end as at `shutdown`.
    ///
    /// [`Unrun::run`] has an example.
    pub fn shutdown_now(&self) -> Vec<Unrun> {
        let collected = self.runner().collect(|| {
            self.shutdown();
        });
        collected.into_iter().map(Unrun::new).collect()
    }

    fn submit<F>(
        &self,
        make: impl FnOnce() -> Result<Sleep, Error>,
        closure: F,
    ) -> Result<TimeoutHandle, Error>
    where
        F: FnOnce() + Send + 'static,
    {
        // First: from here on a drain waits for it.
        let number = self.lifecycle().begin_callback()?;
        let armed = match make() {
            Ok(sleep) => Call::arm(self.runner(), number, sleep, closure),
            Err(error) => {
                self.lifecycle().end_callback();
                Err(error)
            }
        };
        armed.map(TimeoutHandle::new)
    }

    fn runner(&self) -> &Arc<Runner> {
        self.annex(|| Runner::new(self))
    }
}

#[track_caller]
fn expect(taken: Result<TimeoutHandle, Error>) -> TimeoutHandle {
    match taken {
        Ok(handle) => handle,
        Err(error) => panic!("{error}"),
    }
}
