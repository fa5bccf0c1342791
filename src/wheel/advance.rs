//! Moving the hand and serving what comes up, fairly.
//!
//! The hand moves to its goal first, and the slots that it passed are queued whole, so that a slot with a
//! million timers does not delay the next one. Then a bounded batch is served:
//!
//! 1. The *cascading*: timers that came up on a dial above the first are filed again.
//! 2. The *fresh*: what became due when the hand last moved. A timer that is due now does not wait for a herd
//!    that was due before it. The wheel takes them alternately from the back and from the front, so that a timer
//!    of a millisecond, which was filed last, does not wait for a herd of minutes that is due at the same tick.
//! 3. The *backlog*, oldest first, with at least half of the budget, so that a steady overload of fresh timers
//!    does not starve the old ones.
//!
//! No order is promised. [`in_order`](super::in_order) has the other way.

use super::dials;
use super::serve::{CASCADES_PER_TIMER, Met, Walk};
use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Key, Progress, Tick, Verdict, Wheel};

impl<T> Wheel<T> {
    /// Advances the hand to `now` and serves what has come up, in no promised order.
    ///
    /// The wheel asks `judge` about each timer that has come up, and passes those that are [`Verdict::Due`] to
    /// `due`, with their deadlines. If nothing is to be postponed or kept, and the order matters, use
    /// [`expire`](Wheel::expire). For a judge and the order, use [`advance_in_order`](Wheel::advance_in_order).
    ///
    /// The caller rounds `now` down to a tick. A `now` before the hand counts as the hand: time does not go
    /// backwards.
    ///
    /// At most `budget` timers are judged, and at most eight times as many cascade. The others wait for the next
    /// call, and [`Progress::backlog`] is true. While there is a backlog, half of the budget is for the timers that
    /// came up last, and half for those that have waited longest, so that neither group starves.
    ///
    /// If `judge` or `due` panics, the wheel stays in a consistent state. A timer whose judge panicked is still
    /// pending; one that was passed to `due` is gone.
    ///
    /// O(timers judged + timers cascaded + slots that came up).
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Verdict, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// let idle = wheel.insert(Tick::new(30_000), "connection 1");
    /// wheel.insert(Tick::new(30_000), "connection 2");
    ///
    /// // Connection 1 was used at 20 s, which only the judge knows.
    /// let mut closed = Vec::new();
    /// let progress = wheel.advance(
    ///     Tick::new(30_000),
    ///     100,
    ///     |key, _deadline, _payload| match key == idle {
    ///         true => Verdict::Postpone(Tick::new(50_000)),
    ///         false => Verdict::Due,
    ///     },
    ///     |_deadline, payload| closed.push(payload),
    /// );
    /// assert_eq!(closed, ["connection 2"]);
    /// assert_eq!((progress.expired, progress.postponed, progress.backlog), (1, 1, false));
    /// assert_eq!(wheel.deadline(idle), Some(Tick::new(50_000)));
    /// ```
    pub fn advance(
        &mut self,
        now: Tick,
        budget: usize,
        mut judge: impl FnMut(Key, Tick, &mut T) -> Verdict,
        mut due: impl FnMut(Tick, T),
    ) -> Progress {
        let now = now.max(self.now());
        if self.is_quiet_at(now) {
            return Progress::default();
        }
        if now > self.now() {
            self.move_hand(now);
        }
        let mut progress = Progress::default();
        self.cascade(budget.saturating_mul(CASCADES_PER_TIMER));
        let mut left = budget;
        let mut judge = |_: Met, key, deadline, payload: &mut T| judge(key, deadline, payload);
        for (queue, walk, share) in [
            (FRESH, Walk::BackAndFront, budget / 2),
            (BACKLOG, Walk::Front, budget),
            (FRESH, Walk::BackAndFront, budget),
        ] {
            let share = share.min(left);
            left -= self.serve(queue, walk, share, &mut judge, &mut due, &mut progress);
        }
        progress.backlog = self.has_backlog();
        self.settle_quiet_until();
        progress
    }

    fn move_hand(&mut self, now: Tick) {
        let (fresh, backlog, cascading) = (
            self.queue(FRESH),
            self.queue(BACKLOG),
            self.queue(CASCADING),
        );
        self.lists.append(fresh, backlog);
        let passed = self.dials.slots_passed(now);
        for dial in (0..dials::COUNT).rev() {
            let queue = if dial == 0 { fresh } else { cascading };
            if passed[dial] > 0 {
                self.take_slots(dial, passed[dial], queue);
            }
        }
        if now >= self.dials.next_revolution() {
            self.take_slot(self.dials.beyond(), cascading);
        }
        self.dials.set_hand(now);
    }

    /// Queues the timers of the next `count` slots of a dial, earliest first.
    fn take_slots(&mut self, dial: usize, count: u64, queue: u32) {
        let slots = self.dials.slots_of(dial);
        let next = self.dials.next_slot(dial);
        // `count` is at most the number of slots of the dial.
        let end = next + count as u32;
        let mut from = next;
        while let Some(slot) = self.occupied.first(from, end.min(slots.end)) {
            self.take_slot(slot, queue);
            from = slot + 1;
        }
        if end > slots.end {
            let end = slots.start + (end - slots.end);
            from = slots.start;
            while let Some(slot) = self.occupied.first(from, end) {
                self.take_slot(slot, queue);
                from = slot + 1;
            }
        }
    }

    /// Moves all timers of a slot to the back of a queue.
    pub(super) fn take_slot(&mut self, slot: u32, queue: u32) {
        self.lists.append(slot, queue);
        self.occupied.clear(slot);
    }

    /// Files up to `budget` cascading timers again, alternately from both ends (see [`Walk`]).
    fn cascade(&mut self, budget: usize) {
        let cascading = self.queue(CASCADING);
        for filed in 0..budget {
            let next = match filed % 2 {
                0 => self.lists.first(cascading),
                _ => self.lists.last(cascading),
            };
            let Some(node) = next else {
                return;
            };
            let entry = &self.lists.entries[self.lists.index(node)];
            let (link, deadline) = (entry.link, entry.deadline);
            self.lists.join(link);
            self.file(node, deadline);
            self.cascaded += 1;
        }
    }
}
