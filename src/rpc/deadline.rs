use std::cell::Cell;
use std::future::Future;

use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use super::scoped::Scoped;
use crate::Timer;
use crate::error::{Elapsed, Error};

thread_local! {
    /// The deadline of the code that runs on this thread: [`Entered`] sets it for as long as a scope is polled.
    static CURRENT: Cell<Deadline> = const { Cell::new(Deadline::never()) };
}

/// The instant by which a request must be done; or never, which is the default.
///
/// Within a [`scope`](Deadline::scope) the deadline is [`current`](Deadline::current), for all that the scope's future awaits.
/// So code that calls another server can pass on what is left of the time, and no function in between has to hand the deadline
/// through. Of nested scopes the earlier deadline counts: an inner scope can only leave less time.
///
/// A scope carries the deadline and ends its future at the deadline, as a deadline in gRPC does. The issue
/// [grpc-rust#2316](https://github.com/grpc/grpc-rust/issues/2316) asks for deadlines that pass from server to client calls by
/// themselves; the contexts of grpc-go and grpc-java do this.
///
/// # What a scope reaches
///
/// - What its future awaits, on whichever threads. As a [task-local](tokio::task_local) value, it does not pass to another task by
///   itself: [`Deadline::spawn`] spawns a task with it, and `tokio::spawn` without it, which is right for work that must go on
///   after the request. `Deadline::current().scope(future)` carries it anywhere else, as into a `JoinSet`.
/// - Not the destructor of a future that was cut: that runs where the [`Scoped`] is dropped, so that it may still call.
/// - Blocking code only by [`sync_scope`](Deadline::sync_scope).
///
/// # Time
///
/// [`after`](Deadline::after) and [`remaining`](Deadline::remaining) go by `Instant::now()`, the clock of the runtime that the
/// thread is in. For a [`Timer`] whose clock is another one, use `Deadline::at(timer.now() + limit)`,
/// [`remaining_at`](Deadline::remaining_at)`(timer.now())` and [`scope_on`](Deadline::scope_on).
///
/// # Example
///
/// ```
/// use waterwheel::rpc::Deadline;
/// use waterwheel::{Duration, sleep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let request = Deadline::after(Duration::from_millis(5));
/// let cut = request.scope(async {
///     assert_eq!(Deadline::current(), request);
///     // A longer limit for a part of it does not help.
///     let part = Deadline::after(Duration::from_secs(60));
///     part.scope(async { assert_eq!(Deadline::current(), request) }).await?;
///     Deadline::spawn(sleep(Duration::from_secs(60))).await.expect("it does not panic")
/// });
/// assert!(matches!(cut.await, Err(_elapsed)));
/// assert_eq!(Deadline::current(), Deadline::never());
/// # }
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a deadline does nothing by itself: use its `scope`"]
pub struct Deadline {
    /// `None` for never.
    instant: Option<Instant>,
}

impl Deadline {
    /// So long from now, by `Instant::now()`. If that is beyond the range of `Instant`, as of `Duration::MAX`: never.
    pub fn after(duration: Duration) -> Deadline {
        Deadline {
            instant: Instant::now().checked_add(duration),
        }
    }

    /// The deadline at an instant, which may have passed.
    #[inline]
    pub const fn at(instant: Instant) -> Deadline {
        Deadline {
            instant: Some(instant),
        }
    }

    /// No deadline.
    #[inline]
    pub const fn never() -> Deadline {
        Deadline { instant: None }
    }

    /// The deadline of the innermost scope around the caller, or an earlier one of a scope around that; outside of scopes
    /// [`never`](Deadline::never).
    #[inline]
    pub fn current() -> Deadline {
        // A thread that is ending may have no locals any more.
        CURRENT
            .try_with(Cell::get)
            .unwrap_or(const { Deadline::never() })
    }

    /// Whether it never comes.
    #[inline]
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.instant.is_none()
    }

    /// The instant; `None` for never.
    #[inline]
    #[must_use]
    pub const fn instant(self) -> Option<Instant> {
        self.instant
    }

    /// How much time is left, by `Instant::now()`: zero if the deadline has passed, `None` for never.
    #[must_use]
    pub fn remaining(self) -> Option<Duration> {
        // The clock is not read for what never comes.
        self.instant?;
        self.remaining_at(Instant::now())
    }

    /// How much time is left at `now`: zero if the deadline has passed, `None` for never. For a timer with a clock of its own, `now`
    /// is [`Timer::now`].
    ///
    /// ```
    /// use waterwheel::rpc::Deadline;
    /// use waterwheel::{Duration, Instant};
    ///
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// assert_eq!(Deadline::at(now + second).remaining_at(now), Some(second));
    /// assert_eq!(Deadline::at(now).remaining_at(now + second), Some(Duration::ZERO));
    /// assert_eq!(Deadline::never().remaining_at(now), None);
    /// ```
    #[inline]
    #[must_use]
    pub fn remaining_at(self, now: Instant) -> Option<Duration> {
        Some(self.instant?.saturating_duration_since(now))
    }

    /// The earlier of two; never is later than every instant.
    ///
    /// ```
    /// use waterwheel::Duration;
    /// use waterwheel::rpc::Deadline;
    ///
    /// let soon = Deadline::after(Duration::from_secs(1));
    /// let later = Deadline::after(Duration::from_secs(2));
    /// assert_eq!(later.earlier(soon), soon);
    /// assert_eq!(Deadline::never().earlier(later), later);
    /// ```
    #[inline]
    pub fn earlier(self, other: Deadline) -> Deadline {
        match (self.instant, other.instant) {
            (Some(one), Some(two)) => Deadline::at(one.min(two)),
            (Some(_), None) => self,
            (None, _) => other,
        }
    }

    /// Runs a future with this deadline as [`current`](Deadline::current), and ends it at the deadline, with `Err`. If the caller's
    /// current deadline is earlier, that one counts.
    ///
    /// On the runtime's timer. The future is polled first: if it is ready it wins, even past the deadline. The `Err` is
    /// [due](crate::time#when-a-timer-is-due) at the deadline's tick, and never early. Without a deadline no timer is involved.
    ///
    /// # Cancellation
    ///
    /// Dropping the [`Scoped`] drops the future and cancels the timer.
    ///
    /// # Panics
    ///
    /// At the call, unless the deadline is never: outside a tokio runtime, in one without `enable_time`, or if the runtime's timer
    /// was shut down.
    #[track_caller]
    pub fn scope<F: IntoFuture>(self, future: F) -> Scoped<F::IntoFuture> {
        Scoped::new(self.earlier(Deadline::current()), future.into_future())
    }

    /// [`scope`](Deadline::scope) on a timer of your own, which ends the future by its own clock.
    ///
    /// ```
    /// use waterwheel::rpc::Deadline;
    /// use waterwheel::{Duration, Timer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// let timer = Timer::builder().start()?;
    /// let deadline = Deadline::at(timer.now() + Duration::from_millis(5));
    /// assert!(deadline.scope_on(&timer, std::future::pending::<()>()).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Unless the deadline is never: if the timer was stopped or has reached its `max_pending`; see
    /// [`try_scope_on`](Deadline::try_scope_on).
    #[track_caller]
    pub fn scope_on<F: IntoFuture>(self, timer: &Timer, future: F) -> Scoped<F::IntoFuture> {
        match self.try_scope_on(timer, future) {
            Ok(scope) => scope,
            Err(error) => panic!("{error}"),
        }
    }

    /// [`scope_on`](Deadline::scope_on), or an error; then the future is dropped.
    ///
    /// # Errors
    ///
    /// Unless the deadline is never: [`Error::is_shutdown`] if the timer was stopped, [`Error::is_at_capacity`] if it has reached
    /// its `max_pending`.
    pub fn try_scope_on<F: IntoFuture>(
        self,
        timer: &Timer,
        future: F,
    ) -> Result<Scoped<F::IntoFuture>, Error> {
        Scoped::try_new_on(
            timer,
            self.earlier(Deadline::current()),
            future.into_future(),
        )
    }

    /// Calls a function with this deadline as [`current`](Deadline::current), or with the caller's if that is earlier. It is not
    /// ended at the deadline.
    ///
    /// For blocking code, for what makes a future (a `tower` layer calls its inner service so), and for futures and bodies that
    /// are ended in another way: each poll in a `sync_scope` of its own.
    ///
    /// ```
    /// use waterwheel::Duration;
    /// use waterwheel::rpc::Deadline;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let request = Deadline::after(Duration::from_secs(1));
    /// // What a scope does not reach by itself: blocking code.
    /// let blocking = tokio::task::spawn_blocking(move || {
    ///     request.sync_scope(|| Deadline::current().remaining())
    /// });
    /// assert!(blocking.await.unwrap().is_some());
    /// # }
    /// ```
    pub fn sync_scope<R>(self, act: impl FnOnce() -> R) -> R {
        let _entered = Entered::new(self);
        act()
    }

    /// `tokio::spawn` with the caller's current deadline: the task is ended there, with an `Err`.
    ///
    /// The task is not ended with the caller. Without a current deadline it is not ended at all.
    ///
    /// ```
    /// use waterwheel::rpc::Deadline;
    /// use waterwheel::{Duration, sleep};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::Elapsed> {
    /// let request = Deadline::after(Duration::from_millis(5));
    /// let task = request
    ///     .scope(async { Deadline::spawn(sleep(Duration::from_secs(60))) })
    ///     .await?;
    /// assert!(task.await.unwrap().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime. With a current deadline, as [`scope`](Deadline::scope).
    #[track_caller]
    pub fn spawn<F>(future: F) -> JoinHandle<Result<F::Output, Elapsed>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(Deadline::current().scope(future))
    }
}

/// Sets the current deadline until it is dropped, also by a panic.
pub(super) struct Entered {
    before: Deadline,
}

impl Entered {
    /// The earlier of `deadline` and the one that is current.
    #[inline]
    pub(super) fn new(deadline: Deadline) -> Entered {
        let before = Deadline::current();
        set_current(deadline.earlier(before));
        Entered { before }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        set_current(self.before);
    }
}

#[inline]
fn set_current(deadline: Deadline) {
    let _ = CURRENT.try_with(|current| current.set(deadline));
}
