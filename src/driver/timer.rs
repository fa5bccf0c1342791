use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::core::Core;
use super::drain::Drain;
use super::drain::stop;
use super::lifecycle::Lifecycle;
use super::metrics::Metrics;
use super::shard::Shard;
use super::snapshot::Snapshot;
use crate::clock::Clock;
use crate::error::Error;
use crate::wheel::Tick;

/// A timer service: the timing wheels, and the driver that turns them.
///
/// There are two kinds:
///
/// - [`Timer::current`] is the timer of the current runtime. The functions at the crate root use it: [`sleep`](crate::sleep),
///   [`timeout`](crate::timeout), [`interval`](crate::interval). Each runtime has one. It is started at its first use and ends
///   with the runtime.
/// - [`Timer::builder`] creates a timer of your own, with a resolution, a limit or a name, which you can stop. Its methods can be
///   called outside a runtime: the driver runs on the runtime that the timer was started on, and uses that runtime's clock unless
///   the timer has [its own](crate::Builder::clock).
///
/// A handle is cheap to clone, and all clones refer to the same timer. When the last handle is dropped, the remaining futures
/// keep working. The driver ends with the last of them.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), waterwheel::error::BuildError> {
/// use waterwheel::{Duration, Timer};
///
/// let timer = Timer::builder().name("requests").max_pending(10_000).start()?;
/// timer.sleep(Duration::from_millis(5)).await;
/// assert_eq!(timer.metrics().fired(), 1);
///
/// let forever = timer.sleep(Duration::from_secs(3600));
/// timer.shutdown();
/// forever.await; // Ready at once: the timer was stopped.
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Timer {
    pub(super) core: Arc<Core>,
}

impl Timer {
    /// Returns the current time of the clock that this timer uses, wherever it is called: the clock of the runtime that the timer
    /// was started on, or [its own](crate::Builder::clock).
    ///
    /// Use it instead of [`Instant::now`] to compute a deadline for a timer whose clock may differ from the caller's, and to
    /// measure how long such a timer took. `Instant::now` reads the clock of the runtime that the thread is in, which may be
    /// paused, or may run while the timer's clock is paused.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().start()?;
    /// let deadline = timer.now() + Duration::from_millis(5);
    /// timer.sleep_until(deadline).await;
    /// assert!(timer.now() >= deadline);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock().now()
    }

    /// Returns the length of one tick.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.core.clock().resolution().tick()
    }

    /// Returns the tick of a deadline: the deadline, rounded up. A timer with this deadline is due when this tick has come.
    ///
    /// This is for a [`Wheel`](crate::wheel::Wheel) of your own that runs on the same ticks as this timer, so that nothing is
    /// rounded twice. An instant before the start of the timer gives [`Tick::ZERO`], and one beyond 64 bits of ticks gives
    /// [`Tick::MAX`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::wheel::{Resolution, Wheel};
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::current();
    /// let resolution = Resolution::new(timer.resolution()).unwrap();
    /// let mut wheel = Wheel::starting_at(resolution, timer.tick_now());
    /// wheel.insert(timer.tick_after(timer.now() + Duration::from_millis(5)), "tea");
    ///
    /// let next = wheel.next_expiration().unwrap();
    /// timer.sleep_until(timer.instant_of(next).unwrap()).await;
    /// assert!(wheel.expire(timer.tick_now(), 1).count() == 1);
    /// # }
    /// ```
    #[must_use]
    pub fn tick_after(&self, deadline: Instant) -> Tick {
        self.clock().tick_after(deadline)
    }

    /// Returns the [current time](Timer::now), rounded down to a tick. Every timer with this tick or an earlier one is due.
    #[must_use]
    pub fn tick_now(&self) -> Tick {
        self.clock().now_tick()
    }

    /// Returns the instant at which a tick starts.
    ///
    /// Returns `None` for [`Tick::MAX`], which means never, and for a tick beyond the range of `Instant`.
    #[must_use]
    pub fn instant_of(&self, tick: Tick) -> Option<Instant> {
        self.clock().instant_of(tick)
    }

    /// Returns the name that the timer was built with.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.core.name()
    }

    /// Returns the maximum number of shards. A shard is created when it is first used.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.core.shard_count()
    }

    /// Returns how many futures and callbacks the timer holds at most, or `None` if there is no limit.
    #[must_use]
    pub fn max_pending(&self) -> Option<usize> {
        self.core
            .common
            .permits
            .as_ref()
            .map(|permits| permits.most())
    }

    /// Returns the counters of the timer since its start. See [`Metrics`].
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core.common.list.metrics()
    }

    /// Takes a snapshot of the wheels: the dials of each shard, where their hands stand, and how many timers each slot has. See
    /// [`Snapshot`].
    ///
    /// O(timers + slots of all shards), about 8 ms for a million timers. It visits every timer, and releases the shard's lock
    /// after every 1024 of them: after about 4 µs, and at most 6 µs unless the thread is interrupted. [`metrics`](Timer::metrics)
    /// costs far less.
    ///
    /// Netty's `HashedWheelTimer` reports only how many timeouts are pending; a snapshot also shows when they come due.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().start()?;
    /// tokio::spawn(timer.sleep(Duration::from_secs(3 * 3600)));
    /// tokio::task::yield_now().await;
    /// let timers: Vec<u64> = timer.snapshot().dials().iter().map(|dial| dial.timers()).collect();
    /// assert_eq!(timers, [0, 0, 0, 1, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        // With no lock held: to read a clock that can be paused, this enters the home runtime.
        let (clock, now) = (self.clock(), self.now());
        let seen_from = (now, clock.tick_before(now));
        let looks = self.core.common.list.look(seen_from.1);
        Snapshot::of(self.name(), clock.resolution(), seen_from, looks)
    }

    /// Stops the timer: everything that is pending becomes ready at once, and nothing new is accepted. Returns how many timers
    /// were pending; a second call returns 0.
    ///
    /// Pending sleeps complete, and their [`was_stopped`](crate::Sleep::was_stopped) returns `true`. Timeouts return an
    /// [`Elapsed`](crate::error::Elapsed) whose `was_stopped` returns `true`, and interval streams end. This is the only case in
    /// which a timer completes before its deadline. Afterwards, the infallible calls panic and the `try_` calls return an error.
    /// A future that was created before but has not been polled yet is stopped as well, and is not counted.
    ///
    /// [Callbacks](crate::callback) that are not due are cancelled, and their closures are dropped. Callbacks that are due still
    /// run; [`shutdown_now`](Timer::shutdown_now) cancels these as well, and returns all that never ran.
    ///
    /// The end of a runtime is different: [`time`](crate::time#when-a-runtime-ends) says what happens to its timers.
    pub fn shutdown(&self) -> usize {
        let common = &self.core.common;
        stop(&common.lifecycle, &common.list, &common.wakeup)
    }

    /// Stops accepting anything new, and completes when everything that is pending has fired or been dropped. Then the timer is
    /// stopped.
    ///
    /// The timer drains from this call on, whether or not the returned future is polled, and dropping the future does not undo
    /// it. A future that was created before this call can still be armed. A timer that has fired is no longer pending, even if
    /// its future is reset afterwards or was postponed at that moment. Intervals end at their next tick.
    /// [Callbacks](crate::callback) count as pending until they have run.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use waterwheel::{Duration, Timer};
    ///
    /// let timer = Timer::builder().start()?;
    /// let nap = tokio::spawn(timer.sleep(Duration::from_millis(5)));
    /// tokio::task::yield_now().await;
    /// timer.drain().await;
    /// assert!(timer.try_sleep(Duration::ZERO).is_err());
    /// assert_eq!(timer.metrics().fired(), 1);
    /// # nap.await.unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn drain(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<> {
        let common = &self.core.common;
        Drain::start(
            Arc::clone(&common.lifecycle),
            Arc::clone(&common.list),
            Arc::clone(&common.wakeup),
        )
    }

    /// Returns whether the timer was stopped: by [`shutdown`](Timer::shutdown), by a completed [`drain`](Timer::drain), or with
    /// its runtime.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.core.common.lifecycle.has_ended()
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        self.core.clock()
    }

    /// Whether a future may be made now; takes its permit.
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        self.core.admit()
    }

    pub(crate) fn lifecycle(&self) -> &Arc<Lifecycle> {
        &self.core.common.lifecycle
    }

    /// what a module above keeps with the timer, made at the first call. There is one such room, since a lower room cannot name its
    /// type.
    #[inline]
    pub(crate) fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        self.core.extension(make)
    }

    /// The shard that this thread's futures go to.
    #[inline]
    pub(crate) fn shard(&self) -> &Arc<Shard> {
        self.core.shard()
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("name", &self.name())
            .field("resolution", &self.resolution())
            .field("shards", &self.shards())
            .field("max_pending", &self.max_pending())
            .field("state", &self.core.common.lifecycle)
            .finish_non_exhaustive()
    }
}
