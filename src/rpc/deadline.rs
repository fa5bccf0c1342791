use tokio::time::{Duration, Instant};

use super::current;
use crate::Timer;

/// The instant by which a request must be done, or never, which is the default.
///
/// Within a [`scope`](Deadline::scope), the deadline is [`current`](Deadline::current) for everything that the scope's future
/// awaits. Code that calls another server can therefore pass on the remaining time, and no function in between has to pass the
/// deadline along. With nested scopes the earlier deadline applies: an inner scope can only leave less time.
///
/// A scope carries the deadline and ends its future at the deadline, as a deadline in gRPC does. The contexts of grpc-go and
/// grpc-java propagate deadlines from server calls to client calls in the same way;
/// [grpc-rust#2316](https://github.com/grpc/grpc-rust/issues/2316) asks for it.
///
/// # Propagation
///
/// - A scope reaches everything that its future polls, on any thread: what it awaits, and also the tasks of a `LocalSet` or a
///   `FuturesUnordered` that is polled within it, wherever they were added.
/// - It does not reach other tasks, just like a [task-local](tokio::task_local) value: `tokio::spawn` spawns a task without the
///   deadline, which is right for work that must go on after the request. `Deadline::current().spawn(future)` spawns it with the
///   deadline, see [`spawn`](Deadline::spawn), and `Deadline::current().scope(future)` carries the deadline anywhere else, such as
///   into a `JoinSet`.
/// - It does not reach the destructor of a future that was ended at the deadline. The destructor runs where the
///   [`Scoped`](super::Scoped) is dropped, so it can still make calls.
/// - It reaches blocking code only through [`sync_scope`](Deadline::sync_scope).
///
/// # Time
///
/// A deadline is an instant of a clock, but does not record of which one. Outside of scopes it is the clock of the runtime that
/// the thread is in, `Instant::now()`. For a [`Timer`] with another clock, such as a [`ManualClock`](crate::ManualClock), use
/// `Deadline::at(timer.now() + limit)` and [`scope_on`](Deadline::scope_on).
///
/// A scope on a timer carries the timer: within it, [`current`](Deadline::current), [`after`](Deadline::after) and
/// [`remaining`](Deadline::remaining) use the clock of that timer, and [`scope`](Deadline::scope) and [`spawn`](Deadline::spawn)
/// use the timer itself. Code that is called there need not know about it. If an outer scope has another clock, the remaining
/// time of its deadline is what counts.
///
/// A deadline that was created outside of such a scope and is used directly within it is not converted; nor is a deadline that is
/// taken out of the scope.
///
/// # Examples
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
///     // A longer limit for a part of it has no effect.
///     let part = Deadline::after(Duration::from_secs(60));
///     part.scope(async { assert_eq!(Deadline::current(), request) }).await?;
///     Deadline::current().spawn(sleep(Duration::from_secs(60))).await.expect("it does not panic")
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
    /// Creates a deadline that is `duration` from now, by `Instant::now()`, or by the clock of the [scope's timer](Deadline).
    ///
    /// If the deadline would be beyond the range of `Instant`, as with `Duration::MAX`, it is [`never`](Deadline::never).
    pub fn after(duration: Duration) -> Deadline {
        Deadline {
            instant: current::now().checked_add(duration),
        }
    }

    /// Creates a deadline at an instant, which may have passed.
    #[inline]
    pub const fn at(instant: Instant) -> Deadline {
        Deadline {
            instant: Some(instant),
        }
    }

    /// Creates a deadline that never comes.
    #[inline]
    pub const fn never() -> Deadline {
        Deadline { instant: None }
    }

    /// Returns the deadline of the innermost scope around the caller, or that of an outer scope if it is earlier. Outside of
    /// scopes, returns [`never`](Deadline::never).
    #[inline]
    pub fn current() -> Deadline {
        current::deadline()
    }

    /// Returns the [`current`](Deadline::current) deadline by the clock of this timer.
    ///
    /// If the caller's scope has another clock, the remaining time by that clock is added to the current time of this timer, and
    /// rounded down. Use this method in code that has a timer of its own, independent of the scope in which it is called.
    ///
    /// ```
    /// use waterwheel::rpc::Deadline;
    /// use waterwheel::{Duration, ManualClock, Timer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// clock.advance(Duration::from_secs(3_600));
    /// let timer = Timer::builder().clock(clock.clone()).start()?;
    /// let request = Deadline::after(Duration::from_secs(1));
    /// request
    ///     .scope(async {
    ///         let deadline = Deadline::current_on(&timer);
    ///         assert!(deadline.remaining_at(clock.now()) <= Some(Duration::from_secs(1)));
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn current_on(timer: &Timer) -> Deadline {
        current::deadline_on(Some(timer))
    }

    /// Returns `true` if the deadline never comes.
    #[inline]
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.instant.is_none()
    }

    /// Returns the instant of the deadline, or `None` for never.
    #[inline]
    #[must_use]
    pub const fn instant(self) -> Option<Instant> {
        self.instant
    }

    /// Returns the remaining time by `Instant::now()`, or by the clock of the [scope's timer](Deadline): zero if the deadline has
    /// passed, `None` for never.
    #[must_use]
    pub fn remaining(self) -> Option<Duration> {
        // The clock is not read for what never comes.
        self.instant?;
        self.remaining_at(current::now())
    }

    /// Returns the remaining time at `now`: zero if the deadline has passed, `None` for never. For a timer with a clock of its
    /// own, `now` is [`Timer::now`].
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

    /// Returns the earlier of two deadlines. Never is later than every instant.
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
}
