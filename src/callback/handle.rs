use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::call::{AnyCall, CANCELLED};

/// A handle to a callback that was submitted to a timer by [`Timer::call_after`](crate::Timer::call_after) or
/// [`Timer::call_at`](crate::Timer::call_at).
///
/// Dropping the handle does not cancel the callback. Clones refer to the same callback. A handle does not keep the timer alive.
/// It keeps the memory of the closure allocated, but the values captured by the closure are dropped once it has run or was
/// cancelled.
///
/// # States
///
/// | the callback | `is_expired` | `is_cancelled` | `cancel` returns |
/// |---|---|---|---|
/// | waits for its deadline, or is due and waits to be called | false | false | true |
/// | is running, has run, or has panicked | true | false | false |
/// | was cancelled: by `cancel`, by a stop of its timer, or by the end of its runtime | false | true | false |
///
/// The last two states are final. If a cancel races with a run, exactly one of them wins.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use waterwheel::{Duration, Timer};
///
/// let order = Timer::current().call_after(Duration::from_secs(1800), || println!("closed, not paid"));
/// // It is paid.
/// assert!(order.cancel());
/// assert!(!order.cancel());
/// assert!(order.is_cancelled() && !order.is_expired());
/// # }
/// ```
#[derive(Clone)]
pub struct TimeoutHandle {
    call: Arc<dyn AnyCall>,
}

impl TimeoutHandle {
    pub(super) fn new(call: Arc<dyn AnyCall>) -> TimeoutHandle {
        TimeoutHandle { call }
    }

    /// Cancels the callback, and returns `true` if this call did so, which happens at most once.
    ///
    /// This method takes O(1), and can be called on any thread, also from within the callback. If it returns true, the callback
    /// never runs: its place in the wheel and in [`max_pending`](crate::Builder::max_pending) is free, and its closure was
    /// dropped by this call, on this thread. A panic while dropping the closure propagates to the caller. If it returns false,
    /// the callback has started to run or was cancelled before; [`is_expired`](TimeoutHandle::is_expired) tells which.
    pub fn cancel(&self) -> bool {
        let head = self.call.head();
        let was_first = head.runner().end(head, CANCELLED);
        if was_first {
            self.call.discard();
        }
        was_first
    }

    /// Returns `true` if the callback has started to run. It may have finished since.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.call.head().is_expired()
    }

    /// Returns `true` if the callback never runs, because it was [cancelled](TimeoutHandle::cancel), its timer was stopped, or
    /// its runtime has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.head().is_cancelled()
    }

    /// Returns the requested deadline by the clock of the timer, not the tick that it is rounded up to.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.call.head().deadline
    }
}

impl fmt::Debug for TimeoutHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutHandle")
            .field("deadline", &self.deadline())
            .field("is_expired", &self.is_expired())
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}

/// A callback that never ran because its timer was stopped, returned by [`Timer::shutdown_now`](crate::Timer::shutdown_now).
///
/// It owns the closure: [`run`](Unrun::run) calls it, and dropping the `Unrun` drops it. In either case, its
/// [`TimeoutHandle`] counts as cancelled.
pub struct Unrun {
    call: Arc<dyn AnyCall>,
}

impl Unrun {
    pub(super) fn new(call: Arc<dyn AnyCall>) -> Unrun {
        Unrun { call }
    }

    /// Returns the instant at which the callback was due, by the clock of the timer.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.call.head().deadline
    }

    /// Runs the callback now, on this thread. A panic of the callback propagates to the caller.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use std::sync::mpsc;
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().start()?;
    /// let (flush, flushed) = mpsc::channel();
    /// timer.call_after(Duration::from_secs(60), move || flush.send("the buffer").unwrap());
    ///
    /// // The service shuts down: run now what would have run within the minute.
    /// for unrun in timer.shutdown_now() {
    ///     unrun.run();
    /// }
    /// assert_eq!(flushed.recv(), Ok("the buffer"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn run(self) {
        self.call.call();
    }
}

impl Drop for Unrun {
    /// Also if the handle is kept, which shares the memory.
    fn drop(&mut self) {
        self.call.discard();
    }
}

impl fmt::Debug for Unrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unrun")
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}
