use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::guarded::{Delay, Guarded};
use super::last_touch::LastTouch;
use crate::Timer;
use crate::error::Error;

/// Ends what has been idle for too long: a connection without traffic, a stream without frames.
///
/// [`touch`](IdleTimeout::touch) says that it is in use; each packet, say, touches. [`guard`](IdleTimeout::guard) runs a future, and
/// ends it when the last touch is `limit` ago. A touch moves no timer and takes no lock: it reads the clock and writes a cell, and
/// the cell only once a tick. When the guard's timer is due, the guard looks at the cell and sleeps on.
///
/// An idle timeout is a handle: clones, on whichever threads, touch the same one. It keeps its timer alive.
///
/// The issue [reqwest#3085](https://github.com/seanmonstar/reqwest/issues/3085) asks for such a limit that need not be polled.
///
/// # Precision
///
/// It is never early: no guard ends before `limit` has passed since the last touch that happened before. The cell holds ticks, and
/// a touch is rounded up to one; so the end is at most a tick later than that of a [`sleep`](crate::sleep()) from the last touch.
///
/// A touch that comes while the guard ends may be too late for it. A touch after the end changes nothing there; it counts for other
/// guards of the same idle timeout.
///
/// # Example
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
    /// An idle timeout on the runtime's timer, [`Timer::current`]. It counts as touched now.
    ///
    /// A duration that overflows, as `Duration::MAX`, means never: then a guard has no timer, and stopping the timer changes nothing.
    /// With a duration of zero, a guard ends at the end of the running tick.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, or in one without `enable_time`.
    #[must_use]
    #[track_caller]
    pub fn new(limit: Duration) -> IdleTimeout {
        IdleTimeout::on(&Timer::current(), limit)
    }

    /// An idle timeout on a timer of your own. Needs no runtime around it. It counts as touched now, by the timer's clock.
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

    /// Says that it is in use now, by the timer's clock. Costs a read of the clock and [`touch_at`](IdleTimeout::touch_at).
    ///
    /// It may be called on any thread, and needs no runtime around it.
    #[inline]
    pub fn touch(&self) {
        self.touch_at(self.shared.timer.now());
    }

    /// Says that it was in use at an instant of the timer's clock ([`Timer::now`]), for callers that have just read it.
    ///
    /// An instant before the last touch changes nothing, so the order in which threads touch does not matter. From an instant in
    /// the future the idle time runs from then.
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

    /// When it ends, if no touch comes until then; `None` for never. The last touch counts as rounded up to a tick.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let shared = &*self.shared;
        let last = shared.timer.clock().instant_of(shared.last.tick())?;
        last.checked_add(shared.limit)
    }

    /// For how long it may be idle.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.shared.limit
    }

    /// Runs a future, and ends it when the last touch is [`limit`](IdleTimeout::limit) ago: then the output is an [`Elapsed`](crate::error::Elapsed).
    ///
    /// To guard is no touch. If the last one is longer ago already, a future that is not ready ends at its first poll. An idle timeout
    /// may have several guards, as one for each direction of a connection; all end by the same touches. The future is polled first:
    /// if it is ready it wins. A guard holds one place of its timer's `max_pending` until it is done, also while it sleeps on.
    ///
    /// If the timer is stopped, the guard ends with an `Elapsed` whose [`was_stopped`](crate::error::Elapsed::was_stopped) is true. To
    /// [`drain`](Timer::drain) a timer is to stop it when the sleeps of its guards are due, even if touches came since.
    ///
    /// # Cancellation
    ///
    /// Dropping the [`Guarded`] drops the future and cancels its timer.
    ///
    /// # Panics
    ///
    /// If the timer was stopped or has reached its `max_pending`; see [`try_guard`](IdleTimeout::try_guard).
    /// Also if its runtime [has ended](crate::time#when-a-runtime-ends), as do polls of the guard then.
    #[track_caller]
    pub fn guard<F: IntoFuture>(&self, future: F) -> Guarded<F::IntoFuture> {
        match self.try_delay() {
            Ok(delay) => self.guard_with(delay, future),
            Err(error) => panic!("{error}"),
        }
    }

    /// [`guard`](IdleTimeout::guard), or an error; then the future is dropped.
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
    /// [`Error::is_shutdown`] if the timer was stopped, [`Error::is_at_capacity`] if it has reached its `max_pending`.
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
