use std::future::{Future, IntoFuture};

use tokio::task::JoinHandle;

use super::current::{self, Entered};
use super::deadline::Deadline;
use super::scoped::Scoped;
use crate::Timer;
use crate::error::{Elapsed, Error};

/// Scopes: where a deadline is current.
impl Deadline {
    /// Runs a future with this deadline as [`current`](Deadline::current), and ends it at the deadline, with `Err`. If the caller's
    /// current deadline is earlier, that one counts.
    ///
    /// On the timer of the caller's scope if that [has one](Deadline), else on the runtime's. The future is polled first: if it is ready it wins, even past the deadline. The `Err` is
    /// [due](crate::time#when-a-timer-is-due) at the deadline's tick, and never early. Without a deadline no timer is involved.
    ///
    /// # Cancellation
    ///
    /// Dropping the [`Scoped`] drops the future and cancels the timer.
    ///
    /// # Panics
    ///
    /// As [`waterwheel::timeout_at`](crate::timeout_at), unless the deadline is never. Within a [`scope_on`](Deadline::scope_on): as that.
    #[track_caller]
    pub fn scope<F: IntoFuture>(self, future: F) -> Scoped<F::IntoFuture> {
        match current::timer() {
            Some(timer) => self.scope_on(&timer, future),
            None => Scoped::new(self.earlier(Deadline::current()), future.into_future()),
        }
    }

    /// [`scope`](Deadline::scope) on a timer of your own, which ends the future by its own clock. The scope
    /// [carries the timer](Deadline), and keeps it alive.
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
        let deadline = self.earlier(Deadline::current_on(timer));
        Scoped::try_new_on(timer, deadline, future.into_future())
    }

    /// Calls a function with this deadline as [`current`](Deadline::current), or with the caller's if that is earlier. It is not
    /// ended at the deadline.
    ///
    /// For blocking code, for what makes a future (a `tower` layer calls its inner service so), and for futures and bodies that
    /// are ended in another way: each poll in a `sync_scope` of its own. Since nothing ends the function, a call by a
    /// `tower::ClientDeadline` in it, as in a nested `block_on`, fails by itself at the deadline.
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

    /// [`sync_scope`](Deadline::sync_scope) with a timer of your own, which [the scope carries](Deadline): what is called goes by the
    /// clock of that timer.
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

    /// `tokio::spawn` with the caller's current deadline: the task is ended there, with an `Err`. If the caller's scope
    /// [has a timer](Deadline), so has the task.
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
    /// Outside a tokio runtime. With a current deadline, as [`scope`](Deadline::scope); a panic of its first pending poll is one of the
    /// spawned task.
    #[track_caller]
    pub fn spawn<F>(future: F) -> JoinHandle<Result<F::Output, Elapsed>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(Deadline::current().scope(future))
    }
}
