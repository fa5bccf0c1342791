//! What a future does with its timer: arm it, poll it, move it, cancel it.

use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::{Locked, Shard};
use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::wheel::{Key, Tick};

/// A shard without a pending timer gives back the memory of its entries if it is for more than this many: 40 KiB.
pub(super) const KEPT: usize = 1024;

/// What a shard says of a timer.
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
            // It was disarmed under an earlier deadline: the future moved it to a later one, or is an interval. Arm it again.
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

// Deadlines beside the slab, which a future can move to a later one without the lock.
//
// A shard has a note of one byte and a cell of eight bytes for each place of its slab. Notes and cells lie in segments that
// double in size and never move. The future that owns a place writes its note and its cell, under `&mut`. When the timer's
// slot comes up, the driver reads both, and files the timer again under what it reads. A driver that reads too early finds
// an older, earlier deadline and wakes the future, which finds that it is not due and arms again.
//
// The notes are apart from the cells because most timers are never postponed: the note is then all that such a timer costs,
// in memory and in cache lines. (With a cell for each, a million timers that fire missed the cache once more each.)

/// log2 of the places in the first segment. A model has no use for many.
const FIRST: u32 = if cfg!(waterwheel_loom) { 1 } else { 6 };
/// Segments of 2^6, 2^7, 2^8, … places reach every 32-bit index.
const SEGMENTS: usize = (u32::BITS - FIRST + 1) as usize;

pub(in crate::driver) struct Postponed {
    segments: [Segment; SEGMENTS],
}

/// Each half is made when first used.
struct Segment {
    notes: OnceLock<Box<[AtomicU8]>>,
    deadlines: OnceLock<Box<[AtomicU64]>>,
}

// What a note says.
/// The timer has the deadline that it is filed under.
const FILED: u8 = 0;
/// The timer has the later deadline that is in its cell.
const MOVED: u8 = 1;
/// The entry is disarmed, and the deadline that it was filed under has passed. The future may write `MOVED` over this note,
/// so an entry may be disarmed without it; an entry with this note is disarmed.
const DISARMED: u8 = 2;

impl Postponed {
    pub(super) fn new() -> Postponed {
        let segment = || Segment {
            notes: OnceLock::new(),
            deadlines: OnceLock::new(),
        };
        Postponed {
            segments: std::array::from_fn(|_| segment()),
        }
    }

    /// The timer at this place has the deadline that it is filed under. To be called with the lock held, before anything
    /// else for a new timer.
    #[inline]
    pub(super) fn clear(&self, index: u32) {
        let (segment, offset) = locate(index);
        let notes = &self.segments[segment].notes;
        let notes = notes
            .get()
            .map_or_else(|| make(notes, segment), Box::as_ref);
        // Relaxed: the driver reads it with the lock that is held here, and the future is this thread.
        notes[offset].store(FILED, Ordering::Relaxed);
    }

    /// The timer at this place has a later deadline than it is filed under. Takes no lock.
    #[inline]
    pub(super) fn insert(&self, index: u32, deadline: Tick) {
        let (segment, offset) = locate(index);
        let deadlines = &self.segments[segment].deadlines;
        let deadlines = deadlines
            .get()
            .map_or_else(|| make(deadlines, segment), Box::as_ref);
        // Relaxed: the note releases it.
        deadlines[offset].store(deadline.get(), Ordering::Relaxed);
        if let Some(note) = self.note(index) {
            // Pairs with the acquire in `disarm_due`: a driver that reads the note reads this deadline or a later one.
            note.store(MOVED, Ordering::Release);
        }
    }

    /// Notes that the entry at this place is disarmed, and returns its deadline: the one in its cell if it was moved, else
    /// `filed`. If that is after `hand`, notes nothing and returns it as an error. To be called with the lock held.
    #[inline]
    pub(in crate::driver) fn disarm_due(
        &self,
        index: u32,
        filed: Tick,
        hand: Tick,
    ) -> Result<Tick, Tick> {
        let note = self.note(index);
        let deadline = self.deadline_by(note, index, filed);
        if deadline > hand {
            return Err(deadline);
        }
        if let Some(note) = note {
            // If the future has moved the timer or moves it meanwhile, the note stays `MOVED`. The release pairs with the
            // acquire in `is_disarmed`: a future that reads the note need not read the clock.
            let _ = note.compare_exchange(FILED, DISARMED, Ordering::Release, Ordering::Relaxed);
        }
        Ok(deadline)
    }

    /// The deadline of the timer at this place, which is filed under `filed`. To be called with the lock held.
    pub(super) fn deadline(&self, index: u32, filed: Tick) -> Tick {
        self.deadline_by(self.note(index), index, filed)
    }

    #[inline]
    fn deadline_by(&self, note: Option<&AtomicU8>, index: u32, filed: Tick) -> Tick {
        // Pairs with the release in `insert`.
        let is_moved = note.is_some_and(|note| note.load(Ordering::Acquire) == MOVED);
        let deadline = if is_moved { self.later(index) } else { None };
        deadline.unwrap_or(filed)
    }

    /// What is in the cell of this place.
    fn later(&self, index: u32) -> Option<Tick> {
        let (segment, offset) = locate(index);
        let deadlines = self.segments[segment].deadlines.get()?;
        // Relaxed: the caller has acquired it with the note.
        Some(Tick::new(deadlines[offset].load(Ordering::Relaxed)))
    }

    /// The future has disarmed the entry at this place, or had it disarmed, and does not move it meanwhile.
    #[inline]
    pub(super) fn disarm(&self, index: u32) {
        if let Some(note) = self.note(index) {
            // Relaxed: the future reads it, which is this thread.
            note.store(DISARMED, Ordering::Relaxed);
        }
    }

    /// Whether the entry at this place is disarmed, for sure. Its future asks, and no other thread arms the entry again. Its
    /// deadline has passed, unless the future has taken another one without a note, as an interval does.
    #[inline]
    pub(super) fn is_disarmed(&self, index: u32) -> bool {
        // Pairs with the release in `disarm_due`.
        self.note(index)
            .is_some_and(|note| note.load(Ordering::Acquire) == DISARMED)
    }

    /// Reads the note of this place, so that it is in the cache when its timer is served.
    #[inline]
    pub(in crate::driver) fn read_ahead(&self, index: u32) {
        // Relaxed: what it says is not used.
        black_box(self.note(index).map(|note| note.load(Ordering::Relaxed)));
    }

    #[inline]
    fn note(&self, index: u32) -> Option<&AtomicU8> {
        let (segment, offset) = locate(index);
        Some(&self.segments[segment].notes.get()?[offset])
    }
}

#[cold]
fn make<T: Default>(places: &OnceLock<Box<[T]>>, segment: usize) -> &[T] {
    places.get_or_init(|| (0..length(segment)).map(|_| T::default()).collect())
}

/// The segment of an index, and the place in it.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    // Counted from the length of the first segment, each segment begins at its own length.
    let place = u64::from(index) + (1 << FIRST);
    let log = place.ilog2();
    ((log - FIRST) as usize, (place ^ (1 << log)) as usize)
}

fn length(segment: usize) -> usize {
    1 << (FIRST as usize + segment)
}

#[cfg(test)]
mod postponed_tests {
    use super::{Postponed, SEGMENTS, length, locate};
    use crate::wheel::Tick;

    #[test]
    fn each_index_has_a_cell_of_its_own() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(locate(index), expected, "index {index}");
            expected.1 += 1;
            if expected.1 == length(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        let (segment, offset) = locate(u32::MAX);
        assert_eq!((segment, offset), (SEGMENTS - 1, length(0) - 1));
    }

    #[test]
    fn a_cell_keeps_what_was_last_written_until_it_is_cleared() {
        let cells = Postponed::new();
        // No hand is there yet, so nothing is disarmed.
        let filed = Tick::new(1);
        let get = |index| cells.disarm_due(index, filed, Tick::ZERO).unwrap_err();
        let places = [0, 63, 64, 127, 128, 1_000_000];
        for index in places {
            assert_eq!(get(index), filed);
            cells.clear(index);
            assert_eq!(get(index), filed);
            cells.insert(index, Tick::new(u64::from(index)));
            cells.insert(index, Tick::new(u64::from(index) + 7));
        }
        for index in places {
            assert_eq!(get(index), Tick::new(u64::from(index) + 7));
            let later = Tick::new(u64::from(index) + 7);
            assert_eq!(cells.disarm_due(index, filed, later), Ok(later));
            assert!(!cells.is_disarmed(index), "it may be moved anew");
            cells.clear(index);
            assert_eq!(cells.disarm_due(index, filed, filed), Ok(filed));
            assert!(cells.is_disarmed(index));
            assert_eq!(get(index), filed);
            cells.clear(index);
            assert!(!cells.is_disarmed(index));
            assert_eq!(get(index), filed);
        }
    }
}
