use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Key, Tick, Wheel, dials};

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
            // What an `advance` left to cascade may be due already.
            (deadline.max(self.now()), node)
        };
        // Of equal ones, `min_by_key` takes the first.
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
