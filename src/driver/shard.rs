//! A shard: one wheel of wakers behind one lock, on cache lines of its own.
//!
//! # The life of a timer
//!
//! ```text
//!            arm                      turn                        finish
//! (future) ───────► record, pending ───────► record, parked ──────────────► (gone)
//!                      │      ▲    wakes it      │        poll: due by hand
//!               cancel │      └──────────────────┘ poll: was postponed meanwhile
//!                      ▼
//!                   (gone)
//! ```
//!
//! The record belongs to the future that armed it: the driver takes its waker and parks it, but
//! only the future gives it back. So a record's place in the slab, and the cell beside it that
//! the future writes without the lock, are never somebody else's while the future lives.
//!
//! # Ground rules
//!
//! - Wakers are cloned, woken and dropped with no lock held: their code is not ours.
//! - `next` is never later than the wheel's next turn when the lock is free, and it is lowered
//!   before the driver's target is looked at; the driver does it the other way round. So one of
//!   the two sees the other.

use std::sync::{Arc, Weak};
use std::task::Waker;

use super::clock::Clock;
use super::help::Help;
use super::metrics::{Lateness, Metrics};
use super::permits::Permits;
use super::postponed::Postponed;
use super::shared::{Shared, Stage};
use super::timer::Core;
use crate::error::Error;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, OwnLine};
use crate::wheel::{Key, Tick, Verdict, Wheel};
use tokio::time::Instant;

/// A shard that has nothing to do gives back the memory of its records if it is for more than this
/// many: 40 KiB.
const KEPT: usize = 1024;

pub(crate) struct Shard {
    state: OwnLine<Mutex<State>>,
    /// When the driver must look at this shard next.
    next: OwnLine<AtomicU64>,
    postponed: Postponed,
    /// The timer's, within reach of those who have the shard.
    clock: Clock,
    shared: Arc<Shared>,
    core: Weak<Core>,
    slot: usize,
    permits: Option<Arc<Permits>>,
}

struct State {
    /// `None` once the timer is stopped.
    wheel: Option<Wheel<Option<Waker>>>,
    /// What `next` holds, to be compared with the lock held.
    published: Tick,
    draining: bool,
    /// A [`Help`] is on its way.
    has_help: bool,
    armed: u64,
    fired: u64,
    cancelled: u64,
    stopped: u64,
    cascaded: u64,
    lateness: Lateness,
}

/// What became of a future's wish to be armed, or of its question whether it is due.
pub(crate) enum Answer<T> {
    Pending(T),
    Due,
    Stopped,
}

impl Shard {
    pub(super) fn new(
        shared: &Arc<Shared>,
        core: Weak<Core>,
        slot: usize,
        permits: Option<Arc<Permits>>,
    ) -> Shard {
        let clock = shared.clock().clone();
        Shard {
            state: OwnLine(Mutex::new(State {
                wheel: Some(Wheel::starting_at(clock.resolution(), clock.now_tick())),
                published: Tick::MAX,
                draining: false,
                has_help: false,
                armed: 0,
                fired: 0,
                cancelled: 0,
                stopped: 0,
                cascaded: 0,
                lateness: Lateness::default(),
            })),
            next: OwnLine(AtomicU64::new(Tick::MAX.get())),
            postponed: Postponed::new(),
            clock,
            shared: Arc::clone(shared),
            core,
            slot,
            permits,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn permits(&self) -> Option<&Permits> {
        self.permits.as_deref()
    }

    /// Whether this is the shard of the thread that asks.
    #[inline]
    pub(crate) fn is_of_this_thread(&self) -> bool {
        self.slot == self.shared.slot_of_this_thread()
    }

    /// The shard of the thread that asks, if it is another one and the timer still has a handle.
    #[inline]
    pub(crate) fn of_this_thread(&self) -> Option<Arc<Shard>> {
        if self.is_of_this_thread() {
            return None;
        }
        Some(Arc::clone(self.core.upgrade()?.shard()))
    }

    /// The help that was called has come, or will not.
    pub(super) fn help_is_over(&self) {
        self.state.lock().has_help = false;
    }

    /// Whether the timer takes anything new.
    #[inline]
    pub(crate) fn is_open(&self) -> Result<(), Error> {
        match self.shared.stage() {
            Stage::Running => Ok(()),
            _ => Err(Error::shutdown()),
        }
    }

    /// Whether a future may be made now; takes its permit.
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        self.is_open()?;
        match &self.permits {
            Some(permits) => permits.try_take(),
            None => Ok(()),
        }
    }

    /// Files a timer. `not_before` is a time that has passed for sure.
    #[inline]
    pub(crate) fn arm(
        self: &Arc<Self>,
        deadline: Tick,
        not_before: Tick,
        waker: Waker,
    ) -> Answer<Key> {
        let mut state = self.state.lock();
        let Some(wheel) = &mut state.wheel else {
            return not_armed(state, waker, Answer::Stopped);
        };
        wheel.skip_to(not_before);
        if deadline <= wheel.now() {
            return not_armed(state, waker, Answer::Due);
        }
        let key = wheel.insert(deadline, Some(waker));
        self.postponed.clear(key.index());
        state.armed += 1;
        let is_overdue = state.published < not_before && !state.has_help;
        state.has_help |= is_overdue;
        self.publish(state);
        if is_overdue {
            self.call_help();
        }
        Answer::Pending(key)
    }

    #[cold]
    fn call_help(self: &Arc<Self>) {
        self.clock.spawn(Help::new(Arc::clone(self)));
    }

    /// Whether a timer that the clock does not call due is due all the same, because the hand
    /// has passed it or the timer was stopped; if not, `waker` is the one to be woken.
    #[inline]
    pub(crate) fn poll(
        &self,
        key: Key,
        deadline: impl FnOnce() -> Tick,
        waker: &Waker,
    ) -> Answer<()> {
        let state = self.state.lock();
        let stored = state.wheel.as_ref().and_then(|wheel| wheel.pending(key));
        if stored.is_some_and(|stored| stored.as_ref().is_some_and(|w| w.will_wake(waker))) {
            return Answer::Pending(());
        }
        drop(state);
        self.poll_anew(key, deadline(), waker.clone())
    }

    /// The same if the waker is another or has been used: of use to those who know.
    #[inline(never)]
    pub(crate) fn poll_anew(&self, key: Key, deadline: Tick, waker: Waker) -> Answer<()> {
        let mut state = self.state.lock();
        let Some(wheel) = &mut state.wheel else {
            drop(state);
            return Answer::Stopped;
        };
        let is_pending = wheel.pending(key).is_some();
        if !is_pending && deadline <= wheel.now() {
            wheel.cancel(key);
            drop(state);
            return Answer::Due;
        }
        let Some(stored) = wheel.get_mut(key) else {
            unreachable!("a record leaves with its future");
        };
        let replaced = stored.replace(waker);
        if is_pending {
            drop(state);
        } else {
            // It fired under an earlier deadline while it was being postponed.
            self.postponed.clear(key.index());
            wheel.reset(key, deadline);
            state.armed += 1;
            self.publish(state);
        }
        drop(replaced);
        Answer::Pending(())
    }

    /// Gives back the record of a timer that the clock calls due.
    #[inline(never)]
    pub(crate) fn finish(&self, key: Key) {
        self.remove(key, |state| state.fired += 1);
    }

    /// Whether the driver has fired a timer, for sure; `false` says nothing.
    #[inline]
    pub(crate) fn is_parked(&self, key: Key) -> bool {
        self.postponed.is_parked(key.index())
    }

    /// Takes a timer that the clock calls due off the dials, if the driver has not, and keeps its
    /// record.
    #[inline]
    pub(crate) fn park(&self, key: Key) {
        if self.is_parked(key) {
            return;
        }
        let mut state = self.state.lock();
        let Some(wheel) = &mut state.wheel else {
            return;
        };
        let waker = wheel.get_mut(key).and_then(Option::take);
        if wheel.park(key) {
            state.fired += 1;
        }
        self.postponed.park(key.index());
        self.unlock(state);
        drop(waker);
    }

    /// Gives back the record of a timer whose future is dropped.
    #[inline]
    pub(crate) fn cancel(&self, key: Key) {
        self.remove(key, |state| state.cancelled += 1);
    }

    #[inline]
    fn remove(&self, key: Key, count: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        let Some(wheel) = &mut state.wheel else {
            return;
        };
        let Some((waker, was_pending)) = wheel.take(key) else {
            unreachable!("a record leaves with its future");
        };
        let is_empty = wheel.is_empty();
        // It takes as many timers to grow it again, so this costs each of them little.
        let spare = if is_empty {
            wheel.take_spare(KEPT)
        } else {
            None
        };
        if was_pending {
            count(&mut state);
        }
        // A paused clock would jump to where the driver sleeps towards, though nothing is pending.
        let is_idle = is_empty && state.published < Tick::MAX && self.shared.is_warped();
        if is_idle {
            state.published = Tick::MAX;
            self.next.store(Tick::MAX.get(), Ordering::SeqCst);
        }
        self.unlock(state);
        if is_idle {
            self.shared.ring();
        }
        drop(spare);
        drop(waker);
    }

    /// Moves a timer to a deadline that is not before its present one, without the lock.
    #[inline]
    pub(crate) fn postpone(&self, key: Key, deadline: Tick) {
        self.postponed.insert(key.index(), deadline);
    }

    /// Moves a timer to an earlier deadline; if that `is_past`, wakes whoever waits for it.
    pub(crate) fn hasten(&self, key: Key, deadline: Tick, is_past: bool) {
        let mut state = self.state.lock();
        let Some(wheel) = &mut state.wheel else {
            return;
        };
        if !wheel.is_pending(key) {
            return;
        }
        if is_past {
            let waker = wheel.get_mut(key).and_then(Option::take);
            wheel.park(key);
            self.postponed.park(key.index());
            state.fired += 1;
            self.unlock(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        } else if wheel.deadline(key).is_some_and(|filed| deadline < filed) {
            self.postponed.clear(key.index());
            wheel.reset(key, deadline);
            self.publish(state);
        } else {
            // Earlier than it had been postponed to, and later than it is filed under.
            self.postponed.insert(key.index(), deadline);
        }
    }

    /// Whether the driver has fired this timer, or it was stopped.
    pub(crate) fn has_ended(&self, key: Key, deadline: Tick) -> bool {
        match &self.state.lock().wheel {
            Some(wheel) => !wheel.is_pending(key) && deadline <= wheel.now(),
            None => true,
        }
    }

    /// When the driver must look at this shard next.
    pub(super) fn next(&self) -> Tick {
        Tick::new(self.next.load(Ordering::SeqCst))
    }

    /// Moves the hand to `now` and puts the wakers of at most `budget` due timers into `batch`.
    pub(super) fn turn(&self, now: Instant, budget: usize, batch: &mut Vec<Waker>) {
        let clock = &self.clock;
        let mut state = self.state.lock();
        let State {
            wheel: Some(wheel),
            fired,
            lateness,
            ..
        } = &mut *state
        else {
            return;
        };
        let hand = clock.tick_before(now).max(wheel.now());
        let nanos = clock.nanos(now);
        let mut last = (Tick::MAX, 0);
        let judge = |key: Key, filed: Tick, waker: &mut Option<Waker>| {
            let deadline = self.postponed.get(key.index()).unwrap_or(filed);
            if deadline > hand {
                return Verdict::Refile(deadline);
            }
            *fired += 1;
            // Most come up with others of their tick.
            if deadline != last.0 {
                last = (deadline, clock.nanos_since(nanos, deadline));
            }
            lateness.record(last.1);
            self.postponed.park(key.index());
            batch.extend(waker.take());
            Verdict::Park
        };
        wheel.advance(hand, budget, judge, |_, _| ());
        let next = wheel.quiet_until();
        state.published = next;
        self.next.store(next.get(), Ordering::SeqCst);
        self.unlock(state);
    }

    /// Ends everything that is pending and gives its wakers.
    pub(super) fn stop(&self) -> Vec<Waker> {
        let mut state = self.state.lock();
        let Some(mut wheel) = state.wheel.take() else {
            return Vec::new();
        };
        state.stopped += wheel.len() as u64;
        state.cascaded = wheel.cascaded();
        state.published = Tick::MAX;
        self.next.store(Tick::MAX.get(), Ordering::SeqCst);
        drop(state);
        wheel.drain().flatten().collect()
    }

    /// From now on, tells when nothing is pending any more.
    pub(super) fn start_draining(&self) {
        self.state.lock().draining = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.wheel.as_ref().is_none_or(Wheel::is_empty)
    }

    pub(super) fn add_to(&self, metrics: &mut Metrics) {
        let state = self.state.lock();
        let wheel = state.wheel.as_ref();
        metrics.armed += state.armed;
        metrics.fired += state.fired;
        metrics.cancelled += state.cancelled;
        metrics.stopped += state.stopped;
        metrics.pending += wheel.map_or(0, |wheel| wheel.len() as u64);
        metrics.cascaded += wheel.map_or(state.cascaded, Wheel::cascaded);
        metrics.lateness.add(&state.lateness);
    }

    /// Unlocks, and tells the driver if it must come earlier than it thinks.
    #[inline]
    fn publish(&self, state: MutexGuard<'_, State>) {
        let next = match &state.wheel {
            Some(wheel) => wheel.quiet_until(),
            None => Tick::MAX,
        };
        if next < state.published {
            self.lower(state, next);
        }
    }

    #[cold]
    fn lower(&self, mut state: MutexGuard<'_, State>, next: Tick) {
        state.published = next;
        self.next.store(next.get(), Ordering::SeqCst);
        drop(state);
        self.shared.heed(next);
    }

    /// Unlocks, and tells those that wait for the timer to be drained if this shard is.
    #[inline]
    fn unlock(&self, state: MutexGuard<'_, State>) {
        if state.draining {
            return self.unlock_draining(state);
        }
        drop(state);
    }

    #[cold]
    fn unlock_draining(&self, state: MutexGuard<'_, State>) {
        let drained = state.wheel.as_ref().is_none_or(Wheel::is_empty);
        drop(state);
        if drained {
            self.shared.wake_drains();
        }
    }
}

/// Unlocks before it lets go of the waker.
#[cold]
fn not_armed(state: MutexGuard<'_, State>, waker: Waker, answer: Answer<Key>) -> Answer<Key> {
    drop(state);
    drop(waker);
    answer
}

impl Drop for Shard {
    fn drop(&mut self) {
        // It may have been all that the driver of a timer without handles waited for.
        self.shared.end_if_over();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::mem::offset_of;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use tokio::runtime::Builder;
    use tokio::time::Duration;

    use super::{KEPT, Shard};
    use crate::driver::Timer;

    /// Processors fetch lines of 64 bytes in pairs.
    const LINES: usize = 128;

    #[test]
    fn the_lock_and_the_published_turn_are_on_lines_of_their_own() {
        let lines = [
            offset_of!(Shard, state),
            offset_of!(Shard, next),
            offset_of!(Shard, postponed),
            offset_of!(Shard, clock),
        ]
        .map(|offset| offset / LINES);
        assert_ne!(lines[0], lines[1]);
        assert!(!lines[2..].contains(&lines[0]) && !lines[2..].contains(&lines[1]));
        // So whatever else is on the heap, another shard's lines among it, is on others.
        assert_eq!(align_of::<Shard>() % LINES, 0);
        assert_eq!(size_of::<Shard>() % LINES, 0);
    }

    #[test]
    fn to_arm_and_cancel_counts_no_reference_that_another_shard_counts() {
        let (runtime, timer) = timer();
        let shard = Arc::clone(timer.shard());
        // The first sleep lists the shard and tells the driver; only what comes after is the path.
        let first = armed(&timer);
        let counts = || {
            let shared = shard.shared();
            let core = &timer.core;
            [
                Arc::strong_count(shared),
                Arc::weak_count(shared),
                Arc::strong_count(core),
                Arc::weak_count(core),
                shard.next().get() as usize,
            ]
        };
        let before = counts();
        let second = armed(&timer);
        assert_eq!(counts(), before);
        assert_eq!(
            Arc::strong_count(&shard),
            4,
            "this one, the timer, two sleeps"
        );
        drop(second);
        assert_eq!(counts(), before);
        drop(first);
        drop(runtime);
    }

    #[test]
    fn a_shard_that_has_nothing_to_do_gives_back_the_memory_of_a_peak() {
        let (runtime, timer) = timer();
        let mut peak: Vec<_> = (0..10 * KEPT).map(|_| armed(&timer)).collect();
        assert!(capacity(timer.shard()) >= 10 * KEPT);
        let last = peak.pop();
        drop(peak);
        assert!(capacity(timer.shard()) >= 10 * KEPT);
        drop(last);
        assert_eq!(capacity(timer.shard()), 0);
        let few: Vec<_> = (0..KEPT / 2).map(|_| armed(&timer)).collect();
        drop(few);
        assert!(capacity(timer.shard()) >= KEPT / 2);
        drop(runtime);
    }

    fn timer() -> (tokio::runtime::Runtime, Timer) {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let timer = Timer::builder().start_on(runtime.handle()).unwrap();
        (runtime, timer)
    }

    fn armed(timer: &Timer) -> impl Sized + use<> {
        let mut sleep = timer.sleep(Duration::from_secs(3600));
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(&mut sleep).poll(&mut context).is_pending());
        sleep
    }

    fn capacity(shard: &Shard) -> usize {
        shard.state.lock().wheel.as_ref().unwrap().capacity()
    }
}
