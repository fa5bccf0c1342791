//! How the driver is woken in time.
//!
//! The driver is a task. It sleeps towards its *target*: the earliest `next` of its shards.
//!
//! | file | concept |
//! |---|---|
//! | `waking` | [`Waking`]: the ways of waking that a user chooses from |
//! | `tokio_sleep` | a sleep of tokio's, towards the target. It wakes every driver but those that are `Thread` on a runtime of several threads |
//! | `watchdog` | the watchdog thread. It wakes a `Thread` driver at its target, and a `Watched` or `WatchedClosely` one that is late |
//! | `nudge` | how that thread wakes a worker without waking a second one, and how often |
//!
//! # No wake-up is lost
//!
//! If a timer is armed while the driver goes to sleep, and is earlier than the target, the driver must be woken for it.
//!
//! ```text
//! future                                       driver
//! 1. lower the shard's `next`                  a. write the target
//! 2. read the target                           b. read the `next` of every shard
//!    later than `next`?                           earlier than the target?
//!    then have the driver woken by then           then turn again
//! ```
//!
//! All four accesses are sequentially consistent, so 2 reads what a wrote, or b reads what 1 wrote. 1 is
//! [`Shard::set_next`](super::shard::Shard), 2 is [`Wakeup::request`], a and b are [`Wakeup::sleep_towards`]. A shard that
//! is made between a and b is counted before it is used, and b reads that count. A shard that another thread turns, or that the driver
//! has given to a catch-up task, is not read in b: the driver's task is woken when that ends (`shard`). So a first turn that has left out a shard sets no
//! target, and wakes the task instead: it would write over the target that the task has set meanwhile.
//!
//! A future that lowers the target also sets what wakes the driver, and the driver sets it after b. Each reads the target with the
//! lock of tokio's sleep held. So the second to take the lock reads the lower target, and sets the sleep to that. If the target is
//! [`AWAKE`], the future sets nothing: the driver does a and b again before it sleeps. With the thread it is the same once more, between
//! the target and the instant at which the thread looks at all targets (`watchdog`).

mod nudge;
mod tokio_sleep;
mod waking;
mod watchdog;

use std::sync::{Arc, OnceLock};
use std::task::Waker;

use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::sync::OwnLine;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::wheel::Tick;
use nudge::Nudge;
use nudge::Pace;
use tokio_sleep::Milliseconds;
use tokio_sleep::{Setting, TokioSleep};

pub use waking::Waking;

#[cfg(waterwheel_loom)]
pub(super) use watchdog::clock_has_moved;
pub(super) use watchdog::is_this_thread as is_watchdog;

/// The target of a driver that is awake: it looks at every shard before it sleeps. No target is earlier than this one, so
/// a future wakes nothing.
const AWAKE: u64 = 0;

pub(crate) struct Wakeup {
    // Futures read these. Each is written at most once, except the membership's `is_alert`.
    clock: Clock,
    waking: Waking,
    /// Whether the watchdog thread could not be started.
    has_lost_thread: AtomicBool,
    /// Where the thread has this driver.
    member: watchdog::Membership,
    /// Where tokio's milliseconds begin. For a clock that cannot be paused; found when the driver runs.
    milliseconds: OnceLock<Milliseconds>,
    /// The driver task's own waker.
    task: OnceLock<Waker>,
    /// The waker that tokio's clock wakes, be it by the sleep or by a nudge. It takes the first turn.
    first_turn: OnceLock<Waker>,

    // The words that the driver and its wakers write in each turn, each on its own cache lines.
    /// The tick that the driver sleeps towards, or `AWAKE`.
    target: OwnLine<AtomicU64>,
    /// The target that the driver slept towards when it was woken, until it has turned; else `AWAKE`.
    slept_towards: OwnLine<AtomicU64>,
    nudge: OwnLine<Nudge>,
    pace: OwnLine<Pace>,
    tokio_sleep: OwnLine<TokioSleep>,
}

impl Wakeup {
    pub(super) fn new(clock: Clock, waking: Waking) -> Wakeup {
        let millisecond = Clock::ticks_in(clock.resolution(), Duration::from_millis(1));
        Wakeup {
            clock,
            waking,
            has_lost_thread: AtomicBool::new(false),
            member: watchdog::Membership::new(),
            milliseconds: OnceLock::new(),
            task: OnceLock::new(),
            first_turn: OnceLock::new(),
            target: OwnLine(AtomicU64::new(AWAKE)),
            slept_towards: OwnLine(AtomicU64::new(AWAKE)),
            nudge: OwnLine(Nudge::new()),
            pace: OwnLine(Pace::new(millisecond)),
            tokio_sleep: OwnLine(TokioSleep::new()),
        }
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    // ----- the futures' side -----

    /// Requests a turn no later than `next`. If the driver would sleep longer, arranges that it is woken by then.
    ///
    /// The caller has lowered its shard's `next`, and holds no lock.
    pub(super) fn request(self: &Arc<Self>, next: Tick) {
        if self.clock.is_manual() {
            // Who advances the clock takes the turn (`turn/by_hand`).
            return;
        }
        let next = self.paced(next);
        // 2. of the proof above.
        if next >= self.target() {
            return;
        }
        self.lower_target(next);
        // Not by a wake of the task: a task that a worker wakes runs next on that worker, and is held up with it if the worker
        // blocks.
        if self.uses_tokio_sleep() {
            // No clock read on a clock that was paused: if the instant has passed, tokio wakes the driver at once, and the driver
            // reads the clock. (`benches/LOG.md` has its share of a sleep there.)
            let set = |sleep: &mut Setting<'_>| {
                // On a running clock, tokio may process this instant's millisecond meanwhile. It has not processed a later one.
                sleep.is_made() && (self.set_with(sleep, |_| true) || self.set_soon(sleep))
            };
            if !self.tokio_sleep.change(set) {
                self.wake();
            }
        }
        if self.uses_thread() {
            watchdog::update(self);
        }
    }

    /// Marks the driver as awake and wakes its task: it looks at every shard before it sleeps.
    pub(super) fn wake(&self) {
        self.mark_awake();
        self.wake_task();
    }

    /// Wakes the driver's task for another reason than a target: an end, or a lost thread. The target stays.
    pub(super) fn wake_task(&self) {
        // Without a waker the task has not been polled yet, and its first poll looks at everything. tokio gives a task the same
        // waker at each poll.
        if let Some(waker) = self.task.get() {
            waker.wake_by_ref();
        }
    }

    // ----- the driver's side -----

    /// Sets the waker that tokio's clock wakes. Called once, before the driver's task is spawned.
    pub(super) fn set_first_turn(&self, waker: Waker) {
        self.first_turn.get_or_init(|| waker);
    }

    /// The driver's task runs, and is woken by this waker from now on.
    pub(super) fn driver_runs(&self, waker: &Waker) {
        if self.task.get().is_none() {
            let waker = waker.clone();
            self.task.get_or_init(|| waker);
        }
        let wants_milliseconds = self.uses_tokio_sleep() && !self.clock.may_jump();
        if wants_milliseconds && self.milliseconds.get().is_none() {
            if let Some(found) = Milliseconds::find(&self.clock) {
                self.milliseconds.get_or_init(|| found);
            }
        }
        // A first turn that begins at this moment finds since when it should have come.
        self.mark_awake();
    }

    /// Marks the driver as awake, and notes the target that it slept towards.
    fn mark_awake(&self) {
        // Sequentially consistent, since it changes what 2. reads. A future that reads `AWAKE` relies on a later b.: the driver
        // runs, or is woken after this.
        let target = self.target.swap(AWAKE, Ordering::SeqCst);
        if target != AWAKE {
            // Relaxed, as all accesses of `slept_towards`: it sets the size of a turn and nothing else.
            self.slept_towards.store(target, Ordering::Relaxed);
        }
    }

    /// The target that the driver slept towards and has not turned for; [`Tick::MAX`] if there is none.
    pub(super) fn slept_towards(&self) -> Tick {
        let mut target = self.target();
        if target.get() == AWAKE {
            target = Tick::new(self.slept_towards.load(Ordering::Relaxed));
        }
        if target.get() == AWAKE {
            return Tick::MAX;
        }
        target
    }

    /// The driver has turned for its last target.
    pub(super) fn forget_slept_towards(&self) {
        self.slept_towards.store(AWAKE, Ordering::Relaxed);
    }

    /// A turn has ended at `now`. Takes `next` as the target. Returns whether the driver may sleep towards it: `is_earliest` looks at
    /// every shard and finds none that is to be turned before. To be called in the context of the clock's home runtime.
    pub(super) fn sleep_towards(
        &self,
        now: Tick,
        next: Tick,
        is_earliest: impl FnOnce() -> bool,
    ) -> bool {
        // First: the thread may nudge as soon as it sees the target.
        if self.uses_thread() && !self.uses_tokio_sleep() {
            if let Some(waker) = self.first_turn.get() {
                self.nudge.expect(&self.clock, waker);
            }
        }
        if self.is_paced() {
            self.pace.count(now);
        }
        // a. and b. of the proof above.
        self.target.store(self.paced(next).get(), Ordering::SeqCst);
        is_earliest()
    }

    /// Arranges that the driver is woken at its target. Returns `false` if tokio's sleep is used and the target has come already;
    /// the thread wakes for a target that has come.
    pub(super) fn arrange(self: &Arc<Self>) -> bool {
        if self.uses_thread() {
            watchdog::update(self);
        }
        // If `update` has lost the thread, it has woken the task, which arranges its wake-up anew.
        !self.uses_tokio_sleep() || self.set_tokio_sleep()
    }

    /// Sets tokio's sleep to the driver's present target. Returns `false` if the target has come already.
    fn set_tokio_sleep(&self) -> bool {
        let is_ahead = |at| at > self.clock.now();
        self.tokio_sleep
            .change(|sleep| self.set_with(sleep, is_ahead))
    }

    /// Whether a thread, be it this one, is setting tokio's sleep. tokio wakes within that if the time has passed.
    pub(super) fn is_setting_tokio_sleep(&self) -> bool {
        self.tokio_sleep.is_changing()
    }

    /// Sets the sleep to the present target. Returns `false` if the target has come already. `is_ahead(instant)` is whether an
    /// instant is in the future.
    fn set_with(&self, sleep: &mut Setting<'_>, is_ahead: impl FnOnce(Instant) -> bool) -> bool {
        let target = self.target();
        let Some(waker) = self.first_turn.get().filter(|_| target.get() != AWAKE) else {
            // The driver is awake and sets the sleep itself.
            return true;
        };
        let Some(start) = self.clock.instant_of(target) else {
            return sleep.rest(&self.clock, waker);
        };
        // The clock may have been paused since the driver's last turn.
        let at = if self.clock.look_for_pause() {
            // tokio moves a paused clock by milliseconds of its own, which begin at other instants than ours. A sleep until
            // our tick would be rounded up a second time, and end a millisecond after tokio's timers.
            match self.clock.earliest_of_tick(start) {
                Some(at) if is_ahead(at) => at,
                _ => start,
            }
        } else {
            match self.milliseconds.get() {
                Some(milliseconds) => milliseconds.ask_for(start, self.clock.now()),
                None => start,
            }
        };
        sleep.set(at, waker)
    }

    /// Sets the sleep to the next millisecond but one of a running clock. Returns `false` on a clock that was paused, whose
    /// milliseconds may last.
    fn set_soon(&self, sleep: &mut Setting<'_>) -> bool {
        match self.first_turn.get() {
            Some(waker) if !self.clock.was_paused() => {
                sleep.set(self.clock.now() + Duration::from_millis(1), waker)
            }
            _ => false,
        }
    }

    /// The driver's task ends: nothing wakes it any more.
    pub(super) fn end(self: &Arc<Self>) {
        self.tokio_sleep.end();
        watchdog::leave(self);
        self.nudge.end();
    }

    // ----- the watchdog thread's side -----

    /// Nudges the driver: a worker that waits on tokio's clock takes its first turn.
    ///
    /// If no worker waits there, the nudge has no effect, and the thread calls [`wake`](Wakeup::wake) after its `PATIENCE`. So the
    /// target stays, and does not say `AWAKE` until then.
    fn nudge(&self) {
        if !self.nudge.give(self.clock.now()) {
            self.wake();
        }
    }

    /// The start of a target's tick. `None` while the driver is awake or has no target, and on a clock that was paused: the thread
    /// knows nothing of its time.
    fn instant_of(&self, target: Tick) -> Option<std::time::Instant> {
        if target.get() == AWAKE || self.clock.was_paused() {
            return None;
        }
        self.clock.instant_of(target).map(Instant::into_std)
    }

    /// The thread could not be started. From now on tokio's sleep alone wakes the driver.
    fn lose_thread(&self) {
        // Relaxed: a future that still reads `false` calls `update`, which fails again and comes here.
        self.has_lost_thread.store(true, Ordering::Relaxed);
        self.wake_task();
    }

    // ----- who wakes this driver -----

    /// Whether the thread serves this driver. It knows nothing of a clock that was paused.
    fn uses_thread(&self) -> bool {
        self.waking != Waking::TokioOnly && !self.has_lost_thread() && !self.clock.was_paused()
    }

    /// Whether the thread is to wake the driver at its target, and not only if it is late.
    fn is_woken_by_thread(&self) -> bool {
        self.waking == Waking::Thread && !self.has_lost_thread()
    }

    /// Whether the thread looks soon after each target, also at a driver that is never late.
    fn is_watched_closely(&self) -> bool {
        self.waking == Waking::WatchedClosely
    }

    fn has_lost_thread(&self) -> bool {
        // Relaxed: see `lose_thread`.
        self.has_lost_thread.load(Ordering::Relaxed)
    }

    /// Whether tokio's clock is to wake the driver. It is on every runtime of one thread, for two reasons: a clock that is paused
    /// jumps to what tokio knows of, so tokio must know the target; and tokio's clock takes the first turn there
    /// (`turn`), paused or not.
    fn uses_tokio_sleep(&self) -> bool {
        self.clock.is_of_one_thread() || !self.is_woken_by_thread()
    }

    /// Whether turns are counted. tokio's clock wakes no driver more than once a millisecond. A clock that was paused stands still between
    /// two turns, so no number of them is too many.
    fn is_paced(&self) -> bool {
        self.is_woken_by_thread() && !self.clock.was_paused()
    }

    /// When the turn comes that is wanted at `next`.
    fn paced(&self, next: Tick) -> Tick {
        if self.is_paced() {
            return self.pace.not_before().max(next);
        }
        next
    }

    fn target(&self) -> Tick {
        // Pairs with a. and with each other change of the target. Only 2. needs this order.
        Tick::new(self.target.load(Ordering::SeqCst))
    }

    fn lower_target(&self, next: Tick) {
        // Sequentially consistent, since it changes what 2. reads.
        self.target.fetch_min(next.get(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::Wakeup;

    /// Processors fetch lines of 64 bytes in pairs.
    const LINES: usize = 128;

    #[test]
    fn what_the_driver_writes_is_on_no_line_that_futures_read() {
        let read = [
            offset_of!(Wakeup, clock),
            offset_of!(Wakeup, waking),
            offset_of!(Wakeup, has_lost_thread),
            offset_of!(Wakeup, member),
            offset_of!(Wakeup, milliseconds),
            offset_of!(Wakeup, task),
            offset_of!(Wakeup, first_turn),
        ];
        let written = [
            offset_of!(Wakeup, target),
            offset_of!(Wakeup, slept_towards),
            offset_of!(Wakeup, nudge),
            offset_of!(Wakeup, pace),
            offset_of!(Wakeup, tokio_sleep),
        ];
        assert_eq!(align_of::<Wakeup>() % LINES, 0);
        for (n, write) in written.iter().enumerate() {
            for other in read.iter().chain(&written[n + 1..]) {
                assert_ne!(write / LINES, other / LINES, "offsets {write} and {other}");
            }
        }
    }
}
