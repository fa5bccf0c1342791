use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::JoinHandle;

use super::current::{self, Entered};
use super::deadline::Deadline;
use crate::Timer;
use crate::error::{Elapsed, Error};
use crate::time::{Timeout, timeout_at};

/// Methods that run futures and functions within a deadline.
impl Deadline {
    /// Runs a future with this deadline as the [`current`](Deadline::current) one, and ends it with `Err` at the deadline.
    ///
    /// If the caller's current deadline is earlier, that one is used instead.
    ///
    /// The scope runs on the timer of the caller's scope if that [has one](Deadline), and otherwise on the runtime's timer. The
    /// future is polled before the deadline is checked: if it is ready, its output is returned even after the deadline. The `Err`
    /// is [due](crate::time#when-a-timer-is-due) at the deadline's tick, and never early. Without a deadline, no timer is
    /// involved.
    ///
    /// # Cancellation
    ///
    /// Dropping the [`Scoped`] drops the future and cancels the timer.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`waterwheel::timeout_at`](crate::timeout_at), unless the deadline is
    /// [`never`](Deadline::never). Within a [`scope_on`](Deadline::scope_on), it panics in the same cases as that method.
    #[track_caller]
    pub fn scope<F: IntoFuture>(self, future: F) -> Scoped<F::IntoFuture> {
        match current::timer() {
            Some(timer) => self.scope_on(&timer, future),
            None => Scoped::new(self.earlier(Deadline::current()), future.into_future()),
        }
    }

    /// Runs a future like [`scope`](Deadline::scope), on a timer of your own, which ends the future by its own clock.
    ///
    /// The scope [carries the timer](Deadline) and keeps it alive.
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
    /// Panics if the timer was stopped or has reached its `max_pending`, unless the deadline is [`never`](Deadline::never);
    /// [`try_scope_on`](Deadline::try_scope_on) returns an error instead.
    #[track_caller]
    pub fn scope_on<F: IntoFuture>(self, timer: &Timer, future: F) -> Scoped<F::IntoFuture> {
        match self.try_scope_on(timer, future) {
            Ok(scope) => scope,
            Err(error) => panic!("{error}"),
        }
    }

    /// Like [`scope_on`](Deadline::scope_on), but returns an error instead of panicking, and drops the future in that case.
    ///
    /// # Errors
    ///
    /// Unless the deadline is [`never`](Deadline::never), returns an error if the timer was stopped ([`Error::is_shutdown`]) or
    /// has reached its `max_pending` ([`Error::is_at_capacity`]).
    pub fn try_scope_on<F: IntoFuture>(
        self,
        timer: &Timer,
        future: F,
    ) -> Result<Scoped<F::IntoFuture>, Error> {
        let deadline = self.earlier(Deadline::current_on(timer));
        Scoped::try_new_on(timer, deadline, future.into_future())
    }

    /// Calls a function with this deadline as the [`current`](Deadline::current) one, or with the caller's deadline if that is
    /// earlier. The function is not ended at the deadline.
    ///
    /// Use it for blocking code, for functions that create a future (a `tower` layer calls its inner service this way), and for
    /// futures and bodies that are ended in another way, with each poll in a `sync_scope` of its own. Since nothing ends the
    /// function, a call by a `tower::ClientDeadline` (feature `tower`) within it, as in a nested `block_on`, fails by itself at
    /// the deadline.
    ///
    /// ```
    /// use waterwheel::Duration;
    /// use waterwheel::rpc::Deadline;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let request = Deadline::after(Duration::from_secs(1));
    /// // A scope does not reach blocking code by itself.
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

    /// Calls a function like [`sync_scope`](Deadline::sync_scope), with a timer of your own, which [the scope carries](Deadline).
    /// The function uses the clock of that timer.
    ///
    /// ```
    /// use waterwheel::rpc::Deadline;
    /// use waterwheel::{Duration, ManualClock, Timer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).start()?;
    /// let request = Deadline::at(clock.now() + Duration::from_secs(5));
    /// clock.advance(Duration::from_secs(2));
    /// let left = request.sync_scope_on(&timer, || Deadline::current().remaining());
    /// assert_eq!(left, Some(Duration::from_secs(3)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn sync_scope_on<R>(self, timer: &Timer, act: impl FnOnce() -> R) -> R {
        let mut timer = Some(timer.clone());
        let _entered = Entered::calling(&mut timer, self);
        act()
    }

    /// Spawns a task with this deadline, like `tokio::spawn`, and ends the task with an `Err` at the deadline.
    ///
    /// The task runs the future in a [`scope`](Deadline::scope) that is created by this call: if the caller's current deadline is
    /// earlier, the task has that one instead, and if the caller's scope [has a timer](Deadline), the task has it too. To pass on
    /// the caller's deadline as it is, use `Deadline::current().spawn(future)`.
    ///
    /// The task does not end with the caller. If the deadline is [`never`](Deadline::never), and there is no current one, the task
    /// is not ended at all.
    ///
    /// ```
    /// use waterwheel::rpc::Deadline;
    /// use waterwheel::{Duration, sleep};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::Elapsed> {
    /// let request = Deadline::after(Duration::from_millis(5));
    /// let task = request.spawn(sleep(Duration::from_secs(60)));
    /// assert!(task.await.unwrap().is_err());
    ///
    /// // Code that is called within the scope of a request need not be handed its deadline.
    /// let request = Deadline::after(Duration::from_millis(5));
    /// let task = request
    ///     .scope(async { Deadline::current().spawn(sleep(Duration::from_secs(60))) })
    ///     .await?;
    /// assert!(task.await.unwrap().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime. It also panics in the same cases as [`scope`](Deadline::scope), except that a panic of
    /// the first pending poll is a panic of the spawned task.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<Result<F::Output, Elapsed>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.scope(future))
    }
}

pin_project! {
    /// The future of [`Deadline::scope`] and [`Deadline::scope_on`].
    ///
    /// If it is polled within a scope whose deadline is earlier, that deadline is current during the poll. If that scope has
    /// another clock, [the remaining time](Deadline) counts.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Scoped<F> {
        // Its deadline is that of the scope.
        #[pin]
        inner: Timeout<F>,
        // `None` for the runtime's. While the future is polled, what was current before.
        timer: Option<Timer>,
    }
}

impl<F> Scoped<F> {
    /// Returns a reference to the future that is in the scope.
    pub fn get_ref(&self) -> &F {
        self.inner.get_ref()
    }

    /// Returns a mutable reference to the future that is in the scope.
    pub fn get_mut(&mut self) -> &mut F {
        self.inner.get_mut()
    }

    /// Consumes the `Scoped`, and returns the future without its scope.
    pub fn into_inner(self) -> F {
        self.inner.into_inner()
    }
}

impl<F: Future> Scoped<F> {
    #[track_caller]
    pub(super) fn new(deadline: Deadline, future: F) -> Scoped<F> {
        let inner = match deadline.instant() {
            Some(instant) => timeout_at(instant, future),
            None => Timeout::new(None, future),
        };
        Scoped { inner, timer: None }
    }

    pub(super) fn try_new_on(
        timer: &Timer,
        deadline: Deadline,
        future: F,
    ) -> Result<Scoped<F>, Error> {
        let inner = match deadline.instant() {
            Some(instant) => timer.try_timeout_at(instant, future)?,
            None => Timeout::new(None, future),
        };
        let timer = Some(timer.clone());
        Ok(Scoped { inner, timer })
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let inner = this.inner;
        let deadline = inner
            .deadline()
            .map_or(const { Deadline::never() }, Deadline::at);
        let _entered = Entered::polling(this.timer, deadline);
        inner.poll(context)
    }
}
