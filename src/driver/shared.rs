//! What the driver task, the shards and the bell share: the target, the stage, the roster.
//!
//! # The race that must not be lost
//!
//! A timer armed while the driver goes to sleep must wake it if it is earlier than what the
//! driver sleeps towards.
//!
//! ```text
//! future                               driver
//! 1. lower the shard's `next`          a. write `target`
//! 2. read `target`                     b. read every shard's `next`
//!    earlier? ring                        earlier? start over
//! ```
//!
//! All four are sequentially consistent, so either 2 sees a or b sees 1. A shard that is made
//! between the driver's a and b is counted before it is used, and b reads how many were.
//!
//! Where the alarm alone wakes the driver (`alarm`), what it wakes is a driver too, and does a and b. The future
//! does not ring there, it lowers the target and sets the alarm; so does the driver after b. Both read the
//! target with the alarm's lock held, so the last of them sets it to the earliest. Where the target says that
//! the driver is awake, they set nothing: it does a and b again before it sleeps.

use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use super::alarm::{self, Alarm, Tools};
use super::batch::wake_all;
use super::bell;
use super::clock::Clock;
use super::metrics::Metrics;
use super::nudge::Nudge;
use super::shard::{BITE, Shard, Share};
use crate::error::Error;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use crate::sync::{Mutex, OwnLine};
use crate::wheel::Tick;
use tokio::time::{Duration, Instant};

/// How many timers of a shard the first turn after a sleep serves, in order. As many as are due in a millisecond on a busy
/// service go out at once: given out by 128, a worker without work would be woken for each bite and
/// sleep again before the next. A larger herd has the rest of it served by the bite.
const FIRST_BITE: usize = 1024;

/// A turn that had to wait for a worker serves one timer more for each time this has passed.
///
/// The driver waits behind all runnable tasks. Where those are many, a bite of fixed size would
/// be all that fires in the time that they take, and a busy service's timers would fall further
/// and further behind. It is long enough that a herd of small tasks, each of which runs in less,
/// does not feed on itself.
const WAIT_PER_TIMER: Duration = Duration::from_micros(4);

/// However long the driver waited.
const LARGEST_BITE: usize = 65_536;

/// The driver is awake: whatever is armed now, it will see before it sleeps.
const AWAKE: u64 = 0;

pub(crate) struct Shared {
    // What every future reads and nobody writes, or once.
    clock: Clock,
    stage: AtomicU8,
    /// Whether the bell rings for this driver; else tokio's clock alone wakes it.
    has_bell: AtomicBool,
    /// Whether the clock was paused when it was last looked at, or ever before.
    warped: AtomicBool,
    /// The driver task's own waker.
    waker: OnceLock<Waker>,
    /// The waker of what takes the first bite.
    first_bite: OnceLock<Waker>,

    // What the driver writes, turn by turn, on lines of its own.
    /// The tick that the driver sleeps towards.
    target: OwnLine<AtomicU64>,
    /// The target that the driver slept towards when it was rung, until it comes.
    rung_from: OwnLine<AtomicU64>,
    turns: OwnLine<AtomicU64>,
    roster: OwnLine<Mutex<Roster>>,
    /// How many shards were ever put on the roster.
    enlisted: OwnLine<AtomicU64>,
    nudge: OwnLine<Nudge>,
    alarm: OwnLine<Alarm>,
    first_bite_taken: OwnLine<AtomicBool>,
    /// Those that wait for the timer to be drained, and by what number they go.
    drains: Mutex<Vec<(u64, Waker)>>,
}

#[derive(Default)]
struct Roster {
    shards: Vec<Weak<Shard>>,
    /// The last handle of the timer is gone: no more shards will come.
    closed: bool,
}

/// Since when a turn should have come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waiting {
    /// It comes at once.
    Never,
    /// The driver gave way to others with more to do.
    SinceWayWasGiven(Instant),
    /// The driver slept until then; the last tick if until nothing, or it is not known.
    SinceTarget(Tick),
}

/// How far a timer is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    Running,
    /// Takes nothing new.
    Draining,
    /// Stopped by its owner.
    Stopped,
    /// Stopped because its runtime is gone.
    Abandoned,
}

impl Shared {
    pub(super) fn new(clock: Clock, has_bell: bool) -> Shared {
        Shared {
            warped: AtomicBool::new(clock.is_warped()),
            clock,
            stage: AtomicU8::new(Stage::Running as u8),
            has_bell: AtomicBool::new(has_bell),
            waker: OnceLock::new(),
            first_bite: OnceLock::new(),
            target: OwnLine(AtomicU64::new(AWAKE)),
            rung_from: OwnLine(AtomicU64::new(AWAKE)),
            turns: OwnLine(AtomicU64::new(0)),
            roster: OwnLine(Mutex::new(Roster::default())),
            enlisted: OwnLine(AtomicU64::new(0)),
            nudge: OwnLine(Nudge::new()),
            alarm: OwnLine(Alarm::new()),
            first_bite_taken: OwnLine(AtomicBool::new(false)),
            drains: Mutex::new(Vec::new()),
        }
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether the clock was paused when it was last looked at, or ever before.
    pub(super) fn is_warped(&self) -> bool {
        self.warped.load(Ordering::Relaxed)
    }

    /// Whether the clock may stand still. Cheaper than `observe_clock`.
    pub(super) fn is_clock_standing(&self) -> bool {
        self.is_warped() || self.clock.is_standing()
    }

    /// Looks whether the clock is paused, or was ever before.
    pub(super) fn observe_clock(&self) -> bool {
        let is_warped = self.is_warped() || self.clock.is_warped();
        if is_warped {
            self.warped.store(true, Ordering::Relaxed);
        }
        is_warped
    }

    #[inline]
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Running,
            1 => Stage::Draining,
            2 => Stage::Stopped,
            _ => Stage::Abandoned,
        }
    }

    /// Whether the timer takes anything new.
    #[inline]
    pub(crate) fn is_open(&self) -> Result<(), Error> {
        match self.stage() {
            Stage::Running => Ok(()),
            _ => Err(Error::shutdown()),
        }
    }

    /// Puts a new shard on the roster, stopped if the timer is.
    pub(super) fn enlist(&self, shard: &Arc<Shard>) {
        let mut roster = self.roster.lock();
        roster.shards.push(Arc::downgrade(shard));
        self.enlisted.fetch_add(1, Ordering::SeqCst);
        drop(roster);
        // Whoever moves the stage lists the shards afterwards: either this one is listed, or the
        // stage is seen here.
        match self.stage() {
            Stage::Running => {}
            Stage::Draining => shard.start_draining(),
            Stage::Stopped | Stage::Abandoned => drop(shard.stop()),
        }
    }

    /// The shards that are still in use.
    pub(super) fn shards(&self) -> Vec<Arc<Shard>> {
        let roster = self.roster.lock();
        roster.shards.iter().filter_map(Weak::upgrade).collect()
    }

    /// Lists the shards that are still in use. Whether the timer is closed, so that no more of them come.
    pub(super) fn list_shards(&self, tools: &mut Tools) -> bool {
        let roster = self.roster.lock();
        let shards = roster.shards.iter().filter_map(Weak::upgrade);
        tools.shards.extend(shards);
        tools.enlisted = self.enlisted.load(Ordering::SeqCst);
        roster.closed
    }

    /// The last handle is gone.
    pub(super) fn close(&self) {
        self.roster.lock().closed = true;
        self.end_if_over();
    }

    /// Has the driver end if there is nobody left for it to serve. Only then is it woken: woken by
    /// a worker that then blocks, it would be held up.
    pub(super) fn end_if_over(&self) {
        let roster = self.roster.lock();
        let is_over = roster.closed && roster.shards.iter().all(|s| s.strong_count() == 0);
        drop(roster);
        if is_over {
            self.wake_task();
        }
    }

    // ----- the driver's side -----

    /// Whether the first turn after a sleep was taken for the driver and left it more to do, since it last asked.
    pub(super) fn take_first_bite(&self) -> bool {
        self.first_bite_taken.swap(false, Ordering::Relaxed)
    }

    /// The driver is awake.
    pub(super) fn wake_up(&self, waker: &Waker) {
        if self.waker.get().is_none() {
            let waker = waker.clone();
            self.waker.get_or_init(|| waker);
        }
        // Kept until it has turned: the first bite may come at the same moment, and be the one to turn.
        self.keep_target();
    }

    /// Turns every listed shard that is due, once, and wakes what comes up. `waiting` is since when the
    /// turn should have come. Gives the tick that it was.
    ///
    /// A shard that another thread turns leaves the list. That thread will wake the driver.
    pub(super) fn turn(&self, tools: &mut Tools, waiting: Waiting) -> Tick {
        let Tools { shards, batch, .. } = tools;
        let now = self.clock.now();
        let tick = self.clock.tick_before(now);
        let (least, waited) = match waiting {
            Waiting::Never => (BITE, Duration::ZERO),
            Waiting::SinceWayWasGiven(since) => (BITE, now.duration_since(since)),
            Waiting::SinceTarget(target) => {
                let ticks = u32::try_from(tick.saturating_since(target).get()).unwrap_or(u32::MAX);
                let waited = self.clock.resolution().tick().saturating_mul(ticks);
                (FIRST_BITE, waited)
            }
        };
        let bite = (waited.as_micros() / WAIT_PER_TIMER.as_micros()) as usize;
        let share = Share {
            bite: bite.clamp(least, LARGEST_BITE),
            is_first: matches!(waiting, Waiting::SinceTarget(_)),
        };
        self.turns.fetch_add(1, Ordering::Relaxed);
        shards.retain(|shard| shard.turn(now, tick, share, batch));
        tick
    }

    /// The driver is about to sleep until `next`, of the shards that are listed. Whether it may: nothing earlier has
    /// come in, and no other shard.
    pub(super) fn aim(&self, next: Tick, tools: &Tools) -> bool {
        self.target.store(next.get(), Ordering::SeqCst);
        self.enlisted.load(Ordering::SeqCst) == tools.enlisted
            && tools.shards.iter().all(|shard| shard.next() >= next)
    }

    pub(super) fn target(&self) -> Tick {
        Tick::new(self.target.load(Ordering::SeqCst))
    }

    /// When the driver was to wake up, if it has not yet; else the last tick.
    fn slept_until(&self) -> Tick {
        let mut target = self.target();
        if target.get() == AWAKE {
            target = Tick::new(self.rung_from.load(Ordering::Relaxed));
        }
        if target.get() == AWAKE {
            return Tick::MAX;
        }
        target
    }

    pub(super) fn has_bell(&self) -> bool {
        self.has_bell.load(Ordering::Relaxed)
    }

    /// The bell cannot ring: from now on tokio's clock alone wakes the driver.
    pub(super) fn lose_bell(&self) {
        self.has_bell.store(false, Ordering::Relaxed);
        self.wake_task();
    }

    /// Whether the driver sleeps on tokio's clock: a clock that can be paused must know what the
    /// driver waits for, and so must any clock if there is no bell.
    pub(super) fn sleeps_on_clock(&self) -> bool {
        self.clock.is_single() || !self.has_bell()
    }

    /// Whether tokio's clock alone wakes the driver: the bell knows nothing of a clock that is or was paused.
    pub(super) fn has_alarm_alone(&self) -> bool {
        self.is_warped() || !self.has_bell()
    }

    /// What the alarm is to wake.
    pub(super) fn keep_first_bite(&self, waker: Waker) {
        self.first_bite.get_or_init(|| waker);
    }

    /// Has tokio's clock wake the driver at its present target, whatever that is by now. `false` if that
    /// has come already.
    pub(super) fn set_alarm(&self) -> bool {
        self.set_alarm_with(&mut self.alarm.lock(), |at| at > self.clock.now())
    }

    /// `is_ahead` says of a time before the target's tick whether it is still to come.
    fn set_alarm_with(
        &self,
        alarm: &mut alarm::State,
        is_ahead: impl FnOnce(Instant) -> bool,
    ) -> bool {
        let target = self.target();
        let Some(waker) = self.first_bite.get().filter(|_| target.get() != AWAKE) else {
            // Awake, it sets the alarm itself before it sleeps.
            return true;
        };
        let mut at = self.clock.instant_of(target);
        if self.is_warped() {
            at = at.map(|at| self.before_rounding(at, is_ahead));
        }
        alarm.set(&self.clock, at, waker)
    }

    /// The earliest deadline that rounds up to a tick, or the tick itself if that has passed.
    ///
    /// tokio moves a paused clock by whole milliseconds of its own, which need not be ours.
    /// Waiting for the tick would round twice, and come a millisecond after tokio's own timers.
    fn before_rounding(&self, tick: Instant, is_ahead: impl FnOnce(Instant) -> bool) -> Instant {
        let rounding = self.clock.resolution().tick() - Duration::from_nanos(1);
        match tick.checked_sub(rounding) {
            Some(at) if is_ahead(at) => at,
            _ => tick,
        }
    }

    /// The driver's task ends.
    pub(super) fn forget_alarm(&self) {
        self.alarm.forget();
    }

    /// Takes the first turn after a sleep for the driver. `true` if the driver's task need not run: the alarm alone
    /// wakes it, and is set for the next turn.
    pub(super) fn take_turn(&self) -> bool {
        let Some(mut tools) = self.alarm.try_tools() else {
            return false;
        };
        self.list_shards(&mut tools);
        let now = self.turn(&mut tools, Waiting::SinceTarget(self.slept_until()));
        let next = tools.next();
        let may_sleep = next > now && self.has_alarm_alone() && self.aim(next, &tools);
        tools.shards.clear();
        let mut alarm = self.alarm.lock();
        alarm.put_back(tools);
        let may_sleep = may_sleep && self.set_alarm_with(&mut alarm, |at| at > self.clock.now());
        drop(alarm);
        if !may_sleep {
            self.first_bite_taken.store(true, Ordering::Relaxed);
        }
        may_sleep
    }

    // ----- the futures' side -----

    /// Something must be looked at by `next`.
    pub(super) fn heed(self: &Arc<Self>, next: Tick) {
        if next >= self.target() {
            return;
        }
        if self.has_alarm_alone() {
            self.target.fetch_min(next.get(), Ordering::SeqCst);
            let mut alarm = self.alarm.lock();
            // No clock is asked: a time that has passed wakes the driver, which asks. (A clock read is 130 of the 6400
            // instructions of a sleep on a paused clock.)
            let is_set = alarm.is_made() && self.set_alarm_with(&mut alarm, |_| true);
            drop(alarm);
            if !is_set {
                self.ring();
            }
        } else if self.sleeps_on_clock() {
            self.ring();
        } else {
            // The bell is told rather than the task: a task that this thread wakes would run on
            // this thread, and be held up with it if it blocks.
            self.target.fetch_min(next.get(), Ordering::SeqCst);
            bell::update(self);
        }
    }

    /// Wakes the driver to look again.
    pub(super) fn ring(&self) {
        self.keep_target();
        self.wake_task();
    }

    /// The driver is awake, or will be. Keeps since when.
    fn keep_target(&self) {
        let target = self.target.swap(AWAKE, Ordering::SeqCst);
        if target != AWAKE {
            self.rung_from.store(target, Ordering::Relaxed);
        }
    }

    /// The driver has turned: what it slept towards says nothing of the next turn.
    pub(super) fn forget_target(&self) {
        self.rung_from.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the driver to look again, if a worker waits on tokio's clock.
    ///
    /// The target stays as it is, unlike for `ring`: nobody may take the driver for awake before it is,
    /// and tell it nothing.
    pub(super) fn nudge(&self) {
        if !self.nudge.give(self.clock.now()) {
            self.ring();
        }
    }

    /// The driver goes to sleep and can be nudged; on a clock that it sleeps on itself it need not be.
    pub(super) fn expect_nudge(&self) {
        if let Some(waker) = self.first_bite.get().filter(|_| !self.sleeps_on_clock()) {
            self.nudge.expect(&self.clock, waker);
        }
    }

    /// The driver's task ends.
    pub(super) fn forget_nudge(&self) {
        self.nudge.forget();
    }

    fn wake_task(&self) {
        // If there is none yet, the task has yet to be polled for the first time, and will look.
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    // ----- the end -----

    /// Ends everything that is pending; tells how many that were.
    pub(super) fn stop(&self, stage: Stage) -> usize {
        // A timer that was stopped is abandoned all the same when its runtime goes.
        if self.stage.fetch_max(stage as u8, Ordering::AcqRel) >= Stage::Stopped as u8 {
            return 0;
        }
        let mut count = 0;
        for shard in self.shards() {
            let wakers = shard.stop();
            count += wakers.len();
            wake_all(wakers.into_iter());
        }
        self.wake_drains();
        self.wake_task();
        count
    }

    pub(super) fn start_draining(&self) {
        self.stage
            .fetch_max(Stage::Draining as u8, Ordering::AcqRel);
        for shard in self.shards() {
            shard.start_draining();
        }
    }

    /// Whether nothing is pending; if something is, `waker` is woken once it may be gone. Of the
    /// wakers that one `number` gives, the last one is.
    pub(super) fn is_drained(&self, number: u64, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut drains = self.drains.lock();
        let replaced = match drains.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                drains.push((number, waker));
                None
            }
        };
        drop(drains);
        drop(replaced);
        self.shards().iter().all(|shard| shard.is_empty())
    }

    /// Whoever waits by this number does so no more.
    pub(super) fn forget_drain(&self, number: u64) {
        let mut drains = self.drains.lock();
        let at = drains.iter().position(|(known, _)| *known == number);
        let waker = at.map(|at| drains.swap_remove(at));
        drop(drains);
        drop(waker);
    }

    pub(super) fn wake_drains(&self) {
        let drains = std::mem::take(&mut *self.drains.lock());
        wake_all(drains.into_iter().map(|(_, waker)| waker));
    }

    pub(super) fn metrics(&self) -> Metrics {
        let mut metrics = Metrics {
            turns: self.turns.load(Ordering::Relaxed),
            ..Metrics::default()
        };
        for shard in self.shards() {
            shard.add_to(&mut metrics);
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::Shared;

    /// Processors fetch lines of 64 bytes in pairs.
    const LINES: usize = 128;

    #[test]
    fn what_the_driver_writes_is_on_no_line_that_futures_read() {
        let read = [
            offset_of!(Shared, clock),
            offset_of!(Shared, stage),
            offset_of!(Shared, has_bell),
            offset_of!(Shared, warped),
            offset_of!(Shared, waker),
            offset_of!(Shared, first_bite),
        ];
        let written = [
            offset_of!(Shared, target),
            offset_of!(Shared, rung_from),
            offset_of!(Shared, turns),
            offset_of!(Shared, roster),
            offset_of!(Shared, enlisted),
            offset_of!(Shared, nudge),
            offset_of!(Shared, alarm),
            offset_of!(Shared, first_bite_taken),
        ];
        assert_eq!(align_of::<Shared>() % LINES, 0);
        for (n, write) in written.iter().enumerate() {
            for other in read.iter().chain(&written[n + 1..]) {
                assert_ne!(write / LINES, other / LINES, "offsets {write} and {other}");
            }
        }
    }
}
