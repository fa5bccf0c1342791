use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::call::{AnyCall, CANCELLED};

/// A callback that was given to a timer. Made by [`Timer::call_after`](crate::Timer::call_after) and
/// [`Timer::call_at`](crate::Timer::call_at).
///
/// Dropping the handle detaches it: the callback runs nevertheless. Clones are of the same callback. A handle does not keep the
/// timer alive. It keeps the memory of the closure, but nothing that the closure held once it has run or was cancelled.
///
/// # States
///
/// | the callback | `is_expired` | `is_cancelled` | `cancel` |
/// |---|---|---|---|
/// | waits for its deadline, or is due and waits for its turn | false | false | true |
/// | runs, or has run, or has panicked | true | false | false |
/// | was cancelled: by `cancel`, by a stop of its timer, or with its runtime | false | true | false |
///
/// The last two are final, and of a cancel and a run that race one alone wins.
///
/// # Example
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

    /// Cancels the callback, and returns whether it did: true exactly once. O(1), on any thread, also from within the callback.
    ///
    /// If it returns true, the callback never runs. Its place in the wheel and in [`max_pending`](crate::Builder::max_pending) is
    /// free, and its closure was dropped by this call, on this thread; a panic of the closure's destructor is the caller's. If it
    /// returns false, the callback has begun to run or was cancelled before: [`is_expired`](TimeoutHandle::is_expired) says which.
    pub fn cancel(&self) -> bool {
        let head = self.call.head();
        let was_first = head.runner().end(head, CANCELLED);
        if was_first {
            self.call.discard();
        }
        was_first
    }

    /// Whether the callback has begun to run. It may have ended since.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.call.head().is_expired()
    }

    /// Whether the callback never runs: it was [cancelled](TimeoutHandle::cancel), or its timer was stopped, or its runtime has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.head().is_cancelled()
    }

    /// The instant that was asked for, by the clock of the timer, not the tick that it is rounded up to.
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
