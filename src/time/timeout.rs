use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::coop;
use tokio::time::{Duration, Instant};

use super::sleep::Sleep;
use crate::Timer;
use crate::error::{Elapsed, Error};

/// Gives a future a time limit.
///
/// On the runtime's timer, [`Timer::current`]. The output is the future's, or [`Elapsed`] if the
/// duration passed first. The future is polled first: if it is ready it wins, even past the
/// deadline. A duration that overflows means never: then no timer is involved, and stopping it
/// changes nothing. Same as `tokio::time::timeout`.
///
/// # Precision
///
/// As for [`sleep`](crate::sleep()): never before the deadline, and [due](crate::time#when-a-timer-is-due) at its
/// tick. So with a zero duration, a future that is not ready has until the end of the running tick.
///
/// # Cancellation
///
/// Dropping the `Timeout` drops the future and cancels the timer; neither needs cleaning up.
///
/// # Panics
///
/// At the call: outside a tokio runtime, in one without `enable_time`, or if the runtime's timer
/// was shut down.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::future;
/// use waterwheel::{Duration, timeout};
///
/// let limit = Duration::from_millis(10);
/// assert_eq!(timeout(limit, future::ready(42)).await, Ok(42));
/// assert!(timeout(limit, future::pending::<()>()).await.is_err());
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn timeout<F>(duration: Duration, future: F) -> Timeout<F::IntoFuture>
where
    F: IntoFuture,
{
    Timeout::new(Sleep::on_current(duration), future)
}

/// Gives a future until `deadline`. Otherwise as [`timeout`]; same as `tokio::time::timeout_at`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::future;
/// use waterwheel::{Duration, Instant, timeout_at};
///
/// let deadline = Instant::now() + Duration::from_millis(10);
/// assert!(timeout_at(deadline, future::pending::<()>()).await.is_err());
/// # }
/// ```
///
/// # Panics
///
/// As [`timeout`].
#[track_caller]
pub fn timeout_at<F>(deadline: Instant, future: F) -> Timeout<F::IntoFuture>
where
    F: IntoFuture,
{
    Timeout::new(Some(super::sleep_until(deadline)), future)
}

impl Timer {
    /// [`timeout`] on this timer.
    ///
    /// # Panics
    ///
    /// If the timer was stopped or has reached its `max_pending`; see
    /// [`try_timeout`](Timer::try_timeout).
    #[inline(always)]
    #[track_caller]
    pub fn timeout<F>(&self, duration: Duration, future: F) -> Timeout<F::IntoFuture>
    where
        F: IntoFuture,
    {
        Timeout::new(self.sleep_unless_never(duration), future)
    }

    /// [`timeout_at`] on this timer.
    ///
    /// # Panics
    ///
    /// If the timer was stopped or has reached its `max_pending`; see
    /// [`try_timeout_at`](Timer::try_timeout_at).
    #[track_caller]
    pub fn timeout_at<F>(&self, deadline: Instant, future: F) -> Timeout<F::IntoFuture>
    where
        F: IntoFuture,
    {
        Timeout::new(Some(self.sleep_until(deadline)), future)
    }

    /// [`timeout`](Timer::timeout), or an error; then the future is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::future::ready;
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().max_pending(1).start()?;
    /// let limit = Duration::from_secs(1);
    /// let call = timer.try_timeout(limit, ready("done"))?;
    /// let shed = timer.try_timeout(limit, ready("shed")).unwrap_err();
    /// assert!(shed.is_at_capacity());
    /// assert_eq!(call.await?, "done");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::is_shutdown`] if the timer was stopped, [`Error::is_at_capacity`] if it has
    /// reached its `max_pending`.
    pub fn try_timeout<F>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<Timeout<F::IntoFuture>, Error>
    where
        F: IntoFuture,
    {
        Ok(Timeout::new(self.try_sleep_unless_never(duration)?, future))
    }

    /// [`timeout_at`](Timer::timeout_at), or an error; then the future is dropped.
    ///
    /// # Errors
    ///
    /// As [`try_timeout`](Timer::try_timeout).
    pub fn try_timeout_at<F>(
        &self,
        deadline: Instant,
        future: F,
    ) -> Result<Timeout<F::IntoFuture>, Error>
    where
        F: IntoFuture,
    {
        Ok(Timeout::new(Some(self.try_sleep_until(deadline)?), future))
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        value: T,
        // `None` for a deadline beyond the range of `Instant`: never.
        delay: Option<Sleep>,
    }
}

impl<T> Timeout<T> {
    #[inline(always)]
    pub(crate) fn new<F>(delay: Option<Sleep>, future: F) -> Timeout<T>
    where
        F: IntoFuture<IntoFuture = T>,
    {
        Timeout {
            value: future.into_future(),
            delay,
        }
    }

    /// `None` for never, and after completion.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.delay.as_ref().map(Sleep::deadline)
    }

    /// The future that has the time limit.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The future that has the time limit.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The future, without its time limit.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Future for Timeout<T>
where
    T: Future,
{
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(value) = this.value.poll(context) {
            // Cancelled now rather than when the `Timeout` is dropped: it is done.
            *this.delay = None;
            return Poll::Ready(Ok(value));
        }
        match this.delay {
            Some(delay) => poll_delay(delay, had_budget, context).map(Err),
            None => Poll::Pending,
        }
    }
}

/// The part that does not depend on the future's type, compiled once. `had_budget` is that of [`poll_limit`].
pub(crate) fn poll_delay(
    delay: &mut Sleep,
    had_budget: bool,
    context: &mut Context<'_>,
) -> Poll<Elapsed> {
    let poll = poll_limit(&mut *delay, had_budget, context);
    poll.map(|()| Elapsed::new(delay.was_stopped()))
}

/// Polls what limits the time of a future that was polled just before. `had_budget` says whether there was coop budget left before
/// that.
#[inline]
pub(crate) fn poll_limit<L: Future + Unpin>(
    limit: L,
    had_budget: bool,
    context: &mut Context<'_>,
) -> Poll<L::Output> {
    if had_budget && !coop::has_budget_remaining() {
        // A future that uses up the budget at each poll would otherwise never reach its time limit.
        pin!(coop::unconstrained(limit)).poll(context)
    } else {
        pin!(limit).poll(context)
    }
}
