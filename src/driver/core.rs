//! The state that the handles of a `Timer` share, and how its driver is started.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use tokio::runtime::{Handle, RuntimeFlavor};

use super::host;
#[cfg(feature = "tracing")]
use super::instances::Instance;
use super::lifecycle::Lifecycle;
use super::lifecycle::Permits;
use super::shard::{Common, Shard, ShardList, Shards};
use super::turn::{self, DriverTask};
use super::wakeup::{Wakeup, Waking};
use crate::clock::{Clock, ManualClock};
use crate::error::Error;
use crate::wheel::Resolution;

/// The state that the handles of a `Timer` share. It owns the shards.
///
/// Aligned to its own cache lines: clones of a handle are counted on another line than the one that all futures read.
#[repr(align(128))]
pub(crate) struct Core {
    shards: Shards,
    pub(super) common: Common,
    name: Option<Box<str>>,
    /// what a module above keeps with the `Timer`.
    extension: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Only a timer of one's own is one.
    #[cfg(feature = "tracing")]
    pub(super) instance: OnceLock<Instance>,
}

/// The settings of a `Timer`.
pub(super) struct Plan {
    /// Whether the free functions of a runtime use it.
    pub(super) is_of_runtime: bool,
    /// `None` for the clock's own.
    pub(super) resolution: Option<Resolution>,
    /// `None` for one a worker.
    pub(super) shards: Option<usize>,
    pub(super) max_pending: Option<usize>,
    pub(super) name: Option<Box<str>>,
    pub(super) waking: Waking,
    /// In place of the runtime's.
    pub(super) clock: Option<ManualClock>,
}

/// More shards than the largest machines have processors gain nothing.
pub(super) const MOST_SHARDS: usize = 1024;

impl Plan {
    /// The settings of a runtime's timer.
    pub(super) fn of_runtime() -> Plan {
        Plan {
            is_of_runtime: true,
            resolution: None,
            shards: None,
            max_pending: None,
            name: None,
            waking: Waking::default(),
            clock: None,
        }
    }

    /// A guard has nothing to do where no other worker can take the turn.
    fn waking_on(&self, home: &Handle) -> Waking {
        match self.waking {
            Waking::Watched | Waking::WatchedClosely if home.metrics().num_workers() < 2 => {
                Waking::TokioOnly
            }
            waking => waking,
        }
    }

    /// The number of shards: one a worker if it was not set; one on a manual clock, which turns all in order.
    fn shards_on(&self, home: &Handle) -> usize {
        if self.clock.is_some() {
            return 1;
        }
        self.shards.unwrap_or_else(|| {
            let workers = home.metrics().num_workers();
            workers.next_power_of_two().min(MOST_SHARDS)
        })
    }
}

impl Core {
    /// A `Timer` whose driver has yet to be spawned on `home`.
    pub(super) fn new(home: &Handle, plan: Plan) -> Arc<Core> {
        let waking = plan.waking_on(home);
        let shards = Shards::new(plan.shards_on(home));
        let list = Arc::new(ShardList::new());
        if let Some(manual) = &plan.clock {
            turn::turn_by_hand(manual, &list);
        }
        let home_by_hand = plan.clock.as_ref().map(|_| home.clone());
        let clock = Clock::new(home.clone(), plan.clock, plan.resolution);
        let common = Common {
            lifecycle: Arc::new(Lifecycle::new(plan.is_of_runtime, home_by_hand)),
            wakeup: Arc::new(Wakeup::new(clock, waking)),
            list,
            permits: plan.max_pending.map(|most| Arc::new(Permits::new(most))),
        };
        let name = plan.name;
        Arc::new(Core {
            shards,
            common,
            name,
            extension: OnceLock::new(),
            #[cfg(feature = "tracing")]
            instance: OnceLock::new(),
        })
    }

    /// Spawns the driver, which keeps `registration` until its runtime is over. On a runtime that is finished the driver is dropped
    /// at once, inside this call.
    pub(super) fn spawn_driver<G>(&self, home: &Handle, registration: Option<G>)
    where
        G: Send + Unpin + 'static,
    {
        host::spawn(home, self.driver(registration));
        if tokio::task::try_id().is_some() && home.runtime_flavor() == RuntimeFlavor::MultiThread {
            // A task that a worker spawns runs next on that worker. No other worker can take it from there, so it waits for as
            // long as the task that runs there now blocks. A second task takes its place, and the driver moves to the queue that
            // all workers take from.
            host::spawn(home, std::future::ready(()));
        }
    }

    pub(super) fn driver<G: Send + 'static>(&self, registration: Option<G>) -> DriverTask<G> {
        let Common {
            lifecycle,
            wakeup,
            list,
            ..
        } = self.common.clone();
        DriverTask::new(lifecycle, list, wakeup, registration)
    }

    /// Takes the permit of a future that is about to be made.
    ///
    /// It does not access the shard, which is further away: the processor would wait for each step of that way.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), Error> {
        self.common.lifecycle.is_open()?;
        match &self.common.permits {
            Some(permits) => permits.try_take(),
            None => Ok(()),
        }
    }

    /// The shard of the thread that asks.
    #[inline]
    pub(super) fn shard(&self) -> &Arc<Shard> {
        self.shards.of_this_thread(&self.common)
    }

    pub(super) fn shard_count(&self) -> usize {
        self.shards.count()
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn clock(&self) -> &Clock {
        self.common.wakeup.clock()
    }

    /// what a module above keeps with the `Timer`, made at the first call.
    #[inline]
    pub(super) fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let extension = self.extension.get_or_init(|| Box::new(make()));
        extension
            .downcast_ref()
            .expect("one type has the extension")
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.common.list.close() {
            self.common.wakeup.wake_task();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::{Core, Plan};
    use crate::tests::current_thread;

    #[test]
    fn a_cloned_handle_writes_no_line_that_futures_read() {
        // `Arc` keeps its counts before the value, on the line before if the value begins one.
        assert_eq!(align_of::<Core>() % 128, 0);
    }

    #[test]
    fn a_shard_finds_the_shard_of_the_thread_that_asks() {
        let runtime = current_thread();
        // More than there are threads here, so that no two share one.
        let plan = Plan {
            shards: Some(1024),
            ..Plan::of_runtime()
        };
        let core = Core::new(runtime.handle(), plan);
        let mine = core.shard();
        assert!(mine.other_of_this_thread().is_none());
        // The second of them has a number above 1, whichever the first has.
        for _ in 0..2 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let theirs = core.shard();
                    assert!(theirs.other_of_this_thread().is_none());
                    let found = mine.other_of_this_thread().expect("another one");
                    assert!(Arc::ptr_eq(&found, theirs));
                });
            });
        }
    }
}
