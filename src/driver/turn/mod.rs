//! Who turns a shard, how much at a time, and who wakes what comes up.
//!
//! Four turners share the rest, and do not know each other, apart from the task, which makes the second, and a turn of all shards, which
//! makes the third:
//!
//! 1. The driver (`DriverTask`), a task that turns all shards.
//! 2. The waker that tokio's clock wakes (`FirstTurn`). It takes the first turn after the driver's sleep.
//! 3. A task that turns one shard (`catch_up`), for a driver that is late, or that has given away a backlog.
//! 4. Whoever advances a manual clock (`by_hand`). No other turns the shards of a timer that has one.
//!
//! `one_shard` is a turn of one shard: batches with the lock held, the wakes in between, and how many timers it serves by how long it had
//! to wait. A shard is turned by one thread at a time (`shard`).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use self::one_shard::{Turned, Waiting, Wakers};
use tokio::time::Instant;

use crate::driver::ending;
use crate::driver::lifecycle::Lifecycle;
use crate::driver::shard::{Shard, ShardList};
use crate::driver::wakeup::{Wakeup, is_watchdog};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::wheel::Tick;

mod by_hand;
mod catch_up;
mod one_shard;

pub(super) use by_hand::turn_by_hand;
pub(crate) use catch_up::spawn_catch_up;

// A turn of every shard that is due, and the driver's next target.

/// The buffers of a turn. Their memory is kept from one turn to the next.
struct Workspace {
    /// The shards that are in use. Empty between two turns.
    shards: Vec<Arc<Shard>>,
    /// The number of shards that had ever been created when these were listed.
    made: u64,
    /// Whether this turn has left out a shard, since another thread turns it or a catch-up task has it.
    has_left_out: bool,
    /// Whether backlogs are given to catch-up tasks.
    gives: bool,
    wakers: Wakers,
}

impl Workspace {
    /// With room for a usual turn. Larger turns allocate, and `wakers` gives that back.
    /// With `gives`, of the shards that have a backlog after a turn, each but the first is given to a catch-up task.
    fn new(gives: bool) -> Workspace {
        Workspace {
            shards: Vec::with_capacity(4),
            made: 0,
            has_left_out: false,
            gives,
            wakers: Wakers::new(),
        }
    }

    /// Lists the shards, turns each that is due, once, and wakes what comes up. `waiting` is since when the turn should have
    /// come. Returns the tick in which the turn began.
    ///
    /// A shard that another thread turns, or that a catch-up task has, is left out of this turn. The driver is woken afterwards.
    fn turn(&mut self, list: &ShardList, wakeup: &Wakeup, waiting: Waiting) -> Tick {
        self.made = list.list_for_turn(&mut self.shards);
        let clock = wakeup.clock();
        let now = clock.now();
        let tick = clock.tick_before(now);
        let allowance = waiting.allowance(clock, now, tick);
        let wakers = &mut self.wakers;
        let listed = self.shards.len();
        // The driver keeps the first backlog; and all of them while it has to wait for a worker, as each task would.
        let mut gives = false;
        let may_give = self.gives && !allowance.is_late;
        self.shards.retain(
            |shard| match one_shard::turn(shard, now, tick, allowance, wakers) {
                Turned::All => true,
                Turned::LeftOut => false,
                Turned::Backlog if gives => !catch_up::give(shard),
                Turned::Backlog => {
                    gives = may_give;
                    true
                }
            },
        );
        self.has_left_out = self.shards.len() < listed;
        tick
    }

    /// Whether the turn has left out a shard. Then only the driver's task may end it: the thread that turns the shard wakes the task, and no
    /// other turner.
    fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// Ends a turn: makes the earliest `next` of the shards the driver's target. Returns whether the driver may sleep towards it:
    /// it is after `now`, and no shard is to be turned before.
    fn end_turn(&mut self, list: &ShardList, wakeup: &Wakeup, now: Tick) -> bool {
        let shards = &self.shards;
        let next = shards.iter().map(|shard| shard.next()).min();
        let next = next.unwrap_or(Tick::MAX);
        let is_earliest =
            || list.made() == self.made && shards.iter().all(|shard| shard.next() >= next);
        let may_sleep = next > now && wakeup.sleep_towards(now, next, is_earliest);
        self.clear();
        may_sleep
    }

    /// Whether no shard was listed, or other threads turn them all. To be asked before the turn has ended.
    fn has_no_shard(&self) -> bool {
        self.shards.is_empty()
    }

    /// Ends a turn that sets no target.
    fn clear(&mut self) {
        self.shards.clear();
    }
}

// The waker that tokio's clock wakes, by the driver's sleep or by a nudge. It takes the first turn after the sleep on the spot,
// and wakes the driver's task if that leaves something to do. It does so for two reasons:
//
// - tokio wakes its own sleeps before the code that moved a paused clock goes on. The driver's task would run only later.
// - tokio queues all tasks that its clock wakes, and then notifies another worker. For a task that a task wakes, it notifies a
// worker at once: an idle worker takes each one, and sleeps again. (`benches/LOG.md` has the
// context switches.)

struct FirstTurn {
    /// Weak: tokio holds the waker as long as its own timer lies ahead, and this `Timer` may end before.
    wakeup: Weak<Wakeup>,
    list: Arc<ShardList>,
    /// `None` while a thread takes a first turn.
    workspace: Mutex<Option<Workspace>>,
    /// Whether a first turn has woken the driver's task, since the task last asked.
    has_woken_task: AtomicBool,
}

impl FirstTurn {
    /// The first turns of a driver, which tokio's clock wakes from now on.
    fn of(wakeup: &Arc<Wakeup>, list: &Arc<ShardList>) -> Arc<FirstTurn> {
        let first_turn = Arc::new(FirstTurn {
            wakeup: Arc::downgrade(wakeup),
            list: Arc::clone(list),
            workspace: Mutex::new(Some(Workspace::new(false))),
            has_woken_task: AtomicBool::new(false),
        });
        wakeup.set_first_turn(Waker::from(Arc::clone(&first_turn)));
        first_turn
    }

    /// Whether a first turn has woken the driver's task, since this was last asked: something is left to do, or a wake-up to
    /// arrange. Then the task's turn is not a first one.
    fn has_woken_task(&self) -> bool {
        // Relaxed: the wake of the driver's task follows the store in `take`, and orders the two.
        self.has_woken_task.swap(false, Ordering::Relaxed)
    }

    /// Takes a turn. `true` if the driver's task need not run: nothing is left to do, and the next wake-up is arranged.
    fn take(&self, wakeup: &Arc<Wakeup>) -> bool {
        // Not on the watchdog thread: a turn may take long. Not while a thread sets tokio's sleep: it may be this one, which holds
        // the sleep's lock, and a future's waker must not run then.
        if is_watchdog() || wakeup.is_setting_tokio_sleep() {
            return false;
        }
        let Some(mut workspace) = self.workspace.lock().take() else {
            return false;
        };
        // Before the turn: whether it serves in order depends on it.
        wakeup.clock().look_for_pause();
        let waiting = Waiting::SinceTarget(wakeup.slept_towards());
        let now = workspace.turn(&self.list, wakeup, waiting);
        // A target that is set for fewer shards than there are would replace the one that the driver's task has set since for all.
        let may_sleep = if workspace.has_left_out() {
            workspace.clear();
            false
        } else {
            workspace.end_turn(&self.list, wakeup, now)
        };
        *self.workspace.lock() = Some(workspace);
        let needs_no_task = may_sleep && wakeup.arrange();
        if !needs_no_task {
            self.has_woken_task.store(true, Ordering::Relaxed);
        }
        needs_no_task
    }
}

impl Wake for FirstTurn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(wakeup) = self.wakeup.upgrade() {
            if !self.take(&wakeup) {
                wakeup.wake();
            }
        }
    }
}

// The driver: the task that turns the wheels.
//
// One task turns all shards of a timer, but for a backlog that it gives to a catch-up task, so that a large herd is turned by several
// workers. When a turn leaves timers that are due, the task wakes itself and returns. So it goes
// to the back of the queue that it has filled with the tasks it woke, and those run first. (`yield_now` would bring it back
// long before they have run.)

/// `G` is dropped when the runtime is over: the registration of a runtime's timer.
pub(in crate::driver) struct DriverTask<G: Send + 'static> {
    lifecycle: Arc<Lifecycle>,
    list: Arc<ShardList>,
    wakeup: Arc<Wakeup>,
    first_turn: Arc<FirstTurn>,
    workspace: Workspace,
    /// When the driver last gave way, unless it slept since.
    gave_way: Option<Instant>,
    registration: Option<G>,
    /// The task ends before its runtime does.
    is_done: bool,
}

impl<G: Send + 'static> DriverTask<G> {
    pub(in crate::driver) fn new(
        lifecycle: Arc<Lifecycle>,
        list: Arc<ShardList>,
        wakeup: Arc<Wakeup>,
        registration: Option<G>,
    ) -> DriverTask<G> {
        let has_other_workers = wakeup.clock().home().metrics().num_workers() > 1;
        DriverTask {
            first_turn: FirstTurn::of(&wakeup, &list),
            lifecycle,
            list,
            wakeup,
            workspace: Workspace::new(has_other_workers),
            gave_way: None,
            registration,
            is_done: false,
        }
    }

    fn finish(&mut self) -> Poll<()> {
        self.is_done = true;
        Poll::Ready(())
    }
}

impl<G: Send + Unpin + 'static> Future for DriverTask<G> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // First. From here on this task is awake: a future that arms meanwhile need not wake it, since it reads every `next`
        // below. And from here on it has a waker: a stop, or an end of the last shard, that came before and found none is seen
        // below.
        this.wakeup.driver_runs(context.waker());
        if this.lifecycle.is_stopped() {
            this.wakeup.end();
            // A runtime's timer stays registered until its runtime ends, so that the next `sleep` there finds it stopped and
            // does not start another.
            return match this.registration {
                Some(_) => Poll::Pending,
                None => this.finish(),
            };
        }
        if this.wakeup.clock().is_manual() {
            // This task lives for the sake of its drop: the timer ends with its runtime.
            return match this.list.is_over() {
                true => this.finish(),
                false => Poll::Pending,
            };
        }
        let waiting = match this.gave_way.take() {
            _ if this.first_turn.has_woken_task() => Waiting::Never,
            Some(since) => Waiting::SinceWayWasGiven(since),
            None => Waiting::SinceTarget(this.wakeup.slept_towards()),
        };
        // Before the turn: whether it serves in order depends on it.
        this.wakeup.clock().look_for_pause();
        let (list, wakeup) = (&this.list, &this.wakeup);
        this.workspace.turn(list, wakeup, waiting);
        // Only an empty list may be over. The look at that costs its lock.
        if this.workspace.has_no_shard() && list.is_over() {
            return this.finish();
        }
        wakeup.forget_slept_towards();
        // Time has passed since the turn began, so the clock is read again.
        let now = wakeup.clock().now_tick();
        let may_sleep = this.workspace.end_turn(list, wakeup, now);
        // Arranged last, when the target is set. Its tick may have come meanwhile.
        if !may_sleep || !wakeup.arrange() {
            this.gave_way = Some(wakeup.clock().now());
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<G: Send + 'static> Drop for DriverTask<G> {
    fn drop(&mut self) {
        self.wakeup.end();
        if !self.is_done {
            let registration = self.registration.take();
            ending::begin(&self.lifecycle, &self.list, &self.wakeup, registration);
        }
    }
}

#[cfg(test)]
mod task_tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use tokio::time::{Duration, advance};

    use crate::driver::Timer;
    use crate::driver::core::{Core, Plan};
    use crate::tests::paused;
    use crate::wheel::Tick;

    // Otherwise a nudge that comes while the driver gives way would serve for the lateness of a target once more.
    #[test]
    fn a_driver_that_has_turned_is_late_for_no_target() {
        let runtime = paused();
        let _entered = runtime.enter();
        let timer = Timer {
            core: Core::new(runtime.handle(), Plan::of_runtime()),
        };
        let wakeup = &timer.core.common.wakeup;
        // By hand, so that nothing else polls it.
        let mut driver = Box::pin(timer.core.driver::<()>(None));
        let mut context = Context::from_waker(Waker::noop());
        let mut sleeps: Vec<_> = (0..5_000)
            .map(|_| Box::pin(timer.sleep(Duration::from_millis(5))))
            .collect();
        for sleep in &mut sleeps {
            assert!(sleep.as_mut().poll(&mut context).is_pending());
        }
        assert!(driver.as_mut().poll(&mut context).is_pending());
        let target = wakeup.slept_towards();
        assert_ne!(target, Tick::MAX);
        // tokio's clock takes the first turn, which leaves some.
        runtime.block_on(advance(Duration::from_millis(6)));
        let left = timer.metrics().pending();
        assert!(left > 0 && left < 5_000, "{left}");
        assert_eq!(wakeup.slept_towards(), target);
        assert!(driver.as_mut().poll(&mut context).is_pending());
        assert!(timer.metrics().pending() > 0);
        assert_eq!(wakeup.slept_towards(), Tick::MAX);
    }
}
