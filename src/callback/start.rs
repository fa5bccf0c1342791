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
    /// Calls `callback` after `delay` has passed, by the timer's clock.
    ///
    /// This method can be called outside of a runtime, and no task waits for the callback. The callback is never called before
    /// the deadline. It is [due](crate::time#when-a-timer-is-due) like a sleep, so a zero delay is due at the end of the current
    /// tick; a delay is limited to 30 years. When it is due, a task of the timer's runtime calls it: see
    /// [`callback`](crate::callback) for when, in which order, and what happens on a panic. A callback that blocks holds up the
    /// other callbacks of the timer: call [`spawn_blocking`](tokio::task::spawn_blocking) from it for blocking work, or
    /// [`tokio::spawn`] if it has to wait.
    ///
    /// Dropping the returned handle does not cancel the callback.
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_call_after`](Timer::try_call_after) returns an
    /// error instead.
    ///
    /// # Examples
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

    /// Calls `callback` at `deadline`.
    ///
    /// A callback whose tick has passed is due at once. Apart from that, this method behaves like
    /// [`call_after`](Timer::call_after).
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_call_at`](Timer::try_call_at) returns an error
    /// instead.
    #[track_caller]
    pub fn call_at<F>(&self, deadline: Instant, callback: F) -> TimeoutHandle
    where
        F: FnOnce() + Send + 'static,
    {
        expect(self.try_call_at(deadline, callback))
    }

    /// Like [`call_after`](Timer::call_after), but returns an error instead of panicking, and drops the callback in that case.
    ///
    /// A callback that is submitted while the timer is being stopped either runs, is rejected here, or is returned by
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
    /// Returns an error if the timer was stopped ([`Error::is_shutdown`]) or has reached its `max_pending`
    /// ([`Error::is_at_capacity`]).
    pub fn try_call_after<F>(&self, delay: Duration, callback: F) -> Result<TimeoutHandle, Error>
    where
        F: FnOnce() + Send + 'static,
    {
        self.submit(|| self.try_sleep(delay), callback)
    }

    /// Like [`call_at`](Timer::call_at), but returns an error instead of panicking, and drops the callback in that case.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`try_call_after`](Timer::try_call_after).
    pub fn try_call_at<F>(&self, deadline: Instant, callback: F) -> Result<TimeoutHandle, Error>
    where
        F: FnOnce() + Send + 'static,
    {
        self.submit(|| self.try_sleep_until(deadline), callback)
    }

    /// Stops the timer like [`shutdown`](Timer::shutdown), and returns the callbacks that therefore never ran, ordered by
    /// deadline.
    ///
    /// The returned callbacks are those that are not due, and those that are due but have not started. Their handles count as
    /// cancelled. Each callback either runs or is returned, exactly once: a second call returns none, and two concurrent calls
    /// may each get a part. A callback that the driver is just handing over, or that has started on another thread, runs to its
    /// end.
    ///
    /// This method does not wait for anything, so it can also be called from a callback, which then runs to its end. Futures of
    /// the timer end as with `shutdown`.
    ///
    /// See [`Unrun::run`] for an example.
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
        self.extension(|| Runner::new(self))
    }
}

#[track_caller]
fn expect(taken: Result<TimeoutHandle, Error>) -> TimeoutHandle {
    match taken {
        Ok(handle) => handle,
        Err(error) => panic!("{error}"),
    }
}
