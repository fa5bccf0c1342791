//! Moving the hand in order: what is due comes up tick by tick, equal ticks first in, first out.
//!
//! The hand stops at each slot that holds a timer, and serves it before it moves on. So a timer that
//! its judge postpones to a tick that has passed as well still comes up at that tick.
//!
//! # Why equal ticks keep their order
//!
//! A timer that was filed early for a tick may lie on a higher dial than one that was filed late for the same
//! tick, and its slot cascades into the very slot where the late one lies. The order of filing is kept
//! by two rules:
//!
//! 1. The hand never passes a slot that cascades: it stops one tick before it, and the slot is filed
//!    again from there. Of the timers of one tick, those on a higher dial were therefore filed before those
//!    on a lower one: a dial reaches further as the hand moves on, and never less far. (From the tick
//!    itself, a timer that is due exactly a full revolution of the lower dial later would already be within its
//!    reach, while one that was filed after it still lies above.)
//! 2. Slots that come up together cascade from the lowest dial to the highest, each from its back, and each timer goes to
//!    the *front* of its new slot: before all that were filed after it.
//!
//! A timer that is reset to later is filed anew by its judge when its old slot comes up, behind what
//! is there.

use super::advance::CASCADES_PER_FIRE;
use super::{
    BACKLOG, CASCADING, FRESH, Key, Met, Progress, Tick, Ticks, Verdict, Walk, Wheel, dials,
};

const ONE: Ticks = Ticks::new(1);

impl<T> Wheel<T> {
    /// As [`advance`](Wheel::advance), but in order: earlier deadlines first, and equal ones in the
    /// order in which they were filed, by [`insert`](Wheel::insert) or [`reset`](Wheel::reset), however many calls it takes.
    ///
    /// At most `budget` timers are judged (and at most eight times as many cascaded). Where the
    /// budget does not reach, the hand stays behind `now`, at what is to be served next, and
    /// [`Progress::backlog`] tells. A herd of timers at one tick holds up all that are due after it, until it
    /// is served; with `advance` it does not.
    ///
    /// A timer that the judge postpones comes up at its new tick, in the same call if that is not after
    /// `now`; its place among others of that tick is behind those that are filed there.
    ///
    /// Calls of `advance` in between, with a budget that did not reach, lose the order of what was due then.
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Verdict, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// for (deadline, name) in [(70_000, "c"), (5, "a"), (70_000, "d"), (6, "b")] {
    ///     wheel.insert(Tick::new(deadline), name);
    /// }
    /// let mut served = Vec::new();
    /// wheel.advance_in_order(
    ///     Tick::new(90_000),
    ///     usize::MAX,
    ///     |_key, _deadline, _payload| Verdict::Due,
    ///     |_deadline, payload| served.push(payload),
    /// );
    /// assert_eq!(served, ["a", "b", "c", "d"]);
    /// ```
    pub fn advance_in_order(
        &mut self,
        now: Tick,
        budget: usize,
        mut judge: impl FnMut(Key, Tick, &mut T) -> Verdict,
        due: impl FnMut(Tick, T),
    ) -> Progress {
        let judge = |_: Met, key, deadline, payload: &mut T| judge(key, deadline, payload);
        let cascades = budget.saturating_mul(CASCADES_PER_FIRE);
        self.advance_slot_by_slot(now, budget, cascades, Walk::Front, judge, due)
    }

    /// [`advance_in_order`](Wheel::advance_in_order), which tells the judge where it meets each timer, and
    /// files at most `cascades` of them again.
    ///
    /// With another walk than from the front, what comes from the back of a slot comes in reverse order,
    /// and belongs behind what comes from its front.
    pub(crate) fn advance_slot_by_slot(
        &mut self,
        now: Tick,
        budget: usize,
        mut cascades: usize,
        walk: Walk,
        mut judge: impl FnMut(Met, Key, Tick, &mut T) -> Verdict,
        mut due: impl FnMut(Tick, T),
    ) -> Progress {
        let now = now.max(self.now());
        if self.is_quiet_at(now) {
            return Progress::default();
        }
        self.join_queues();
        let fresh = self.queue(FRESH);
        let mut progress = Progress::default();
        let mut left = budget;
        // Looked up again only after timers were filed: the hand passes no slot that cascades.
        let (mut next_look, mut next_cascade) = (None, None);
        let mut is_known = false;
        progress.backlog = loop {
            let postponed = progress.postponed;
            left -= self.serve(FRESH, walk, left, &mut judge, &mut due, &mut progress);
            if !self.lists.is_empty(fresh) {
                break true;
            }
            if self.is_empty() {
                self.dials.set_hand(now);
                break false;
            }
            let cascaded = self.cascade_in_order(cascades);
            cascades -= cascaded;
            if !self.lists.is_empty(self.queue(CASCADING)) {
                break true;
            }
            let is_postponed = progress.postponed > postponed || !is_known;
            if is_postponed || next_look.is_some_and(|look| look <= self.now().saturating_add(ONE))
            {
                next_look = self.next_look(now);
            }
            if is_postponed || cascaded > 0 {
                next_cascade = self.next_cascade(next_look);
            }
            is_known = true;
            // What `advance` left to cascade may be due.
            if self.lists.is_empty(fresh) && !self.step(now, next_cascade, next_look) {
                self.dials.set_hand(now);
                break false;
            }
        };
        self.quiet_until = self.next_expiration().unwrap_or(Tick::MAX);
        progress
    }

    /// Has what `advance` left for later be served first.
    fn join_queues(&mut self) {
        let (fresh, backlog) = (self.queue(FRESH), self.queue(BACKLOG));
        if !self.lists.is_empty(backlog) {
            self.lists.append(fresh, backlog);
            self.lists.append(backlog, fresh);
        }
    }

    /// Moves the hand to the next slot that comes up by `now` and queues it; to just before it, if it
    /// cascades. `false` if there is none.
    #[inline]
    fn step(&mut self, now: Tick, next_cascade: Option<Tick>, next_look: Option<Tick>) -> bool {
        let due = self.next_due().filter(|&due| due <= now);
        let first = due.unwrap_or(now);
        if let Some(cascade) = next_cascade.filter(|&cascade| cascade <= first) {
            self.take_cascading(cascade, next_look == Some(cascade));
            return true;
        }
        let Some(due) = due else {
            return false;
        };
        self.dials.set_hand(due);
        self.take_slot(self.dials.slot_of_tick(due), self.queue(FRESH));
        true
    }

    /// When the next slot cascades, or what lies beyond the dials is looked at.
    fn next_cascade(&self, next_look: Option<Tick>) -> Option<Tick> {
        // No dial is asked if there is nothing above the first. (280 instructions of an advance with one timer.)
        let (above, end) = (self.dials.slots_due(), self.dials.beyond());
        let any = self.occupied.first(above, end);
        let above = any.and_then(|_| self.earliest_above(None));
        match (above, next_look) {
            (Some(above), Some(look)) => Some(above.min(look)),
            (above, look) => above.or(look),
        }
    }

    /// When the first of what lies beyond the dials comes within their reach; if that is after `now`, perhaps some
    /// revolutions of the last dial too early.
    ///
    /// By the deadlines themselves, so that a jump of centuries is not a look at each revolution of the last dial.
    fn next_look(&self, now: Tick) -> Option<Tick> {
        let beyond = self.dials.beyond();
        if self.lists.is_empty(beyond) || self.dials.next_revolution() > now {
            return (!self.lists.is_empty(beyond)).then(|| self.dials.next_revolution());
        }
        let entries = &self.lists.entries;
        let deadlines = self.lists.iter(beyond);
        let deadlines = deadlines.map(|node| entries[self.lists.index(node)].deadline);
        deadlines
            .min()
            .map(|earliest| self.dials.revolution_of(earliest))
    }

    /// Queues what cascades at `at`, which is the next to come up, the highest dial first.
    fn take_cascading(&mut self, at: Tick, is_look: bool) {
        self.dials.set_hand(at.saturating_sub(ONE));
        let cascading = self.queue(CASCADING);
        if is_look {
            // What is too far for the dials even then goes back there.
            self.take_slot(self.dials.beyond(), cascading);
        }
        for dial in (1..dials::COUNT).rev() {
            if self.dials.next_unit(dial) == at {
                self.take_slot(self.dials.next_slot(dial), cascading);
            }
        }
    }

    /// Files up to `budget` cascading timers again, and tells how many it was.
    fn cascade_in_order(&mut self, budget: usize) -> usize {
        let cascading = self.queue(CASCADING);
        for filed in 0..budget {
            let Some(node) = self.lists.last(cascading) else {
                return filed;
            };
            let entry = &self.lists.entries[self.lists.index(node)];
            let (link, deadline) = (entry.link, entry.deadline);
            self.lists.join(link);
            let list = self.list_for(deadline);
            self.lists.push_front(list, node);
            self.cascaded += 1;
        }
        budget
    }
}
