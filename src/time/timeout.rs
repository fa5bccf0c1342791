use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::coop;
use tokio::time::{Duration, Instant};

use super::FAR;
use super::sleep::Sleep;
use crate::Timer;
use crate::clock::CLOCKS_CAN_PAUSE;
use crate::driver::all_are_open;
use crate::error::{Elapsed, Error};

/// Limits the time that a future may take.
///
/// The limit runs on the runtime's timer, [`Timer::current`]. The output is that of the future, or [`Elapsed`] if `duration`
/// passes first. The future is polled before the limit is checked: if it is ready, its output is returned even after the
/// deadline. A duration that overflows means no limit; no timer is then involved, and stopping the timer has no effect. Same as
/// `tokio::time::timeout`, apart from [the documented differences](crate::time#differences-from-tokiotime).
///
/// The clock is read at the call. In a spawned task, the timer is looked up at the first poll that finds the future pending, so a
/// call that is ready at once costs only the clock read. The limit then runs on the timer of the runtime that polls it.
///
/// # Precision
///
/// As with [`sleep`](crate::sleep()), the limit never ends before the deadline, and is [due](crate::time#when-a-timer-is-due) at
/// the deadline's tick. With a zero duration, a future that is not ready has until the end of the current tick.
///
/// # Cancellation
///
/// Dropping the `Timeout` drops the future and cancels the timer. No other cleanup is needed.
///
/// # Panics
///
/// Panics at the call if the runtime's timer was shut down or drained. Outside of spawned tasks, it also panics at the call if
/// there is no tokio runtime, or if the runtime was built without `enable_time`; in a spawned task, the first poll that finds the
/// future pending panics in these two cases.
///
/// # Examples
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
    Timeout {
        value: future.into_future(),
        delay: Delay::on_current(duration),
    }
}

/// Requires a future to complete before `deadline`.
///
/// Apart from taking an instant, it behaves like [`timeout`]. Same as `tokio::time::timeout_at`.
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
/// Panics in the same cases as [`timeout`].
#[track_caller]
pub fn timeout_at<F>(deadline: Instant, future: F) -> Timeout<F::IntoFuture>
where
    F: IntoFuture,
{
    Timeout {
        value: future.into_future(),
        delay: Delay::until_on_current(deadline),
    }
}

impl Timer {
    /// Creates a [`timeout`] on this timer.
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_timeout`](Timer::try_timeout) returns an error
    /// instead.
    #[inline(always)]
    #[track_caller]
    pub fn timeout<F>(&self, duration: Duration, future: F) -> Timeout<F::IntoFuture>
    where
        F: IntoFuture,
    {
        Timeout::new(self.sleep_unless_never(duration), future)
    }

    /// Creates a [`timeout_at`] on this timer.
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_timeout_at`](Timer::try_timeout_at) returns an
    /// error instead.
    #[track_caller]
    pub fn timeout_at<F>(&self, deadline: Instant, future: F) -> Timeout<F::IntoFuture>
    where
        F: IntoFuture,
    {
        Timeout::new(Some(self.sleep_until(deadline)), future)
    }

    /// Like [`timeout`](Timer::timeout), but returns an error instead of panicking, and drops the future in that case.
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
    /// Returns an error if the timer was stopped ([`Error::is_shutdown`]) or has reached its `max_pending`
    /// ([`Error::is_at_capacity`]).
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

    /// Like [`timeout_at`](Timer::timeout_at), but returns an error instead of panicking, and drops the future in that case.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`try_timeout`](Timer::try_timeout).
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
        delay: Delay,
    }
}

/// The time limit of a future.
///
/// As large as a `Sleep`: the fields of `Unbound` lie before the niche of the `Instant`, which a `Sleep` has last.
enum Delay {
    /// The deadline is beyond the range of `Instant`, or the future is done.
    Never,
    Bound(Sleep),
    /// Will be on the timer of the runtime that finds the future pending. The duration is what was asked for, or zero if it says
    /// nothing about that runtime's clock.
    Unbound {
        deadline: Instant,
        seconds: u32,
        nanos: u32,
    },
}

impl Delay {
    #[inline(always)]
    #[track_caller]
    fn on_current(duration: Duration) -> Delay {
        if !may_be_unbound() {
            return Delay::of(Sleep::on_current(duration));
        }
        if duration > FAR {
            return Delay::beyond(duration);
        }
        // Two runtimes have two clocks, if clocks can be paused.
        let known = if CLOCKS_CAN_PAUSE {
            Duration::ZERO
        } else {
            duration
        };
        Delay::Unbound {
            deadline: Instant::now() + duration,
            // Fits: it is at most `FAR`.
            seconds: known.as_secs() as u32,
            nanos: known.subsec_nanos(),
        }
    }

    #[cold]
    fn beyond(duration: Duration) -> Delay {
        match Instant::now().checked_add(duration) {
            Some(deadline) => Delay::unbound_until(deadline),
            None => Delay::Never,
        }
    }

    #[inline(always)]
    #[track_caller]
    fn until_on_current(deadline: Instant) -> Delay {
        if !may_be_unbound() {
            return Delay::Bound(super::sleep_until(deadline));
        }
        Delay::unbound_until(deadline)
    }

    #[inline(always)]
    fn unbound_until(deadline: Instant) -> Delay {
        Delay::Unbound {
            deadline,
            seconds: 0,
            nanos: 0,
        }
    }

    #[inline(always)]
    fn of(sleep: Option<Sleep>) -> Delay {
        match sleep {
            Some(sleep) => Delay::Bound(sleep),
            None => Delay::Never,
        }
    }

    /// Finds the timer of the runtime that polls.
    #[inline(never)]
    fn bind(&mut self) -> &mut Sleep {
        if let Delay::Unbound {
            deadline,
            seconds,
            nanos,
        } = *self
        {
            let duration = Duration::new(u64::from(seconds), nanos);
            *self = Delay::Bound(Sleep::bound_late(deadline, duration));
        }
        match self {
            Delay::Bound(sleep) => sleep,
            Delay::Never | Delay::Unbound { .. } => unreachable!("it has a deadline"),
        }
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delay::Never => f.write_str("Never"),
            Delay::Bound(sleep) => sleep.fmt(f),
            Delay::Unbound { deadline, .. } => {
                let mut unbound = f.debug_struct("Unbound");
                unbound.field("deadline", deadline).finish()
            }
        }
    }
}

/// Whether a call may leave it to the first pending poll to find the timer: in a task, and so in a runtime, and if no timer may have to
/// refuse the call.
#[inline(always)]
fn may_be_unbound() -> bool {
    tokio::task::try_id().is_some() && all_are_open()
}

impl<T> Timeout<T> {
    #[inline(always)]
    pub(crate) fn new<F>(delay: Option<Sleep>, future: F) -> Timeout<T>
    where
        F: IntoFuture<IntoFuture = T>,
    {
        Timeout {
            value: future.into_future(),
            delay: Delay::of(delay),
        }
    }

    /// `None` for never, and after completion.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.delay {
            Delay::Never => None,
            Delay::Bound(sleep) => Some(sleep.deadline()),
            Delay::Unbound { deadline, .. } => Some(*deadline),
        }
    }

    /// Returns a reference to the future that has the time limit.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a mutable reference to the future that has the time limit.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Consumes the `Timeout`, and returns the future without its time limit.
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
            *this.delay = Delay::Never;
            return Poll::Ready(Ok(value));
        }
        let sleep = match this.delay {
            Delay::Never => return Poll::Pending,
            Delay::Bound(sleep) => sleep,
            unbound => unbound.bind(),
        };
        poll_delay(sleep, had_budget, context).map(Err)
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
