//! The driver: the task that turns the wheels.
//!
//! One task turns all shards of a timer, but for a backlog that it gives to a catch-up task, so that a large herd is turned by several
//! workers. When a turn leaves timers that are due, the task wakes itself and returns. So it goes
//! to the back of the queue that it has filled with the tasks it woke, and those run first. (`yield_now` would bring it back
//! long before they have run.)

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::all_shards::Workspace;
use super::first_turn::FirstTurn;
use super::one_shard::Waiting;
use crate::driver::ending;
use crate::driver::lifecycle::Lifecycle;
use crate::driver::shard::ShardList;
use crate::driver::wakeup::Wakeup;

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
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use tokio::runtime::Builder;
    use tokio::time::{Duration, advance};

    use crate::driver::Timer;
    use crate::driver::core::{Core, Plan};
    use crate::wheel::Tick;

    // Otherwise a nudge that comes while the driver gives way would serve for the lateness of a target once more.
    #[test]
    fn a_driver_that_has_turned_is_late_for_no_target() {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
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
