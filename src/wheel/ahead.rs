//! Reading ahead: the entries that come up next are read before they are served, those of several slots at once.
//!
//! Each entry of a list names the next one. So a processor that walks a list waits for one entry after the other to
//! come from memory, where the slab is larger than its cache. Lists of different slots do not depend on each other:
//! walked side by side, their entries come at the same time. The walk that serves them then finds them in the cache.

use super::{Tick, Ticks, Wheel};

/// How many slots are walked side by side at most. A core waits for ten to twenty cache lines at once.
const SLOTS: usize = 16;
/// And at least. A walk from both ends of one list is two at once already.
const LEAST: usize = 4;

impl<T> Wheel<T> {
    /// Reads up to `count` entries of the next sixteen slots of the first dial, as far as these come up by `now` and at least
    /// four of them have entries left. Calls `read` with the index and the deadline of each. The caller has to use the
    /// deadline, or the compiler leaves out that it is read; and can read what it keeps at that index.
    ///
    /// Returns the last tick of these slots. Nothing changes. It pays only where the entries are too many for the cache, and of a
    /// slot only as far as `count` goes: with sixteen slots and 1024, for the first 64 entries of each.
    pub(crate) fn read_ahead(
        &self,
        now: Tick,
        count: usize,
        mut read: impl FnMut(u32, Tick),
    ) -> Tick {
        let hand = self.now();
        // A small dial has less than sixteen.
        let slots = self.dials.slots_due().min(SLOTS as u32);
        let until = hand.saturating_add(Ticks::new(slots.into())).min(now);
        let mut walks = [(0, 0); SLOTS];
        let mut going = 0;
        for distance in 1..=until.saturating_since(hand).get() {
            let tick = hand.saturating_add(Ticks::new(distance));
            let slot = self.dials.slot_of_tick(tick);
            if let Some(first) = self.lists.first(slot) {
                walks[going] = (slot, first);
                going += 1;
            }
        }
        let mut left = count;
        while going >= LEAST && left >= going {
            left -= going;
            let mut went_on = 0;
            for walk in 0..going {
                let (slot, node) = walks[walk];
                let index = self.lists.index(node);
                let entry = &self.lists.entries[index];
                // The link and the deadline: an entry may lie on two cache lines.
                let next = entry.link.next;
                read(index as u32, entry.deadline);
                if next != slot {
                    walks[went_on] = (slot, next);
                    went_on += 1;
                }
            }
            going = went_on;
        }
        until
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::wheel::{Resolution, Tick, Wheel};

    fn read(wheel: &Wheel<()>, now: u64, count: usize) -> Vec<u32> {
        let mut indices = Vec::new();
        wheel.read_ahead(Tick::new(now), count, |index, _| indices.push(index));
        indices
    }

    #[test]
    fn reads_the_slots_that_come_up_side_by_side() {
        // The slots begin again in between: 4000 is the first of the dial.
        let mut wheel = Wheel::starting_at(Resolution::MILLISECOND, Tick::new(3_997));
        for deadline in [
            3_998, 3_998, 3_998, 3_999, 3_999, 4_001, 4_001, 4_002, 4_002,
        ] {
            wheel.insert(Tick::new(deadline), ());
        }
        wheel.insert(Tick::new(4_003), ());
        wheel.insert(Tick::new(5_500), ());
        assert_eq!(read(&wheel, 4_002, 100), [0, 3, 5, 7, 1, 4, 6, 8]);
        assert_eq!(read(&wheel, 4_010, 100), [0, 3, 5, 7, 9, 1, 4, 6, 8]);
        assert_eq!(read(&wheel, 4_002, 7), [0, 3, 5, 7]);
        assert_eq!(read(&wheel, 4_001, 100), [], "three slots are too few");
        wheel.check_invariants();
    }

    #[test]
    fn reads_no_slot_twice_where_the_dial_is_small() {
        let tenth = Resolution::new(Duration::from_millis(100)).unwrap();
        let mut wheel = Wheel::new(tenth);
        for deadline in [1, 2, 3, 4, 11] {
            wheel.insert(Tick::new(deadline), ());
        }
        assert_eq!(read(&wheel, 100, 100), [0, 1, 2, 3]);
    }
}
