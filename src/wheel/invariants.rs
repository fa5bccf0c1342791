use super::dials;
use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Tick, Wheel};

impl<T> Wheel<T> {
    /// Checks that the wheel is in order. For tests and fuzzing. O(slots + timers).
    ///
    /// # Panics
    ///
    /// If it is not, with a message that says what is wrong: then this crate has a bug.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let mut linked = 0;
        for slot in 0..self.dials.slots() {
            let occupied = !self.lists.is_empty(slot);
            assert_eq!(self.occupied.contains(slot), occupied, "the bit of {slot}");
            for node in self.lists.iter(slot) {
                linked += 1;
                let deadline = self.lists.entries[self.lists.index(node)].deadline;
                assert!(deadline > self.now(), "{deadline:?} is due and still filed");
                self.check_slot(slot, deadline);
            }
        }
        for queue in [FRESH, BACKLOG, CASCADING] {
            for node in self.lists.iter(self.queue(queue)) {
                linked += 1;
                let deadline = self.lists.entries[self.lists.index(node)].deadline;
                assert!(
                    queue == CASCADING || deadline <= self.now(),
                    "{deadline:?} waits to be served and is not due"
                );
            }
        }
        assert_eq!(linked, self.pending, "pending timers");
        assert_eq!(self.iter().count(), self.pending, "pending timers listed");
        match self.next_expiration() {
            Some(next) => {
                assert!(self.quiet_until <= next, "`quiet_until` is after {next:?}");
                let is_ahead = next > self.now();
                assert!(self.has_backlog() || is_ahead, "{next:?} has passed");
            }
            None => assert_eq!(self.pending, 0, "pending timers never come up"),
        }
    }

    /// A slot holds the timers of one unit of its dial: that of their deadlines.
    fn check_slot(&self, slot: u32, deadline: Tick) {
        for dial in 0..dials::COUNT {
            let slots = self.dials.slots_of(dial);
            if slots.contains(&slot) {
                let next = self.dials.next_slot(dial);
                let count = slots.end - slots.start;
                let distance = u64::from((slot + count - next) % count) + 1;
                let comes_up = self.dials.comes_up(dial, distance);
                let length = self
                    .dials
                    .comes_up(dial, 1)
                    .saturating_since(self.dials.comes_up(dial, 0));
                assert!(
                    comes_up <= deadline && deadline.saturating_since(comes_up) < length,
                    "{deadline:?} is filed in slot {slot}, which holds {length:?} from {comes_up:?} on"
                );
                return;
            }
        }
        assert!(
            self.dials.next_revolution() <= deadline,
            "{deadline:?} is filed beyond the last dial, and is due before the wheel looks there"
        );
    }
}
