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

use tokio::runtime::Id;
use tokio::time::{Duration, Instant};

use super::batch::Batch;
use super::host::Sleep;
use super::shared::{Shared, Stage, Waiting};
use super::{ambient, bell};
use crate::wheel::Tick;

pub(super) struct DriverTask {
    shared: Arc<Shared>,
    /// The runtime whose ambient timer this is.
    ambient: Option<Id>,
    /// tokio's own timer, where the clock can be paused or there is no bell.
    sleep: Option<Pin<Box<Sleep>>>,
    first_bite: Waker,
    batch: Batch,
    /// Since when the next turn should have come.
    waiting: Waiting,
}

impl DriverTask {
    pub(super) fn new(shared: Arc<Shared>, ambient: Option<Id>) -> DriverTask {
        let first_bite = Waker::from(Arc::new(FirstBite(Arc::downgrade(&shared))));
        DriverTask {
            shared,
            ambient,
            sleep: None,
            first_bite,
            batch: Batch::new(),
            waiting: Waiting::SinceTarget(None),
        }
    }

    /// Sees to it that the task is woken by `next`. `false` if that has come already.
    fn sleep_until(&mut self, next: Tick) -> bool {
        let clock = self.shared.clock();
        if self.shared.has_bell() && !self.shared.is_warped() {
            // First: the bell may ring as soon as it is told.
            self.shared.expect_nudge(&self.first_bite);
            bell::update(&self.shared);
        }
        // Losing the bell wakes this task, so that it comes by here once more.
        if !self.shared.sleeps_on_clock() {
            return true;
        }
        let Some(at) = clock.instant_of(next) else {
            // Nothing to wait for: tokio's clock must not be held up by, or jump to, an old target.
            self.sleep = None;
            return true;
        };
        let at = if self.shared.is_warped() {
            self.before_rounding(at)
        } else {
            at
        };
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            none => none.insert(Box::pin(clock.sleep_until(at))),
        };
        let mut context = Context::from_waker(&self.first_bite);
        sleep.as_mut().poll(&mut context).is_pending()
    }

    /// The earliest deadline that rounds up to a tick, or the tick itself if that has passed.
    ///
    /// tokio moves a paused clock by whole milliseconds of its own, which need not be ours.
    /// Waiting for the tick would round twice, and come a millisecond after tokio's own timers.
    fn before_rounding(&self, tick: Instant) -> Instant {
        let clock = self.shared.clock();
        let rounding = clock.resolution().tick() - Duration::from_nanos(1);
        match tick.checked_sub(rounding) {
            Some(at) if at > clock.now() => at,
            _ => tick,
        }
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
            this.sleep = None;
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
        // Before the shards are listed: once it is closed, no more of them come.
        let closed = shared.is_closed();
        let shards = shared.shards();
        if !shared.turn(&shards, this.waiting, &mut this.batch) {
            this.waiting = Waiting::SinceWayWasGiven(shared.clock().now());
            return Poll::Pending;
        }
        if closed && shards.is_empty() {
            return Poll::Ready(());
        }
        let next = shards.iter().map(|shard| shard.next()).min();
        let next = next.unwrap_or(Tick::MAX);
        let give_way = next <= shared.clock().now_tick()
            || !shared.aim(next, &shards)
            || !this.sleep_until(next);
        if give_way {
            this.waiting = Waiting::SinceWayWasGiven(shared.clock().now());
            context.waker().wake_by_ref();
        } else {
            this.waiting = Waiting::SinceTarget(shared.clock().instant_of(next));
        }
        Poll::Pending
    }
}

impl Drop for DriverTask {
    fn drop(&mut self) {
        self.shared.stop(Stage::Abandoned);
        bell::leave(&self.shared);
        self.shared.forget_nudge();
        if let Some(id) = self.ambient {
            ambient::forget(id, &self.shared);
        }
    }
}

/// What tokio's timer wakes: takes the first bite on the spot, then wakes the task for the rest.
///
/// tokio's own sleeps are woken before whoever moved a paused clock goes on; ours would only be
/// once the driver task has run. And what is woken from within tokio's clock is queued before any
/// other worker is told of it; what a task wakes is announced one by one, and a worker that has
/// nothing else to do comes for each and goes to sleep again. (10 000 intervals of 100 ms, spread over
/// 10 ms: 60 context switches a millisecond without, 9 with.)
struct FirstBite(Weak<Shared>);

impl Wake for FirstBite {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            if !bell::is_this_thread() {
                let waiting = Waiting::SinceTarget(shared.slept_until());
                shared.turn(&shared.shards(), waiting, &mut Batch::new());
                shared.note_first_bite();
            }
            shared.ring();
        }
    }
}
