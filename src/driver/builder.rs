use std::time::Duration;

use tokio::runtime::Handle;

use super::core::{Core, MOST_SHARDS, Plan};
use super::host::assert_time_is_enabled;
#[cfg(feature = "tracing")]
use super::instances::Instance;
use super::timer::Timer;
use super::wakeup::Waking;
use crate::clock::ManualClock;
use crate::error::{BuildError, BuildKind};
use crate::wheel::Resolution;

/// Settings of a [`Timer`] of your own; from [`Timer::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), waterwheel::error::BuildError> {
/// use waterwheel::{Duration, Timer};
///
/// let timer = Timer::builder()
///     .name("heartbeats")
///     .resolution(Duration::from_millis(10))
///     .max_pending(100_000)
///     .start()?;
/// assert_eq!(timer.resolution(), Duration::from_millis(10));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `start` or `start_on`"]
pub struct Builder {
    resolution: Option<Duration>,
    shards: Option<usize>,
    max_pending: Option<usize>,
    name: Option<String>,
    waking: Waking,
    clock: Option<ManualClock>,
}

impl Timer {
    /// Settings for a timer of your own.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Builder {
        Builder {
            resolution: None,
            shards: None,
            max_pending: None,
            name: None,
            waking: Waking::default(),
            clock: None,
        }
    }

    /// The length of one tick, as [`Resolution::new`](crate::wheel::Resolution::new) takes it.
    ///
    /// If not set, it is 100 µs. On a clock that can be paused it is 1 ms, as for tokio's timers, so that a test sees the same order as
    /// with those: on a runtime of one thread, if any crate of the build enables tokio's feature `test-util`.
    ///
    /// A deadline is rounded up to a tick, so a timer is up to one tick late. That also holds for a deadline that is now or has
    /// just passed: `sleep(Duration::ZERO)`, an interval's first tick and a reset to now wait for the end of the running
    /// tick.
    ///
    /// The driver turns when the next timer is due, and with a resolution finer than a millisecond a thousand times a second at most on
    /// average; each turn serves all that is due. With a coarse resolution, more timers share a turn. A fine one takes more memory: 83
    /// KB a shard at 100 µs, 10 KB at 1 ms.
    pub fn resolution(mut self, tick: Duration) -> Builder {
        self.resolution = Some(tick);
        self
    }

    /// How many shards, each with a lock of its own; rounded up to a power of two, 1024 at most.
    /// One a worker thread if not set.
    pub fn shards(mut self, shards: usize) -> Builder {
        self.shards = Some(shards);
        self
    }

    /// How many futures and [callbacks](crate::callback) the timer takes at a time: made, and neither done nor dropped. No bound
    /// if not set. A callback is done when it begins to run.
    ///
    /// The next one is refused: [`try_sleep`](Timer::try_sleep) and the other `try_` methods return an error,
    /// [`sleep`](Timer::sleep) and the others panic. A future that was done and is reset counts again, even if that exceeds
    /// the bound. Counting costs a counter that all threads share. A timer without a bound does not touch it.
    pub fn max_pending(mut self, futures: usize) -> Builder {
        self.max_pending = Some(futures);
        self
    }

    /// A name, for `Debug`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// How the driver is woken in time. [`Waking::Guarded`] if not set.
    pub fn waking(mut self, waking: Waking) -> Builder {
        self.waking = waking;
        self
    }

    /// A clock of the timer's own, in place of its runtime's: the timer stands still until that is
    /// [advanced](ManualClock::advance).
    ///
    /// Such a timer has one shard, needs no `enable_time`, and its resolution is a millisecond if none is set. It still ends with its
    /// runtime.
    pub fn clock(mut self, clock: ManualClock) -> Builder {
        self.clock = Some(clock);
        self
    }

    /// Starts the timer on the runtime we are in.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if a setting is out of range, or there is no runtime.
    ///
    /// # Panics
    ///
    /// If the runtime was built without `enable_time`, as `tokio::time::sleep` does, and the timer has no clock of its own.
    #[track_caller]
    pub fn start(self) -> Result<Timer, BuildError> {
        let plan = self.plan()?;
        match Handle::try_current() {
            Ok(handle) => Ok(start_on(&handle, plan)),
            Err(_) => Err(BuildKind::NoRuntime.into()),
        }
    }

    /// Starts the timer on a runtime, from wherever we are. If that runtime is finished, the
    /// timer is stopped from the start.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if a setting is out of range.
    ///
    /// # Panics
    ///
    /// If the runtime was built without `enable_time`, as `tokio::time::sleep` does, and the timer has no clock of its own.
    #[track_caller]
    pub fn start_on(self, handle: &Handle) -> Result<Timer, BuildError> {
        let plan = self.plan()?;
        Ok(start_on(handle, plan))
    }

    fn plan(self) -> Result<Plan, BuildError> {
        let resolution = self.resolution.map(Resolution::new).transpose();
        let resolution = resolution.map_err(BuildKind::Resolution)?;
        let shards = match self.shards {
            Some(0) => return Err(BuildKind::ZeroShards.into()),
            Some(shards) if shards > MOST_SHARDS => return Err(BuildKind::ManyShards.into()),
            Some(shards) => Some(shards.next_power_of_two()),
            None => None,
        };
        if self.clock.is_some() && shards.is_some_and(|shards| shards > 1) {
            return Err(BuildKind::ShardsOfManualClock.into());
        }
        if self.max_pending == Some(0) {
            return Err(BuildKind::ZeroMaxPending.into());
        }
        Ok(Plan {
            is_of_runtime: false,
            resolution,
            shards,
            max_pending: self.max_pending,
            name: self.name.map(String::into_boxed_str),
            waking: self.waking,
            clock: self.clock,
        })
    }
}

#[track_caller]
fn start_on(handle: &Handle, plan: Plan) -> Timer {
    if plan.clock.is_none() {
        assert_time_is_enabled(handle);
    }
    let core = Core::new(handle, plan);
    #[cfg(feature = "tracing")]
    core.instance.get_or_init(Instance::new);
    core.spawn_driver(handle, None::<()>);
    Timer { core }
}
