//! Moving the hand in order: what is due comes up tick by tick, equal ticks first in, first out.
//!
//! The hand stops at each slot that holds a timer, and the slot is served before the hand moves on. So a timer
//! that its judge postpones to a tick at or before `now` still comes up at that tick, in the same call.
//!
//! # Why equal ticks keep their order
//!
//! If two timers have the same tick, the one that was filed long before may lie on a higher dial than the other. Its
//! slot then cascades into the slot of the other. Two rules keep the order of filing:
//!
//! 1. The hand never passes a slot that cascades. It stops one tick before it, and the timers of the slot are
//!    filed again from there. As the hand moves on, a dial reaches further and never less far. Therefore, of the
//!    timers of one tick, those on a higher dial were filed before those on a lower one. (If the hand stood at the
//!    tick of the cascade itself, a timer due exactly one revolution of the lower dial later would be filed on that
//!    dial, ahead of a timer that was filed before it and still lies above.)
//! 2. Slots that come up together cascade from the lowest dial to the highest, each from its back, and each timer
//!    goes to the *front* of its new slot, ahead of all that were filed after it.
//!
//! A timer that was postponed is filed when its judge says so, behind what is in its new slot.

use super::advance::{CASCADES_PER_TIMER, Met, Walk};
use super::dials;
use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Key, Progress, Tick, Ticks, Verdict, Wheel};

const ONE: Ticks = Ticks::new(1);

/// How far an advance in order has got.
pub(super) struct Course {
    /// The time to advance to.
    pub(super) now: Tick,
    /// How many more timers may cascade.
    cascades: usize,
    /// When what lies beyond the dials is looked at next.
    next_look: Option<Tick>,
    /// When the next slot cascades, or what lies beyond the dials is looked at.
    next_cascade: Option<Tick>,
    /// Whether the two above are known. They change only when timers are filed, since the hand passes no slot
    /// that cascades.
    is_known: bool,
}

impl Course {
    pub(super) fn new(now: Tick, cascades: usize) -> Course {
        Course {
            now,
            cascades,
            next_look: None,
            next_cascade: None,
            is_known: false,
        }
    }
}

/// The result of [`Wheel::move_on`].
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    /// Timers that are due: they are in the queue of the fresh.
    Due,
    /// Nothing more that is due. The hand stands at `now`.
    Nothing,
    /// More to cascade than it may.
    Backlog,
}

impl<T> Wheel<T> {
    /// Advances the hand as [`advance`](Wheel::advance) does, but in order: earlier deadlines first, and equal
    /// ones in the order in which they were filed, by [`insert`](Wheel::insert) or [`reset`](Wheel::reset),
    /// however many calls it takes.
    ///
    /// A timer whose deadline is at or before the hand when it is filed counts as due at the hand.
    ///
    /// At most `budget` timers are judged, and at most eight times as many cascade. If that is not enough,
    /// [`Progress::backlog`] is true, and the hand stays behind `now`, at what is to be served next. So a herd of
    /// timers at one tick delays all timers that are due after it, which it does not with `advance`.
    ///
    /// A timer that the judge postpones to a tick at or before `now` comes up again in the same call, at that tick
    /// and after the timers that are already filed there.
    ///
    /// The order is lost for timers that came up in an `advance` whose budget was too small.
    ///
    /// If `judge` or `due` panics, the wheel stays in a consistent state, as with `advance`.
    ///
    /// O(timers judged + timers cascaded + slots that came up).
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
        let cascades = budget.saturating_mul(CASCADES_PER_TIMER);
        self.advance_slot_by_slot(now, budget, cascades, Walk::Front, judge, due)
    }

    /// [`advance_in_order`](Wheel::advance_in_order), which also says where the judge meets each timer, and files at
    /// most `cascades` timers again.
    ///
    /// With another walk than [`Walk::Front`], what is taken from the back of a slot comes in reverse order. The
    /// caller puts it behind what is taken from the front.
    pub(crate) fn advance_slot_by_slot(
        &mut self,
        now: Tick,
        budget: usize,
        cascades: usize,
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
        let mut course = Course::new(now, cascades);
        let mut progress = Progress::default();
        let mut left = budget;
        progress.backlog = loop {
            let postponed = progress.postponed;
            left -= self.serve(FRESH, walk, left, &mut judge, &mut due, &mut progress);
            if !self.lists.is_empty(fresh) {
                break true;
            }
            course.is_known &= progress.postponed == postponed;
            match self.move_on(&mut course) {
                Found::Due => (),
                Found::Nothing => break false,
                Found::Backlog => break true,
            }
        };
        self.settle_quiet_until();
        progress
    }

    /// Queues what [`advance`](Wheel::advance) left over, so that it is served first.
    pub(super) fn join_queues(&mut self) {
        let (fresh, backlog) = (self.queue(FRESH), self.queue(BACKLOG));
        if !self.lists.is_empty(backlog) {
            self.lists.append(fresh, backlog);
            self.lists.append(backlog, fresh);
        }
    }

    /// Moves the hand to the next tick at which timers are due. To be called when none waits to be served.
    ///
    /// Always inlined: a call costs 7 % of firing a timer.
    #[inline(always)]
    pub(super) fn move_on(&mut self, course: &mut Course) -> Found {
        let fresh = self.queue(FRESH);
        loop {
            if self.is_empty() {
                self.dials.set_hand(course.now);
                return Found::Nothing;
            }
            let cascaded = self.cascade_in_order(course.cascades);
            course.cascades -= cascaded;
            if !self.lists.is_empty(self.queue(CASCADING)) {
                return Found::Backlog;
            }
            let one_on = self.now().saturating_add(ONE);
            if !course.is_known || course.next_look.is_some_and(|look| look <= one_on) {
                course.next_look = self.next_look(course.now);
            }
            if !course.is_known || cascaded > 0 {
                course.next_cascade = self.next_cascade(course.next_look);
            }
            course.is_known = true;
            // Timers that an `advance` left to cascade may be due already.
            if self.lists.is_empty(fresh) && !self.step(course) {
                self.dials.set_hand(course.now);
                return Found::Nothing;
            }
            if !self.lists.is_empty(fresh) {
                return Found::Due;
            }
        }
    }

    /// Moves the hand to the next slot that comes up by `now`, and queues the slot. If the slot cascades, the hand
    /// stops one tick before it. `false` if there is no such slot.
    #[inline]
    fn step(&mut self, course: &Course) -> bool {
        let due = self.next_due().filter(|&due| due <= course.now);
        let first = due.unwrap_or(course.now);
        if let Some(cascade) = course.next_cascade.filter(|&cascade| cascade <= first) {
            self.take_cascading(cascade, course.next_look == Some(cascade));
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
        // One look at the bits, and no look at each dial if all are empty. (280 instructions of an advance with one
        // timer.)
        let (above, end) = (self.dials.slots_due(), self.dials.beyond());
        let any = self.occupied.first(above, end);
        let above = any.and_then(|_| self.earliest_above(None));
        match (above, next_look) {
            (Some(above), Some(look)) => Some(above.min(look)),
            (above, look) => above.or(look),
        }
    }

    /// When the first timer beyond the dials comes within their reach. If that is after `now`, it may be some
    /// revolutions of the last dial too early.
    ///
    /// Computed from the deadlines, so that a jump of centuries is not a look at each revolution of the last dial.
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

    /// Queues what cascades at the tick `at`, which is the next to come up, the highest dial first.
    fn take_cascading(&mut self, at: Tick, is_look: bool) {
        self.dials.set_hand(at.saturating_sub(ONE));
        let cascading = self.queue(CASCADING);
        if is_look {
            // A timer that is too far for the dials even then goes back there.
            self.take_slot(self.dials.beyond(), cascading);
        }
        for dial in (1..dials::COUNT).rev() {
            if self.dials.next_unit(dial) == at {
                self.take_slot(self.dials.next_slot(dial), cascading);
            }
        }
    }

    /// Files up to `budget` cascading timers again, and returns how many it filed.
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
