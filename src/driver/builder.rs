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

/// Configures a [`Timer`] of your own. Returned by [`Timer::builder`].
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
#[must_use = "a builder does nothing until `start` or `start_on` is called"]
pub struct Builder {
    resolution: Option<Duration>,
    shards: Option<usize>,
    max_pending: Option<usize>,
    name: Option<String>,
    waking: Waking,
    clock: Option<ManualClock>,
}

impl Timer {
    /// Returns a builder for a timer of your own.
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

    /// Sets the length of one tick: from 100 µs to 1 s, and it must divide a second, as for
    /// [`Resolution::new`](crate::wheel::Resolution::new).
    ///
    /// The default is 100 µs. On a clock that can be paused it is 1 ms, as for tokio's timers, so that tests see the same order
    /// as with those. The clock of a single-threaded runtime can be paused if any crate of the build enables tokio's feature
    /// `test-util`.
    ///
    /// A deadline is rounded up to a tick, so a timer is up to one tick late. This includes deadlines that are now or have just
    /// passed: `sleep(Duration::ZERO)`, the first tick of an interval and a reset to now all wait for the end of the running
    /// tick.
    ///
    /// The driver turns the wheels when the next timer is due, and each turn serves everything that is due. With a resolution
    /// finer than a millisecond, it turns at most a thousand times a second on average. With a coarse resolution, more timers
    /// share a turn. A fine resolution takes more memory: the dials of a shard take 83 KB at 100 µs and 10 KB at 1 ms.
    pub fn resolution(mut self, tick: Duration) -> Builder {
        self.resolution = Some(tick);
        self
    }

    /// Sets the number of shards, each with a lock of its own. It is rounded up to a power of two, and may be at most 1024.
    ///
    /// The default is one shard per worker thread.
    pub fn shards(mut self, shards: usize) -> Builder {
        self.shards = Some(shards);
        self
    }

    /// Limits how many futures and [callbacks](crate::callback) the timer holds at a time: those that were created, and have
    /// neither completed nor been dropped. A callback completes when it begins to run.
    ///
    /// There is no limit by default. When the limit is reached, [`try_sleep`](Timer::try_sleep) and the other `try_` methods
    /// return an error, and [`sleep`](Timer::sleep) and the other infallible methods panic. A completed future that is reset
    /// counts again, even if that exceeds the limit.
    ///
    /// The count is a counter that all threads share. A timer without a limit does not touch it.
    pub fn max_pending(mut self, futures: usize) -> Builder {
        self.max_pending = Some(futures);
        self
    }

    /// Sets the name of the timer, which `Debug` and [`Snapshot`](crate::Snapshot) show.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Sets how the driver is woken in time. The default is [`Waking::Watched`].
    pub fn waking(mut self, waking: Waking) -> Builder {
        self.waking = waking;
        self
    }

    /// Uses this clock instead of the runtime's: the timer stands still until the clock is [advanced](ManualClock::advance).
    ///
    /// Such a timer has one shard and does not need `enable_time`, and its default resolution is a millisecond. It still ends
    /// with its runtime.
    pub fn clock(mut self, clock: ManualClock) -> Builder {
        self.clock = Some(clock);
        self
    }

    /// Starts the timer on the current runtime.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if a setting is out of range, or if there is no current runtime.
    ///
    /// # Panics
    ///
    /// Panics if the runtime was built without `enable_time`, as `tokio::time::sleep` does, unless the timer has a clock of its
    /// own.
    #[track_caller]
    pub fn start(self) -> Result<Timer, BuildError> {
        let plan = self.plan()?;
        match Handle::try_current() {
            Ok(handle) => Ok(start_on(&handle, plan)),
            Err(_) => Err(BuildKind::NoRuntime.into()),
        }
    }

    /// Starts the timer on the given runtime. The caller may be on any thread.
    ///
    /// If that runtime has already shut down, the timer is stopped from the start.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if a setting is out of range.
    ///
    /// # Panics
    ///
    /// Panics if the runtime was built without `enable_time`, as `tokio::time::sleep` does, unless the timer has a clock of its
    /// own.
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
