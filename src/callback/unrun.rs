use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::call::AnyCall;

/// A callback that never ran because its timer was stopped, returned by [`Timer::shutdown_now`](crate::Timer::shutdown_now).
///
/// It owns the closure: [`run`](Unrun::run) calls it, and dropping the `Unrun` drops it. In either case, its
/// [`TimeoutHandle`](super::TimeoutHandle) counts as cancelled.
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
