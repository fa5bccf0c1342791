//! The driver: the task that turns the wheels.
//!
//! One task turns all shards of a timer, one bite a shard. When it has filled the run queue with
//! the tasks it woke and there is more to do, it wakes itself and returns: so it goes to the back
//! of the very queue that it filled, which is back-pressure by itself. (`yield_now` would bring
//! it back long before those tasks have run.)

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::alarm::Tools;
use super::shared::{Shared, Stage, Waiting};
use super::{ambient, bell};
use crate::wheel::Tick;
use tokio::runtime::Id;

pub(super) struct DriverTask {
    shared: Arc<Shared>,
    /// The runtime whose ambient timer this is.
    ambient: Option<Id>,
    tools: Tools,
    /// Since when the next turn should have come.
    waiting: Waiting,
}

impl DriverTask {
    pub(super) fn new(shared: Arc<Shared>, ambient: Option<Id>) -> DriverTask {
        let first_bite = Waker::from(Arc::new(FirstBite(Arc::downgrade(&shared))));
        shared.keep_first_bite(first_bite);
        DriverTask {
            shared,
            ambient,
            tools: Tools::new(),
            waiting: Waiting::SinceTarget(Tick::MAX),
        }
    }

    /// Sees to it that the task is woken by its target. `false` if that has come already.
    fn sleep(&mut self) -> bool {
        let shared = &self.shared;
        if shared.has_bell() && !shared.is_warped() {
            // First: the bell may ring as soon as it is told.
            shared.expect_nudge();
            bell::update(shared);
        }
        // Losing the bell wakes this task, so that it comes by here once more.
        !shared.sleeps_on_clock() || shared.set_alarm()
    }
}

impl Future for DriverTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let shared = Arc::clone(&this.shared);
        shared.wake_up(context.waker());
        if shared.stage() >= Stage::Stopped {
            // An ambient timer keeps its place until its runtime ends, so that the next `sleep`
            // there finds it stopped, rather than start another.
            shared.forget_alarm();
            bell::leave(&shared);
            shared.forget_nudge();
            return match this.ambient {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            };
        }
        if shared.take_first_bite() {
            this.waiting = Waiting::Never;
        }
        shared.observe_clock();
        let closed = shared.list_shards(&mut this.tools);
        if closed && this.tools.shards.is_empty() {
            return Poll::Ready(());
        }
        shared.turn(&mut this.tools, this.waiting);
        shared.forget_target();
        let next = this.tools.next();
        let may_sleep = next > shared.clock().now_tick() && shared.aim(next, &this.tools);
        this.tools.shards.clear();
        let give_way = !may_sleep || !this.sleep();
        if give_way {
            this.waiting = Waiting::SinceWayWasGiven(shared.clock().now());
            context.waker().wake_by_ref();
        } else {
            this.waiting = Waiting::SinceTarget(next);
        }
        Poll::Pending
    }
}

impl Drop for DriverTask {
    fn drop(&mut self) {
        self.shared.stop(Stage::Abandoned);
        bell::leave(&self.shared);
        self.shared.forget_nudge();
        self.shared.forget_alarm();
        if let Some(id) = self.ambient {
            ambient::forget(id, &self.shared);
        }
    }
}

/// What tokio's timer wakes: takes the first bite on the spot, and wakes the task if that leaves it anything to do.
///
/// tokio's own sleeps are woken before whoever moved a paused clock goes on; ours would only be
/// once the driver task has run. And what is woken from within tokio's clock is queued before any
/// other worker is told of it; what a task wakes is announced one by one, and a worker that has
/// nothing else to do comes for each and goes to sleep again. (10 000 intervals of 100 ms, spread over
/// 10 ms: 60 context switches a millisecond without, 9 with.)
pub(super) struct FirstBite(Weak<Shared>);

impl Wake for FirstBite {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            if bell::is_this_thread() || !shared.take_turn() {
                shared.ring();
            }
        }
    }
}
