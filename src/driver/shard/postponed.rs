//! Deadlines outside of the slab, which a future can move to a later one without the lock.
//!
//! A shard has a note of one byte and a cell of eight bytes for each place of its slab. Notes and cells lie in segments that
//! double in size and never move. The future that owns a place writes its note and its cell, under `&mut`. When the timer's
//! slot comes up, the driver reads both, and files the timer again under what it reads. A driver that reads too early finds
//! an older, earlier deadline and wakes the future, which finds that it is not due and arms again.
//!
//! The notes are apart from the cells because most timers are never postponed: the note is then all that such a timer costs,
//! in memory and in cache lines. (With a cell for each, a million timers that fire missed the cache once more each.)

use std::hint::black_box;
use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::wheel::Tick;

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

// The values of a note.
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

    /// The deadline in the cell of this place.
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
mod tests {
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
