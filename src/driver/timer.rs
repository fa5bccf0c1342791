use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::time::Instant;

use super::Builder;
use super::ambient;
use super::clock::Clock;
use super::drain::Drain;
use super::metrics::Metrics;
use super::permits::Permits;
use super::shard::Shard;
use super::shared::{Shared, Stage};
use super::task::DriverTask;
use super::thread;
use crate::error::Error;
use crate::wheel::Resolution;

/// A timer: the wheels, and the driver that turns them.
///
/// There are two ways to one:
///
/// - [`Timer::current`] is the *ambient* timer of the runtime we are in, which the functions at
///   the crate root use: [`sleep`](crate::sleep), [`timeout`](crate::timeout),
///   [`interval`](crate::interval). It is started on first use, there is one a runtime, and it
///   goes with the runtime.
/// - [`Timer::builder`] makes one of your own, with a resolution, a bound, or a name of its own,
///   that you can stop. Its methods need no runtime around them: the driver runs on the runtime
///   that the timer was started on, and its clock is the timer's.
///
/// A handle is cheap to clone, and all of them are the same timer. When the last one is dropped,
/// the futures that are left keep working; the driver ends with the last of them.
///
/// # Example
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

/// What the handles of a timer share.
///
/// Aligned to cache lines of its own: whoever clones a handle counts it beside what all futures read, and
/// not on the same line.
#[repr(align(128))]
pub(crate) struct Core {
    shared: Arc<Shared>,
    /// The shards, made when first used; a power of two of them.
    shards: Box<[OnceLock<Arc<Shard>>]>,
    name: Option<Box<str>>,
    permits: Option<Arc<Permits>>,
    /// For the shards to find the others.
    this: Weak<Core>,
}

/// What a [`Builder`] settles.
pub(super) struct Plan {
    pub(super) resolution: Resolution,
    /// `None` for one a worker.
    pub(super) shards: Option<usize>,
    pub(super) max_pending: Option<usize>,
    pub(super) name: Option<Box<str>>,
    pub(super) has_bell: bool,
}

impl Core {
    /// A timer whose driver has yet to be spawned on `home`.
    pub(super) fn new(home: &Handle, plan: Plan) -> Arc<Core> {
        let clock = Clock::new(home.clone(), plan.resolution);
        let shards = plan.shards_on(home);
        let shared = Arc::new(Shared::new(clock, plan.has_bell));
        Arc::new_cyclic(|this| Core {
            shared,
            shards: (0..shards).map(|_| OnceLock::new()).collect(),
            name: plan.name,
            permits: plan.max_pending.map(|most| Arc::new(Permits::new(most))),
            this: Weak::clone(this),
        })
    }

    /// Spawns the driver. On a runtime that is finished it is dropped at once, inside this call.
    pub(super) fn spawn_driver(&self, home: &Handle, ambient: Option<Id>) {
        let clock = self.shared.clock();
        clock.spawn(DriverTask::new(Arc::clone(&self.shared), ambient));
        if tokio::task::try_id().is_some() && home.runtime_flavor() == RuntimeFlavor::MultiThread {
            // What a worker spawns runs next on that worker, where nobody else may take it, and
            // waits for as long as the task that is there now blocks. Another task takes its place
            // there, so that the driver moves to the queue that all workers take from.
            clock.spawn(std::future::ready(()));
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether a future may be made now; takes its permit.
    ///
    /// Nothing of it is asked of the shard, which is further away: the processor would wait for each
    /// step of that way.
    #[inline]
    fn admit(&self) -> Result<(), Error> {
        self.shared.is_open()?;
        match &self.permits {
            Some(permits) => permits.try_take(),
            None => Ok(()),
        }
    }

    /// The shard that this thread's futures go to.
    #[inline]
    pub(super) fn shard(&self) -> &Arc<Shard> {
        let slot = thread::number() & (self.shards.len() - 1);
        match self.shards[slot].get() {
            Some(shard) => shard,
            None => self.make_shard(slot),
        }
    }

    #[cold]
    fn make_shard(&self, slot: usize) -> &Arc<Shard> {
        self.shards[slot].get_or_init(|| {
            let shard = Shard::new(
                &self.shared,
                Weak::clone(&self.this),
                slot,
                self.shards.len() - 1,
                self.permits.clone(),
            );
            let shard = Arc::new(shard);
            self.shared.enlist(&shard);
            shard
        })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Timer {
    /// Settings for a timer of your own.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The ambient timer of the runtime we are in; starts it if nobody has yet.
    ///
    /// The runtime we are in is what tokio takes it to be, [`Handle::current`]: the one that runs
    /// this task, whose `block_on`, `spawn_blocking` or `enter` is innermost on this thread. It
    /// works on every flavor of runtime.
    ///
    /// # Panics
    ///
    /// Outside a runtime, or in one without `enable_time`, as `tokio::time::sleep` does.
    #[must_use]
    #[track_caller]
    pub fn current() -> Timer {
        Timer {
            core: ambient::core(),
        }
    }

    /// Now, by the clock of the runtime that the timer was started on.
    pub(crate) fn now(&self) -> Instant {
        self.core.shared.clock().now()
    }

    /// The length of one tick.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.core.shared.clock().resolution().tick()
    }

    /// The name that the timer was built with.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.core.name.as_deref()
    }

    /// How many shards the timer has at most; they are made when first used.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.core.shards.len()
    }

    /// How many futures the timer takes at a time; `None` for no bound.
    #[must_use]
    pub fn max_pending(&self) -> Option<usize> {
        self.core.permits.as_ref().map(|permits| permits.most())
    }

    /// What the timer has done since it was started. See [`Metrics`].
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core.shared.metrics()
    }

    /// Stops the timer: everything that is pending becomes ready at once, and nothing new is
    /// taken. Returns how many were pending; a second call returns 0.
    ///
    /// Pending sleeps complete and tell [`was_stopped`](crate::Sleep::was_stopped), timeouts give
    /// an [`Elapsed`](crate::error::Elapsed) that tells the same, interval streams end. It is the
    /// one case in which a timer completes before its deadline. Afterwards the infallible calls
    /// panic and the `try_` calls return an error. A future that was made before but not polled
    /// yet is stopped as well, and not counted.
    ///
    /// Dropping the runtime stops the timer in the same way.
    pub fn shutdown(&self) -> usize {
        self.core.shared.stop(Stage::Stopped)
    }

    /// Takes nothing new from now on, and completes when what is pending has fired or been
    /// dropped; then the timer is stopped.
    ///
    /// A future that was made before this call still arms. What has fired counts as pending no
    /// more, even if it is reset then, or was postponed at that very moment. Intervals end at
    /// their next tick. The
    /// timer drains from this call on, whether or not the future is polled; dropping the future
    /// does not undo it.
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
        let shared = Arc::clone(&self.core.shared);
        shared.start_draining();
        Drain::new(shared)
    }

    /// Whether the timer was stopped: by [`shutdown`](Timer::shutdown), a completed
    /// [`drain`](Timer::drain), or with its runtime.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.core.shared.stage() >= Stage::Stopped
    }

    /// Whether a future may be made now; takes its permit.
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        self.core.admit()
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
            .field("stage", &self.core.shared.stage())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use tokio::runtime::Builder;

    use super::{Core, Plan};

    #[test]
    fn to_clone_a_handle_writes_no_line_that_futures_read() {
        // `Arc` keeps its counts before the value, on the line before if the value begins one.
        assert_eq!(align_of::<Core>() % 128, 0);
    }

    #[test]
    fn a_shard_finds_the_one_of_the_thread_that_asks_unless_that_is_itself() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        // More than there are threads here, so that no two share one.
        let plan = Plan {
            shards: Some(1024),
            ..Plan::ambient()
        };
        let core = Core::new(runtime.handle(), plan);
        let mine = core.shard();
        assert!(mine.of_this_thread().is_none());
        // The second of them has a number above 1, whichever the first has.
        for _ in 0..2 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let theirs = core.shard();
                    assert!(theirs.of_this_thread().is_none());
                    let found = mine.of_this_thread().expect("another one");
                    assert!(Arc::ptr_eq(&found, theirs));
                });
            });
        }
    }
}
