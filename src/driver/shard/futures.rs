//! The operations of a future on its timer: arm, poll, reset, cancel.

use std::sync::Arc;
use std::task::Waker;

use super::{Locked, Shard};
use crate::sync::MutexGuard;
use crate::wheel::{Key, Tick};

/// A shard without a pending timer gives back the memory of its entries if it is for more than this many: 40 KiB.
pub(super) const KEPT: usize = 1024;

/// A shard's answer about a timer.
pub(crate) enum Answer<T> {
    Pending(T),
    /// Its tick has come.
    Due,
    /// The `Timer` was stopped, or its runtime has ended.
    Stopped,
}

impl Shard {
    /// Files a timer. `passed` is a tick that has passed.
    ///
    /// If the shard should have been turned and is late, and no catch-up task is under way, calls `spawn_catch_up`
    /// with no lock held. (The function is handed in because a shard does not know who turns it.)
    #[inline]
    pub(crate) fn arm(
        self: &Arc<Self>,
        deadline: Tick,
        passed: Tick,
        waker: Waker,
        spawn_catch_up: fn(&Arc<Shard>),
    ) -> Answer<Key> {
        let mut locked = self.lock();
        let Some(wheel) = &mut locked.wheel else {
            return not_armed(locked, waker, Answer::Stopped);
        };
        // The hand goes as far as it can, so that the timer is filed on the finest dial.
        wheel.skip_to(passed);
        // The hand has passed this tick, and does not come back to it.
        if deadline <= wheel.now() {
            return not_armed(locked, waker, Answer::Due);
        }
        let key = wheel.insert(deadline, Some(waker));
        // The place in the slab may have been another timer's: its note is of the past.
        self.postponed.clear(key.index());
        locked.armed += 1;
        let is_overdue = self.clock.is_late(locked.next, passed) && !locked.has_catch_up;
        locked.has_catch_up |= is_overdue;
        // Unlocks, and only then looks at the driver's target.
        self.unlock_with_one_more(locked);
        if is_overdue {
            spawn_catch_up(self);
        }
        Answer::Pending(key)
    }

    /// Polls a timer that is not due by the clock. It is due nevertheless if the hand has passed it; then its entry is disarmed
    /// and stays. If it is pending, `waker` is the one that will be woken.
    #[inline]
    pub(crate) fn poll(
        &self,
        key: Key,
        deadline: impl FnOnce() -> Tick,
        waker: &Waker,
    ) -> Answer<()> {
        let locked = self.lock();
        let stored = locked.wheel.as_ref().and_then(|wheel| wheel.pending(key));
        if stored.is_some_and(|stored| stored.as_ref().is_some_and(|w| w.will_wake(waker))) {
            return Answer::Pending(());
        }
        // Another waker, a disarmed entry, or a stop. A waker is cloned with no lock held, so the lock is taken a second time.
        drop(locked);
        self.poll_with_new_waker(key, deadline(), waker.clone())
    }

    /// Like `poll`, but always replaces the stored waker. `poll` ends here unless it finds its own waker; call it directly when
    /// the entry is known to be disarmed.
    #[inline(never)]
    pub(crate) fn poll_with_new_waker(&self, key: Key, deadline: Tick, waker: Waker) -> Answer<()> {
        let mut locked = self.lock();
        let Some(wheel) = &mut locked.wheel else {
            drop(locked);
            return Answer::Stopped;
        };
        let is_pending = wheel.pending(key).is_some();
        if !is_pending && deadline <= wheel.now() {
            // A turn has fired it. The entry stays: `waker` is dropped on return, and may panic. The future frees the entry
            // when its own state is settled.
            drop(locked);
            return Answer::Due;
        }
        let Some(stored) = wheel.get_mut(key) else {
            unreachable!("an entry leaves with its future");
        };
        let replaced = stored.replace(waker);
        if is_pending {
            drop(locked);
        } else {
            // The timer was disarmed under an earlier deadline: the future moved it to a later one, or is an interval. Arm it again.
            self.postponed.clear(key.index());
            wheel.reset(key, deadline);
            locked.armed += 1;
            self.unlock_with_one_more(locked);
        }
        // Only now: its destructor is not ours.
        drop(replaced);
        Answer::Pending(())
    }

    /// Frees the entry of a timer that is due.
    #[inline(never)]
    pub(crate) fn finish(&self, key: Key) {
        self.remove(key, |locked| locked.fired += 1);
    }

    /// Whether the entry is disarmed, for sure: by a turn or by its future. `false` says nothing. Takes no lock.
    #[inline]
    pub(crate) fn is_disarmed(&self, key: Key) -> bool {
        self.postponed.is_disarmed(key.index())
    }

    /// Disarms a timer that is due by the clock, if no turn has. The entry stays.
    #[inline]
    pub(crate) fn disarm(&self, key: Key) {
        if self.is_disarmed(key) {
            return;
        }
        let mut locked = self.lock();
        let Some(wheel) = &mut locked.wheel else {
            return;
        };
        let waker = wheel.get_mut(key).and_then(Option::take);
        if wheel.disarm(key) {
            locked.fired += 1;
        }
        self.postponed.disarm(key.index());
        self.unlock_with_one_less(locked);
        drop(waker);
    }

    /// Frees the entry of a timer whose future is dropped.
    #[inline]
    pub(crate) fn cancel(&self, key: Key) {
        self.remove(key, |locked| locked.cancelled += 1);
    }

    /// `count` is called if the timer was pending.
    #[inline]
    fn remove(&self, key: Key, count: impl FnOnce(&mut Locked)) {
        let mut locked = self.lock();
        let Some(wheel) = &mut locked.wheel else {
            return;
        };
        let Some((waker, was_pending)) = wheel.take(key) else {
            unreachable!("an entry leaves with its future");
        };
        let is_empty = wheel.is_empty();
        // As many timers must be armed to grow it again, so this costs each of them little.
        let spare = if is_empty {
            wheel.take_spare(KEPT)
        } else {
            None
        };
        if was_pending {
            count(&mut locked);
        }
        self.unlock_with_one_less(locked);
        // Without the lock: to free a million entries takes milliseconds, and the waker's destructor is not ours.
        drop(spare);
        drop(waker);
    }

    /// Moves a timer to a deadline that is not before its present one. Takes no lock.
    #[inline]
    pub(crate) fn postpone(&self, key: Key, deadline: Tick) {
        self.postponed.insert(key.index(), deadline);
    }

    /// Moves a timer to an earlier deadline. If that `is_past`, or the hand has passed it since the caller's look, fires it and wakes its
    /// task.
    pub(crate) fn move_earlier(&self, key: Key, deadline: Tick, is_past: bool) {
        let mut locked = self.lock();
        let Some(wheel) = &mut locked.wheel else {
            return;
        };
        if !wheel.is_pending(key) {
            // A turn has fired it. The next poll sees the new deadline.
            return;
        }
        if is_past || deadline <= wheel.now() {
            let waker = wheel.get_mut(key).and_then(Option::take);
            wheel.disarm(key);
            self.postponed.disarm(key.index());
            locked.fired += 1;
            self.unlock_with_one_less(locked);
            if let Some(waker) = waker {
                waker.wake();
            }
        } else if wheel.deadline(key).is_some_and(|filed| deadline < filed) {
            self.postponed.clear(key.index());
            wheel.reset(key, deadline);
            self.unlock_with_one_more(locked);
        } else {
            // Earlier than it had been postponed to, and later than it is filed under.
            self.postponed.insert(key.index(), deadline);
        }
    }

    /// Keeps an entry that is not on the dials, with this waker: nothing but a stop or the end of the runtime wakes the task. No turn is needed for it, and no clock
    /// that is paused jumps to it. `key` is the timer's if it has an entry; what was pending under it is cancelled.
    pub(crate) fn await_stop(&self, key: Option<Key>, waker: Waker) -> Answer<Key> {
        let mut locked = self.lock();
        let Some(wheel) = &mut locked.wheel else {
            return not_armed(locked, waker, Answer::Stopped);
        };
        let key = match key {
            Some(key) => key,
            None => wheel.insert(Tick::MAX, None),
        };
        let was_armed = wheel.disarm(key);
        let replaced = wheel.get_mut(key).and_then(|stored| stored.replace(waker));
        // Only a timer that was armed has a waker.
        if was_armed && replaced.is_some() {
            locked.cancelled += 1;
        }
        self.postponed.clear(key.index());
        self.unlock_with_one_less(locked);
        // Only now: its destructor is not ours.
        drop(replaced);
        Answer::Pending(key)
    }

    /// Whether a turn has fired this timer.
    pub(crate) fn has_fired(&self, key: Key, deadline: Tick) -> bool {
        let locked = self.lock();
        let wheel = locked.wheel.as_ref();
        wheel.is_some_and(|wheel| !wheel.is_pending(key) && deadline <= wheel.now())
    }

    /// Whether the `Timer` was stopped, or its runtime has ended.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().wheel.is_none()
    }
}

/// Unlocks before it drops the waker.
#[cold]
fn not_armed(locked: MutexGuard<'_, Locked>, waker: Waker, answer: Answer<Key>) -> Answer<Key> {
    drop(locked);
    drop(waker);
    answer
}
