use std::time::Duration;

use tokio::runtime::Handle;

use super::timer::{Core, Plan, Timer};
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
    resolution: Duration,
    shards: Option<usize>,
    max_pending: Option<usize>,
    name: Option<String>,
    bell: bool,
}

/// More shards than the largest machines have processors gain nothing.
const MOST_SHARDS: usize = 1024;

impl Builder {
    pub(super) fn new() -> Builder {
        Builder {
            resolution: Resolution::MILLISECOND.tick(),
            shards: None,
            max_pending: None,
            name: None,
            bell: true,
        }
    }

    /// The length of one tick: from 100 µs to 1 s, dividing a second. 1 ms if not set.
    ///
    /// A deadline is rounded up to a tick, so a timer is up to one tick late. That holds for a deadline that is
    /// now or has just passed as well: `sleep(Duration::ZERO)`, an interval's first tick and a reset to now wait
    /// for the end of the running tick, up to a whole one. A fine resolution
    /// costs driver turns while many timers fire; a coarse one lets more of them share a turn.
    pub fn resolution(mut self, tick: Duration) -> Builder {
        self.resolution = tick;
        self
    }

    /// How many shards, each with a lock of its own; rounded up to a power of two, 1024 at most.
    /// One a worker thread if not set.
    pub fn shards(mut self, shards: usize) -> Builder {
        self.shards = Some(shards);
        self
    }

    /// How many futures the timer takes at a time: made, and neither done nor dropped. No bound
    /// if not set.
    ///
    /// The next one is refused: [`try_sleep`](Timer::try_sleep) and its like return an error,
    /// [`sleep`](Timer::sleep) and its like panic. A future that was done and is reset counts
    /// again, even if that is one too many. Counting costs a shared counter, which timers without
    /// a bound do not touch.
    pub fn max_pending(mut self, futures: usize) -> Builder {
        self.max_pending = Some(futures);
        self
    }

    /// A name, for `Debug`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Whether the bell wakes the driver: a helper thread, one for all timers of the process,
    /// that is asleep unless a deadline is near. `true` if not set.
    ///
    /// Without it the driver sleeps on tokio's clock. Then timers fire about a millisecond later,
    /// since tokio rounds that sleep up once more; and a worker that arms the first timer of a driver that has nothing
    /// to do, and then blocks, holds up the driver, and all timers, for as long as it blocks.
    ///
    /// While a runtime's clock is paused, the driver sleeps on it either way.
    pub fn bell(mut self, bell: bool) -> Builder {
        self.bell = bell;
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
    /// If the runtime was built without `enable_time`, as `tokio::time::sleep` does.
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
    /// If the runtime was built without `enable_time`, as `tokio::time::sleep` does.
    #[track_caller]
    pub fn start_on(self, handle: &Handle) -> Result<Timer, BuildError> {
        let plan = self.plan()?;
        Ok(start_on(handle, plan))
    }

    fn plan(self) -> Result<Plan, BuildError> {
        let resolution = Resolution::new(self.resolution).map_err(BuildKind::Resolution)?;
        let shards = match self.shards {
            Some(0) => return Err(BuildKind::ZeroShards.into()),
            Some(shards) if shards > MOST_SHARDS => return Err(BuildKind::ManyShards.into()),
            Some(shards) => Some(shards.next_power_of_two()),
            None => None,
        };
        if self.max_pending == Some(0) {
            return Err(BuildKind::ZeroMaxPending.into());
        }
        Ok(Plan {
            resolution,
            shards,
            max_pending: self.max_pending,
            name: self.name.map(String::into_boxed_str),
            has_bell: self.bell,
        })
    }
}

#[track_caller]
fn start_on(handle: &Handle, plan: Plan) -> Timer {
    super::assert_time_is_enabled(handle);
    let core = Core::new(handle, plan);
    core.spawn_driver(handle, None);
    Timer { core }
}

impl Plan {
    /// What an ambient timer is built by.
    pub(super) fn ambient() -> Plan {
        Plan {
            resolution: Resolution::MILLISECOND,
            shards: None,
            max_pending: None,
            name: None,
            has_bell: true,
        }
    }

    /// The number of shards, one a worker if nothing else was asked for.
    pub(super) fn shards_on(&self, home: &Handle) -> usize {
        self.shards.unwrap_or_else(|| {
            let workers = home.metrics().num_workers();
            workers.next_power_of_two().min(MOST_SHARDS)
        })
    }
}
