//! When something comes up next.

use super::dials;
use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Tick, Ticks, Wheel};

impl<T> Wheel<T> {
    /// Returns when the wheel should be advanced next, or `None` if no timer is pending. O(dials), and exact.
    ///
    /// - If timers that have come up are still waiting ([`has_backlog`](Wheel::has_backlog)), this is
    ///   [`now`](Wheel::now).
    /// - Otherwise it is after `now`, and never after the earliest deadline. It is before that deadline if a slot
    ///   of a dial above the first comes up first; the advance then files the timers of that slot again.
    ///
    /// So an owner that repeatedly sleeps until the next expiration and then advances is on time for every timer.
    /// A single timer takes at most one advance for each dial that it passes.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Tick> {
        if self.pending == 0 {
            return None;
        }
        if self.has_backlog() {
            return Some(self.now());
        }
        let next = self.earliest_above(self.next_due());
        if self.lists.is_empty(self.dials.beyond()) {
            return next;
        }
        let beyond = self.dials.next_revolution();
        Some(next.map_or(beyond, |next| next.min(beyond)))
    }

    /// Returns a tick before which an advance has nothing to do; [`Tick::MAX`] if no timer is pending. O(1).
    ///
    /// It is never later than [`next_expiration`](Wheel::next_expiration), and equal to it after an advance. After
    /// a cancel or a reset it may be earlier.
    #[inline]
    #[must_use]
    pub fn quiet_until(&self) -> Tick {
        self.quiet_until
    }

    /// Returns whether timers that have come up are still waiting to be served, or to be filed again on a lower
    /// dial.
    ///
    /// This is the case if the budget of the last advance was too small, or if a timer was inserted that is
    /// already due.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        [FRESH, BACKLOG, CASCADING]
            .iter()
            .any(|&queue| !self.lists.is_empty(self.queue(queue)))
    }

    /// Moves the hand over empty time: to `now`, or to the tick before [`quiet_until`](Wheel::quiet_until) if that
    /// is earlier. O(dials).
    ///
    /// This makes no timer due. An owner that has been idle calls it before it inserts, so that a timer of half a
    /// second is filed less than a second from the hand, on the first dial, and does not have to cascade.
    #[inline]
    pub fn skip_to(&mut self, now: Tick) {
        if self.pending == 0 {
            self.quiet_until = Tick::MAX;
        }
        let limit = now.min(self.quiet_until.saturating_sub(Ticks::new(1)));
        if limit > self.now() {
            self.dials.set_hand(limit);
        }
    }

    /// Whether nothing comes up by `now`. If so, moves the hand there.
    #[inline]
    pub(super) fn is_quiet_at(&mut self, now: Tick) -> bool {
        let is_quiet = now < self.quiet_until;
        if is_quiet {
            self.skip_to(now);
            self.settle_quiet_until();
        }
        is_quiet
    }

    /// Makes `quiet_until` exact, after an advance.
    #[inline]
    pub(super) fn settle_quiet_until(&mut self) {
        self.quiet_until = self.next_expiration().unwrap_or(Tick::MAX);
    }

    /// When the next slot of the first dial comes up.
    #[inline]
    pub(super) fn next_due(&self) -> Option<Tick> {
        let (next, end) = (self.dials.next_slot_due(), self.dials.slots_due());
        let distance = match self.occupied.first(next, end) {
            Some(slot) => slot - next,
            None => self.occupied.first(0, next)? + end - next,
        };
        Some(Tick::new(self.now().get() + 1 + u64::from(distance)))
    }

    /// When the next slot of a dial above the first comes up, or `earliest` if that is before.
    ///
    /// Always inlined: in a program that advances a wheel both ways, a call costs 9 % of
    /// [`next_expiration`](Wheel::next_expiration).
    #[inline(always)]
    pub(super) fn earliest_above(&self, mut earliest: Option<Tick>) -> Option<Tick> {
        for dial in 1..dials::COUNT {
            // No slot of this dial, or of one above it, comes up before the dial's hand moves on.
            if earliest.is_some_and(|earliest| earliest <= self.dials.next_unit(dial)) {
                return earliest;
            }
            if let Some(next) = self.next_on(dial) {
                earliest = Some(earliest.map_or(next, |earliest| next.min(earliest)));
            }
        }
        earliest
    }

    /// When the next slot of a dial above the first comes up.
    #[inline]
    pub(super) fn next_on(&self, dial: usize) -> Option<Tick> {
        let slots = self.dials.slots_of(dial);
        let next = self.dials.next_slot(dial);
        let distance = match self.occupied.first(next, slots.end) {
            Some(slot) => slot - next,
            None => self.occupied.first(slots.start, next)? + slots.end - next - slots.start,
        };
        Some(self.dials.comes_up(dial, u64::from(distance) + 1))
    }
}
