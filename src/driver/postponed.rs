//! Deadlines beside the slab, where a future can move its own to a later one without a lock.
//!
//! One cell for each place of a shard's slab, in segments that double in size and never move.
//! The future that owns the place writes, under `&mut`; the driver reads when the timer's slot
//! comes up, and files it again under what it reads. A value that the driver reads too early is
//! an older, earlier deadline: the future is then woken, finds that it is not due, and arms again.

use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wheel::Tick;

/// log2 of the cells in the first segment.
const FIRST: u32 = 6;
/// Segments of 2^6, 2^6, 2^7, … cells reach every 32-bit index.
const SEGMENTS: usize = (u32::BITS - FIRST + 1) as usize;

pub(super) struct Postponed {
    segments: [OnceLock<Box<[AtomicU64]>>; SEGMENTS],
}

impl Postponed {
    pub(super) fn new() -> Postponed {
        Postponed {
            segments: [const { OnceLock::new() }; SEGMENTS],
        }
    }

    /// Writes a cell, and makes its segment if this is its first.
    #[inline]
    pub(super) fn insert(&self, index: u32, deadline: Tick) {
        let (segment, offset) = locate(index);
        let cells = self.segments[segment]
            .get_or_init(|| (0..length(segment)).map(|_| AtomicU64::new(0)).collect());
        cells[offset].store(deadline.get(), Ordering::Relaxed);
    }

    /// Reads a cell that was inserted.
    #[inline]
    pub(super) fn deadline(&self, index: u32) -> Tick {
        let (segment, offset) = locate(index);
        self.segments[segment].get().map_or(Tick::ZERO, |cells| {
            Tick::new(cells[offset].load(Ordering::Relaxed))
        })
    }
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
    fn a_cell_keeps_what_was_last_written() {
        let cells = Postponed::new();
        for index in [0, 63, 64, 127, 128, 1_000_000] {
            cells.insert(index, Tick::new(u64::from(index)));
            cells.insert(index, Tick::new(u64::from(index) + 7));
        }
        for index in [0, 63, 64, 127, 128, 1_000_000] {
            assert_eq!(cells.deadline(index), Tick::new(u64::from(index) + 7));
        }
    }
}
