//! Deadlines beside the slab, where a future can move its own to a later one without a lock.
//!
//! One flag and one cell for each place of a shard's slab, in segments that double in size and never
//! move. The future that owns the place writes, under `&mut`; the driver reads when the timer's slot
//! comes up, and files it again under what it reads. A value that the driver reads too early is
//! an older, earlier deadline: the future is then woken, finds that it is not due, and arms again.
//!
//! The flags are apart from the cells because most timers are never postponed: then a byte is all
//! that they cost, in memory and in cache lines. (With a cell for each, a million timers that fire
//! missed the cache once more each.)

use std::sync::OnceLock;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::wheel::Tick;

/// log2 of the places in the first segment.
const FIRST: u32 = 6;
/// Segments of 2^6, 2^6, 2^7, … places reach every 32-bit index.
const SEGMENTS: usize = (u32::BITS - FIRST + 1) as usize;

pub(super) struct Postponed {
    segments: [Segment; SEGMENTS],
}

/// Both are made when first used.
struct Segment {
    /// Whether the cell counts.
    flags: OnceLock<Box<[AtomicBool]>>,
    deadlines: OnceLock<Box<[AtomicU64]>>,
}

impl Postponed {
    pub(super) fn new() -> Postponed {
        let segment = || Segment {
            flags: OnceLock::new(),
            deadlines: OnceLock::new(),
        };
        Postponed {
            segments: std::array::from_fn(|_| segment()),
        }
    }

    /// The timer at this place has the deadline that it is filed under. To be called before the
    /// first `insert` there.
    #[inline]
    pub(super) fn clear(&self, index: u32) {
        let (segment, offset) = locate(index);
        let flags = &self.segments[segment].flags;
        let flags = flags.get().unwrap_or_else(|| make(flags, segment));
        flags[offset].store(false, Ordering::Relaxed);
    }

    /// The timer at this place has a later deadline than it is filed under.
    #[inline]
    pub(super) fn insert(&self, index: u32, deadline: Tick) {
        let (segment, offset) = locate(index);
        let Segment { flags, deadlines } = &self.segments[segment];
        let deadlines = deadlines.get().unwrap_or_else(|| make(deadlines, segment));
        deadlines[offset].store(deadline.get(), Ordering::Relaxed);
        if let Some(flags) = flags.get() {
            // After the deadline, which whoever sees the flag sees too.
            flags[offset].store(true, Ordering::Release);
        }
    }

    /// The later deadline of the timer at this place, if it has one.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<Tick> {
        let (segment, offset) = locate(index);
        let Segment { flags, deadlines } = &self.segments[segment];
        if !flags.get()?[offset].load(Ordering::Acquire) {
            return None;
        }
        Some(Tick::new(deadlines.get()?[offset].load(Ordering::Relaxed)))
    }
}

#[cold]
#[expect(clippy::borrowed_box, reason = "what `OnceLock::get` gives")]
fn make<T: Default>(places: &OnceLock<Box<[T]>>, segment: usize) -> &Box<[T]> {
    places.get_or_init(|| (0..length(segment)).map(|_| T::default()).collect())
}

/// The segment of an index, and the cell's place in it.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    match index.checked_ilog2() {
        Some(log) if log >= FIRST => ((log - FIRST + 1) as usize, (index - (1 << log)) as usize),
        _ => (0, index as usize),
    }
}

fn length(segment: usize) -> usize {
    1 << (FIRST as usize + segment.saturating_sub(1))
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
        assert_eq!((segment, offset), (SEGMENTS - 1, length(segment) - 1));
    }

    #[test]
    fn a_cell_keeps_what_was_last_written_until_it_is_cleared() {
        let cells = Postponed::new();
        let places = [0, 63, 64, 127, 128, 1_000_000];
        for index in places {
            assert_eq!(cells.get(index), None);
            cells.clear(index);
            assert_eq!(cells.get(index), None);
            cells.insert(index, Tick::new(u64::from(index)));
            cells.insert(index, Tick::new(u64::from(index) + 7));
        }
        for index in places {
            assert_eq!(cells.get(index), Some(Tick::new(u64::from(index) + 7)));
            cells.clear(index);
            assert_eq!(cells.get(index), None);
        }
    }
}
