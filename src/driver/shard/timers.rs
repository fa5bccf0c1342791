//! What futures ask of their shard: to arm, to poll, to move and to cancel a timer.

use std::sync::Arc;
use std::task::Waker;

use super::{Shard, State};
use crate::driver::help::Help;
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering;
use crate::wheel::{Key, Tick, Wheel};

/// A shard that has nothing to do gives back the memory of its records if it is for more than this
/// many: 40 KiB.
pub(super) const KEPT: usize = 1024;

/// What became of a future's wish to be armed, or of its question whether it is due.
pub(crate) enum Answer<T> {
    Pending(T),
    Due,
    Stopped,
}

impl Shard {
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
        if wheel.disarm(key) {
            state.fired += 1;
        }
        self.postponed.park(key.index());
        self.unlock_with_one_less(state);
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
        self.unlock_with_one_less(state);
        drop(spare);
        drop(waker);
    }

    /// Unlocks after a timer has left the dials without the driver.
    ///
    /// If it was the last one, a paused clock would still jump to what the driver sleeps towards. The driver may
    /// have gone to sleep before the clock was paused, so the clock itself is asked.
    #[inline]
    fn unlock_with_one_less(&self, state: MutexGuard<'_, State>) {
        let is_empty = state.wheel.as_ref().is_none_or(Wheel::is_empty);
        if is_empty && self.clock.is_pausable() && state.published < Tick::MAX {
            return self.unlock_pausable(state);
        }
        self.unlock(state);
    }

    #[cold]
    fn unlock_pausable(&self, state: MutexGuard<'_, State>) {
        self.unlock(state);
        if !self.shared.is_clock_standing() {
            return;
        }
        let mut state = self.state.lock();
        let is_empty = state.wheel.as_ref().is_some_and(Wheel::is_empty);
        if is_empty && state.published < Tick::MAX {
            state.published = Tick::MAX;
            self.next.store(Tick::MAX.get(), Ordering::SeqCst);
            drop(state);
            self.shared.ring();
        }
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
            wheel.disarm(key);
            self.postponed.park(key.index());
            state.fired += 1;
            self.unlock_with_one_less(state);
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

    /// Whether the timer was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().wheel.is_none()
    }

    /// The help that was called has come, or will not.
    pub(in crate::driver) fn help_is_over(&self) {
        self.state.lock().has_help = false;
    }
}

/// Unlocks before it lets go of the waker.
#[cold]
fn not_armed(state: MutexGuard<'_, State>, waker: Waker, answer: Answer<Key>) -> Answer<Key> {
    drop(state);
    drop(waker);
    answer
}
