use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::coop;
use tokio::time::{Duration, Instant};

use crate::Timer;
use crate::driver::End;
use crate::error::{Elapsed, Error};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::time::{RUNTIME_IS_OVER, Sleep, poll_limit};
use crate::wheel::Tick;

/// Ends a future that has been idle for too long, such as a connection without traffic or a stream without frames.
///
/// [`touch`](IdleTimeout::touch) reports activity, for instance on each packet. [`guard`](IdleTimeout::guard) runs a future, and
/// ends it when the last touch was `limit` ago. A touch moves no timer and takes no lock: it reads the clock and updates an
/// atomic, at most once per tick. When the guard's timer is due, the guard reads the time of the last touch and, if there was
/// one, continues to sleep.
///
/// An `IdleTimeout` is a handle: its clones share the time of the last touch and can be used from any thread. It keeps its timer
/// alive.
///
/// [reqwest#3085](https://github.com/seanmonstar/reqwest/issues/3085) asks for such a limit that does not have to be polled.
///
/// # Precision
///
/// A guard never ends its future before `limit` has passed since the last touch that happened before that. The time of a touch is
/// rounded up to a tick, so the future ends at most one tick later than a [`sleep`](crate::sleep()) that was started at the last
/// touch.
///
/// A touch that arrives while a guard ends its future may be too late for it. A touch after that has no effect on this guard, but
/// counts for other guards of the same idle timeout.
///
/// # Examples
///
/// ```
/// use waterwheel::rpc::IdleTimeout;
/// use waterwheel::{Duration, sleep};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let idle = IdleTimeout::new(Duration::from_millis(10));
/// let connection = idle.clone();
/// let served = idle.guard(async move {
///     for _packet in 0..5 {
///         sleep(Duration::from_millis(8)).await;
///         connection.touch();
///     }
///     std::future::pending::<()>().await // The client has gone silent.
/// });
/// assert!(served.await.is_err());
/// # }
/// ```
#[derive(Clone)]
pub struct IdleTimeout {
    shared: Arc<Shared>,
}

struct Shared {
    last: LastTouch,
    limit: Duration,
    timer: Timer,
}

impl IdleTimeout {
    /// Creates an idle timeout on the runtime's timer, [`Timer::current`], touched now.
    ///
    /// A duration that overflows, such as `Duration::MAX`, means never: a guard then has no timer, and stopping the timer has no
    /// effect. With a duration of zero, a guard ends its future at the end of the current tick.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime, or if the runtime was built without `enable_time`.
    #[must_use]
    #[track_caller]
    pub fn new(limit: Duration) -> IdleTimeout {
        IdleTimeout::on(&Timer::current(), limit)
    }

    /// Creates an idle timeout on a timer of your own, touched now by the timer's clock. It can be called outside of a runtime.
    ///
    /// ```
    /// use waterwheel::rpc::IdleTimeout;
    /// use waterwheel::{Duration, Timer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// let timer = Timer::builder().name("connections").start()?;
    /// let idle = IdleTimeout::on(&timer, Duration::from_millis(5));
    /// assert!(idle.guard(std::future::pending::<()>()).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on(timer: &Timer, limit: Duration) -> IdleTimeout {
        let now = timer.clock().tick_after(timer.now());
        IdleTimeout {
            shared: Arc::new(Shared {
                last: LastTouch::new(now),
                limit,
                timer: timer.clone(),
            }),
        }
    }

    /// Reports activity now, by the timer's clock.
    ///
    /// It can be called on any thread, also outside of a runtime. It costs a read of the clock in addition to
    /// [`touch_at`](IdleTimeout::touch_at).
    #[inline]
    pub fn touch(&self) {
        self.touch_at(self.shared.timer.now());
    }

    /// Reports activity at an instant of the timer's clock ([`Timer::now`]), for callers that have just read it.
    ///
    /// An instant before the last touch has no effect, so the order in which threads call this does not matter. With an instant
    /// in the future, the idle time starts at that instant.
    ///
    /// ```
    /// use waterwheel::rpc::IdleTimeout;
    /// use waterwheel::{Duration, Timer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let timer = Timer::current();
    /// let reads = IdleTimeout::on(&timer, Duration::from_secs(30));
    /// let writes = IdleTimeout::on(&timer, Duration::from_secs(60));
    /// let now = timer.now(); // One look at the clock for both.
    /// reads.touch_at(now);
    /// writes.touch_at(now);
    /// # }
    /// ```
    #[inline]
    pub fn touch_at(&self, instant: Instant) {
        let shared = &*self.shared;
        shared.last.touch(shared.timer.clock().tick_after(instant));
    }

    /// Returns the instant at which guards end their futures if there is no further touch, or `None` for never. The time of the
    /// last touch is rounded up to a tick.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let shared = &*self.shared;
        let last = shared.timer.clock().instant_of(shared.last.tick())?;
        last.checked_add(shared.limit)
    }

    /// Returns the idle time after which guards end their futures.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.shared.limit
    }

    /// Runs a future, and ends it with an [`Elapsed`] when the last touch was
    /// [`limit`](IdleTimeout::limit) ago.
    ///
    /// Calling `guard` does not count as a touch: if the last touch is already longer ago than the limit, a future that is not
    /// ready ends at its first poll. An idle timeout can have several guards, for instance one per direction of a connection; the
    /// same touches keep all of them alive. The future is polled before the limit is checked: if it is ready, its output is
    /// returned. A guard takes one place of its timer's `max_pending` until it is done, also while it continues to sleep.
    ///
    /// If the timer is stopped, the guard ends with an `Elapsed` whose [`was_stopped`](crate::error::Elapsed::was_stopped) is
    /// true. [Draining](Timer::drain) the timer stops it once the sleeps of its guards are due, even if there were touches in the
    /// meantime.
    ///
    /// # Cancellation
    ///
    /// Dropping the [`Guarded`] drops the future and cancels its timer.
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; [`try_guard`](IdleTimeout::try_guard) returns an error
    /// instead. Also panics if the timer's runtime [has ended](crate::time#when-a-runtime-ends); polling the guard then panics
    /// too.
    #[track_caller]
    pub fn guard<F: IntoFuture>(&self, future: F) -> Guarded<F::IntoFuture> {
        match self.try_delay() {
            Ok(delay) => self.guard_with(delay, future),
            Err(error) => panic!("{error}"),
        }
    }

    /// Like [`guard`](IdleTimeout::guard), but returns an error instead of panicking, and drops the future in that case.
    ///
    /// ```
    /// use std::future::pending;
    /// use waterwheel::rpc::IdleTimeout;
    /// use waterwheel::{Duration, Timer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let timer = Timer::builder().max_pending(1).start()?;
    /// let idle = IdleTimeout::on(&timer, Duration::from_secs(30));
    /// let _connection = idle.try_guard(pending::<()>())?;
    /// let shed = idle.try_guard(pending::<()>()).unwrap_err();
    /// assert!(shed.is_at_capacity());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the timer was stopped ([`Error::is_shutdown`]) or has reached its `max_pending`
    /// ([`Error::is_at_capacity`]).
    pub fn try_guard<F: IntoFuture>(&self, future: F) -> Result<Guarded<F::IntoFuture>, Error> {
        Ok(self.guard_with(self.try_delay()?, future))
    }

    fn guard_with<F: IntoFuture>(&self, delay: Delay, future: F) -> Guarded<F::IntoFuture> {
        Guarded::new(future.into_future(), delay, self.clone())
    }

    fn try_delay(&self) -> Result<Delay, Error> {
        let timer = &self.shared.timer;
        let Some(deadline) = self.deadline() else {
            timer.shard().lifecycle().is_open()?;
            return Ok(Delay::Never);
        };
        timer.try_sleep_until(deadline).map(Delay::Until)
    }
}

impl fmt::Debug for IdleTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleTimeout")
            .field("limit", &self.limit())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`IdleTimeout::guard`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Guarded<F> {
        #[pin]
        future: F,
        delay: Delay,
        idle: IdleTimeout,
    }
}

/// How a guard waits while its future is pending.
#[derive(Debug)]
pub(super) enum Delay {
    /// The deadline as of the last look at the cell; it may be later by now.
    Until(Sleep),
    /// The idle time is so long that it never ends, or the future is done.
    Never,
    /// The guard has ended the future.
    Ended { was_stopped: bool },
}

impl<F> Guarded<F> {
    pub(super) fn new(future: F, delay: Delay, idle: IdleTimeout) -> Guarded<F> {
        Guarded {
            future,
            delay,
            idle,
        }
    }

    /// Returns a reference to the guarded future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns a mutable reference to the guarded future.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Consumes the `Guarded`, and returns the future without its time limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(value) = this.future.poll(context) {
            *this.delay = Delay::Never;
            return Poll::Ready(Ok(value));
        }
        this.delay.poll(this.idle, had_budget, context).map(Err)
    }
}

impl Delay {
    /// Not generic, compiled once.
    fn poll(
        &mut self,
        idle: &IdleTimeout,
        had_budget: bool,
        context: &mut Context<'_>,
    ) -> Poll<Elapsed> {
        loop {
            let sleep = match self {
                Delay::Until(sleep) => sleep,
                Delay::Never => return Poll::Pending,
                Delay::Ended { was_stopped } => return Poll::Ready(Elapsed::new(*was_stopped)),
            };
            // As an interval does, it keeps its permit from one sleep to the next.
            let tick = poll_fn(|context| sleep.poll_tick(context));
            ready!(poll_limit(tick, had_budget, context));
            // Each round sleeps until a touch that the one before did not see, plus the idle time.
            match sleep.found_end() {
                None => {}
                Some(End::Stopped) => {
                    *self = Delay::Ended { was_stopped: true };
                    continue;
                }
                // The task is dropped next.
                Some(End::TaskOfEndingRuntime) => return Poll::Pending,
                Some(End::Over) => panic!("{RUNTIME_IS_OVER}"),
            }
            *self = match idle.deadline() {
                Some(deadline) if deadline > sleep.deadline() => {
                    sleep.rearm(deadline);
                    continue;
                }
                Some(_) => Delay::Ended { was_stopped: false },
                None => Delay::Never,
            };
        }
    }
}

// The cell of an idle timeout: the tick of its last touch.
//
// Many threads write it without a lock. A touch reads the cell, and writes it only if its tick is later: most touches of a busy
// connection fall into a tick that is there already, and share the cache line with the other threads that touch.
//
// The write is a `fetch_max`. A store would let a thread that was delayed between its look at the clock and the store overwrite
// a later touch of another thread, and the idle timeout would be early.

#[derive(Debug)]
pub(super) struct LastTouch(AtomicU64);

// Relaxed everywhere: the cell guards no other data. What is promised needs the order of the accesses to this one atomic alone,
// which C++ calls its modification order: the value only grows, and a look that happens after a touch finds that touch or a later
// one. For a touch that leaves the cell as it is, this holds since its own load has found a value that is as late.
impl LastTouch {
    pub(super) fn new(tick: Tick) -> LastTouch {
        LastTouch(AtomicU64::new(tick.get()))
    }

    #[inline]
    pub(super) fn touch(&self, tick: Tick) {
        if self.0.load(Ordering::Relaxed) < tick.get() {
            self.0.fetch_max(tick.get(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn tick(&self) -> Tick {
        Tick::new(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(waterwheel_loom)))]
mod last_touch_tests {
    use super::{LastTouch, Tick};

    #[test]
    fn an_older_touch_does_not_move_the_last_one_back() {
        let last = LastTouch::new(Tick::new(5));
        for (touch, after) in [(4, 5), (5, 5), (9, 9), (7, 9), (0, 9), (u64::MAX, u64::MAX)] {
            last.touch(Tick::new(touch));
            assert_eq!(last.tick(), Tick::new(after), "after {touch}");
        }
    }
}
