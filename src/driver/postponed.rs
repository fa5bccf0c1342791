//! Deadlines beside the slab, where a future can move its own to a later one without a lock.
//!
//! One note and one cell for each place of a shard's slab, in segments that double in size and never
//! move. The future that owns the place writes, under `&mut`; the driver reads when the timer's slot
//! comes up, and files it again under what it reads. A value that the driver reads too early is
//! an older, earlier deadline: the future is then woken, finds that it is not due, and arms again.
//!
//! The notes are apart from the cells because most timers are never postponed: then a byte is all
//! that they cost, in memory and in cache lines. (With a cell for each, a million timers that fire
//! missed the cache once more each.)

use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::wheel::Tick;

/// log2 of the places in the first segment. A model has no use for many.
const FIRST: u32 = if cfg!(waterwheel_loom) { 1 } else { 6 };
/// Segments of 2^6, 2^7, 2^8, … places reach every 32-bit index.
const SEGMENTS: usize = (u32::BITS - FIRST + 1) as usize;

pub(super) struct Postponed {
    segments: [Segment; SEGMENTS],
}

/// Both are made when first used.
struct Segment {
    notes: OnceLock<Box<[AtomicU8]>>,
    deadlines: OnceLock<Box<[AtomicU64]>>,
}

/// The timer has the deadline that it is filed under.
const FILED: u8 = 0;
/// It has a later one, in its cell.
const MOVED: u8 = 1;
/// It is parked, and the deadline that it was filed under has passed. Its future may write `MOVED` over that, so a timer
/// may be parked without a note; but one with this note is.
const PARKED: u8 = 2;

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

    /// The timer at this place has the deadline that it is filed under. To be called before
    /// whatever else for a place.
    #[inline]
    pub(super) fn clear(&self, index: u32) {
        let (segment, offset) = locate(index);
        let notes = &self.segments[segment].notes;
        let notes = notes
            .get()
            .map_or_else(|| make(notes, segment), Box::as_ref);
        notes[offset].store(FILED, Ordering::Relaxed);
    }

    /// The timer at this place has a later deadline than it is filed under.
    #[inline]
    pub(super) fn insert(&self, index: u32, deadline: Tick) {
        let (segment, offset) = locate(index);
        let deadlines = &self.segments[segment].deadlines;
        let deadlines = deadlines
            .get()
            .map_or_else(|| make(deadlines, segment), Box::as_ref);
        deadlines[offset].store(deadline.get(), Ordering::Relaxed);
        if let Some(note) = self.note(index) {
            // After the deadline, which whoever sees the note sees too.
            note.store(MOVED, Ordering::Release);
        }
    }

    /// Notes that the timer at this place is parked and gives its deadline, which is `filed` unless it has a
    /// later one; but if that is after `hand`, only gives it, as an error.
    #[inline]
    pub(super) fn park_due(&self, index: u32, filed: Tick, hand: Tick) -> Result<Tick, Tick> {
        let note = self.note(index);
        let is_moved = note.is_some_and(|note| note.load(Ordering::Acquire) == MOVED);
        let deadline = if is_moved { self.later(index) } else { None };
        let deadline = deadline.unwrap_or(filed);
        if deadline > hand {
            return Err(deadline);
        }
        if let Some(note) = note {
            // If the future has moved it or moves it meanwhile, the note does not tell. Released: whoever sees it knows
            // that the deadline has passed, and asks no clock.
            let _ = note.compare_exchange(FILED, PARKED, Ordering::Release, Ordering::Relaxed);
        }
        Ok(deadline)
    }

    /// What is in the cell of this place.
    fn later(&self, index: u32) -> Option<Tick> {
        let (segment, offset) = locate(index);
        let deadlines = self.segments[segment].deadlines.get()?;
        Some(Tick::new(deadlines[offset].load(Ordering::Relaxed)))
    }

    /// The timer at this place has been parked by its future, or for it while it is not moved.
    #[inline]
    pub(super) fn park(&self, index: u32) {
        if let Some(note) = self.note(index) {
            note.store(PARKED, Ordering::Relaxed);
        }
    }

    /// Whether the timer at this place is parked for sure: its future asks, who alone unparks it. Its deadline
    /// has passed then, unless the future has taken another without a note, as an interval does.
    #[inline]
    pub(super) fn is_parked(&self, index: u32) -> bool {
        self.note(index)
            .is_some_and(|note| note.load(Ordering::Acquire) == PARKED)
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

/// The segment of an index, and the cell's place in it.
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
        // No hand is there yet, so nothing is parked.
        let filed = Tick::new(1);
        let get = |index| cells.park_due(index, filed, Tick::ZERO).unwrap_err();
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
            assert_eq!(cells.park_due(index, filed, later), Ok(later));
            assert!(!cells.is_parked(index), "it may be moved anew");
            cells.clear(index);
            assert_eq!(cells.park_due(index, filed, filed), Ok(filed));
            assert!(cells.is_parked(index));
            assert_eq!(get(index), filed);
            cells.clear(index);
            assert!(!cells.is_parked(index));
            assert_eq!(get(index), filed);
        }
    }
}
