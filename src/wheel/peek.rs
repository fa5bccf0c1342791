use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Key, Tick, Ticks, Wheel, dials};

impl<T> Wheel<T> {
    /// Returns the pending timer that [`expire`](Wheel::expire) would return next: the one with the earliest
    /// deadline, and among equal ones the one that was filed first. Returns `None` if no timer is pending.
    ///
    /// As in `expire`, a timer whose deadline is at or before the hand when it is filed counts as due at the hand,
    /// and the order is lost for timers that came up in an [`advance`](Wheel::advance) whose budget was too small.
    ///
    /// # Cost
    ///
    /// - O(1) if timers that are due are waiting to be served.
    /// - O(dials) if the earliest timer is on the first dial and no slot of a higher dial comes up by then.
    /// - Otherwise it visits each timer in the next slot of each dial that can hold the earliest one, and each
    ///   timer beyond the dials if one of those can be the earliest. That is a few timers in most cases, and a
    ///   whole herd in the worst case.
    ///
    /// [`next_expiration`](Wheel::next_expiration) is O(dials) in all cases; use that to find out when to wake up.
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// wheel.insert(Tick::new(3_600_001), "hour");
    /// let minute = wheel.insert(Tick::new(60_001), "minute");
    /// assert_eq!(wheel.peek(), Some((minute, Tick::new(60_001), &"minute")));
    /// // The slot of its second comes up first.
    /// assert_eq!(wheel.next_expiration(), Some(Tick::new(60_000)));
    /// ```
    #[must_use]
    pub fn peek(&self) -> Option<(Key, Tick, &T)> {
        let node = self.earliest_node()?;
        let index = self.lists.index(node);
        let entry = &self.lists.entries[index];
        let key = Key {
            index: index as u32,
            generation: entry.generation,
        };
        Some((key, entry.deadline, &entry.payload))
    }

    fn earliest_node(&self) -> Option<u32> {
        // All of these are due at the hand, in the order in which they are served.
        let mut due = [BACKLOG, FRESH].iter();
        if let Some(node) = due.find_map(|&queue| self.lists.first(self.queue(queue))) {
            return Some(node);
        }
        // From the lowest dial to the highest: of equal timers, those on a higher dial were filed first.
        let mut earliest = self.next_due().and_then(|tick| {
            let node = self.lists.first(self.dials.slot_of_tick(tick))?;
            Some((tick, node))
        });
        for dial in 1..dials::COUNT {
            // No slot of this dial, or of one above it, comes up before the dial's hand moves on.
            if earliest.is_some_and(|(tick, _)| tick < self.dials.next_unit(dial)) {
                break;
            }
            if let Some(comes_up) = self.next_on(dial) {
                let slot = self.dials.slot_that_comes_up(dial, comes_up);
                earliest = self.earlier_in(slot, comes_up, earliest);
            }
        }
        earliest = self.earlier_in(self.dials.beyond(), self.dials.next_revolution(), earliest);
        earliest = self.earlier_in(self.queue(CASCADING), self.now(), earliest);
        earliest.map(|(_, node)| node)
    }

    /// The first of the earliest timers of a list, in which no timer is due before `comes_up`; or `earliest`, if that
    /// is before.
    fn earlier_in(
        &self,
        list: u32,
        comes_up: Tick,
        earliest: Option<(Tick, u32)>,
    ) -> Option<(Tick, u32)> {
        if self.lists.is_empty(list) || earliest.is_some_and(|(tick, _)| tick < comes_up) {
            return earliest;
        }
        let due_at = |node| {
            let deadline = self.lists.entries[self.lists.index(node)].deadline;
            // A timer that an `advance` left to cascade may be due already.
            (deadline.max(self.now()), node)
        };
        // Among equal ones, `min_by_key` takes the first.
        let first = self
            .lists
            .iter(list)
            .map(due_at)
            .min_by_key(|&(tick, _)| tick);
        match (first, earliest) {
            (Some(first), Some(earliest)) if earliest.0 < first.0 => Some(earliest),
            (first, earliest) => first.or(earliest),
        }
    }
}

// Reading ahead: the entries that come up next are read before they are served, those of several slots at once.
//
// Each entry of a list names the next one. So a processor that walks a list waits for one entry after the other to
// come from memory, where the slab is larger than its cache. Lists of different slots do not depend on each other:
// walked side by side, their entries come at the same time. The walk that serves them then finds them in the cache.

/// The maximum number of slots that are walked together. A core waits for ten to twenty cache lines at once.
const SLOTS: usize = 16;
/// The minimum number. A walk from both ends of one list is two at once already.
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
mod ahead_tests {
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
