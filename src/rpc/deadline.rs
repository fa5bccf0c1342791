use tokio::time::{Duration, Instant};

use super::current;
use crate::Timer;

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
/// - What its future polls, on whichever threads: what it awaits, and also the tasks of a `LocalSet` or a `FuturesUnordered` that is polled
///   within it, wherever they were added.
/// - Not another task, as a [task-local](tokio::task_local) value: `tokio::spawn` spawns one without the deadline, which is right for
///   work that must go on after the request. [`Deadline::spawn`] spawns it with the deadline, and `Deadline::current().scope(future)`
///   carries that anywhere else, as into a `JoinSet`.
/// - Not the destructor of a future that was cut: that runs where the [`Scoped`](super::Scoped) is dropped, so that it may still call.
/// - Blocking code only by [`sync_scope`](Deadline::sync_scope).
///
/// # Time
///
/// A deadline is an instant of some clock, and does not say of which. Outside of scopes that is the clock of the runtime that the thread is
/// in, `Instant::now()`. For a [`Timer`] with another clock, such as a [`ManualClock`](crate::ManualClock), use
/// `Deadline::at(timer.now() + limit)` and [`scope_on`](Deadline::scope_on).
///
/// A scope on a timer carries the timer: within it, [`current`](Deadline::current), [`after`](Deadline::after) and
/// [`remaining`](Deadline::remaining) go by the clock of that timer, and [`scope`](Deadline::scope) and [`spawn`](Deadline::spawn) use the
/// timer. So code that is called there need not know it. Of a scope around it on another clock, what remains of the deadline counts.
///
/// A deadline that was made outside of such a scope and is used by name within it is not converted; nor is one that is taken out of it.
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
    /// So long from now, by `Instant::now()`, or by the clock of the [scope's timer](Deadline). If that is beyond the range of
    /// `Instant`, as of `Duration::MAX`: never.
    pub fn after(duration: Duration) -> Deadline {
        Deadline {
            instant: current::now().checked_add(duration),
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
        current::deadline()
    }

    /// [`current`](Deadline::current), by the clock of this timer. If the caller's scope has another clock, what remains by that one is
    /// counted from now, and rounded down.
    ///
    /// For code that has a timer of its own whatever the scope it is called in.
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

    /// How much time is left, by `Instant::now()`, or by the clock of the [scope's timer](Deadline): zero if the deadline has passed,
    /// `None` for never.
    #[must_use]
    pub fn remaining(self) -> Option<Duration> {
        // The clock is not read for what never comes.
        self.instant?;
        self.remaining_at(current::now())
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
}
