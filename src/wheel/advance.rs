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

use std::fmt;
use std::iter::FusedIterator;

use super::in_order::{Course, Found};
use super::timers::{BACKLOG, CASCADING, FRESH};
use super::{Key, Tick, Ticks, Wheel, dials};

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

/// The answer of the `judge` of [`Wheel::advance`](super::Wheel::advance) for a timer whose slot has come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The timer is due. The wheel frees its entry and hands out its payload.
    Due,
    /// The timer is due, but the wheel keeps its entry and its payload, off the dials, until its key is cancelled
    /// or reset. No other timer gets its [index](super::Key::index) in the meantime.
    Disarm,
    /// The timer's deadline is now this tick. If that is not after the hand, the timer is due, as with
    /// [`Due`](Verdict::Due).
    Postpone(Tick),
}

/// The result of one advance of a [`Wheel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// The number of timers that were due: [`Verdict::Due`] and [`Verdict::Disarm`].
    pub expired: usize,
    /// The number of timers that were filed again under a later deadline.
    pub postponed: usize,
    /// Whether the budget was too small, so that the wheel should be advanced again, to the same time or a later
    /// one.
    pub backlog: bool,
}

impl<T> Wheel<T> {
    /// Removes the timers that are due by `now`, at most `budget`, and returns them one by one: earlier deadlines
    /// first, and equal ones in the order in which they were filed, by [`insert`](Wheel::insert) or
    /// [`reset`](Wheel::reset).
    ///
    /// Each item is a timer's key, which names nothing any more, its deadline and its payload. A timer whose
    /// deadline is at or before the hand when it is filed counts as due at the hand. The order is lost for timers
    /// that came up in an [`advance`](Wheel::advance) whose budget was too small.
    ///
    /// The caller rounds `now` down to a tick. A `now` before the hand counts as the hand: time does not go
    /// backwards.
    ///
    /// # What stays in the wheel
    ///
    /// A timer leaves the wheel only when the iterator returns it. So an iterator that is dropped early, by a
    /// `break` or a panic, loses nothing. Nor does one that is leaked by [`mem::forget`](std::mem::forget).
    ///
    /// The hand moves along with the items. If nothing is due by `now`, this call moves it to `now`. After an
    /// early end, the hand is where the last item was due. Once the iterator has returned `None`, either the hand
    /// is at `now` and nothing more is due, or [`has_backlog`](Wheel::has_backlog) is true because the budget was
    /// too small.
    ///
    /// In every case, there is more to do by `now` exactly if [`next_expiration`](Wheel::next_expiration) is at or
    /// before `now`; then call `expire` again.
    ///
    /// # Cost
    ///
    /// O(timers returned + timers cascaded + slots that came up). At most eight times `budget` timers cascade, so
    /// with a small budget the iterator may end early and leave a backlog. A budget of `usize::MAX` means no
    /// limit.
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// for (deadline, name) in [(70_000, "c"), (5, "a"), (70_000, "d"), (6, "b")] {
    ///     wheel.insert(Tick::new(deadline), name);
    /// }
    /// let now = Tick::new(90_000);
    /// let first: Vec<_> = wheel.expire(now, 3).map(|(_key, _deadline, name)| name).collect();
    /// assert_eq!(first, ["a", "b", "c"]);
    /// assert!(wheel.has_backlog());
    ///
    /// // A payload can go back into the wheel once the iterator is gone.
    /// let again = wheel.expire(now, 3).next();
    /// assert_eq!(again.map(|(_key, deadline, name)| (deadline, name)), Some((Tick::new(70_000), "d")));
    /// wheel.insert(Tick::new(95_000), "d");
    /// assert_eq!(wheel.expire(Tick::new(95_000), usize::MAX).count(), 1);
    /// ```
    pub fn expire(&mut self, now: Tick, budget: usize) -> Expire<'_, T> {
        let now = now.max(self.now());
        let is_over = self.is_quiet_at(now);
        if !is_over {
            self.join_queues();
        }
        Expire {
            course: Course::new(now, budget.saturating_mul(CASCADES_PER_TIMER)),
            left: budget,
            fresh: self.queue(FRESH),
            is_over,
            wheel: self,
        }
    }

    /// The first timer of [`expire`](Wheel::expire). Leaves the next expiration for when it is asked for, so that a loop of
    /// these costs less.
    #[inline]
    pub(crate) fn expire_one(&mut self, now: Tick, budget: usize) -> Option<(Key, Tick, T)> {
        self.join_queues();
        if let Some(node) = self.lists.first(self.queue(FRESH)) {
            return Some(self.remove_due(node));
        }
        let mut due = self.expire(now, budget);
        let first = due.next();
        if first.is_some() {
            // `quiet_until` is too early then, which the wheel allows.
            std::mem::forget(due);
        }
        first
    }
}

/// An iterator over the timers that are due. Returned by [`Wheel::expire`].
///
/// Timers that it has not returned stay in the wheel.
#[must_use = "timers expire only as the iterator returns them"]
pub struct Expire<'a, T> {
    wheel: &'a mut Wheel<T>,
    course: Course,
    /// How many more timers it may return.
    left: usize,
    /// The list of the timers that are due at the hand.
    fresh: u32,
    /// Nothing more is due by `now`, and the wheel knows when something is.
    is_over: bool,
}

impl<T> Expire<'_, T> {
    /// Moves the hand to the next tick at which timers are due. `false` if there is none or the cascades do not reach
    /// it.
    #[inline(never)]
    fn move_on(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        let found = self.wheel.move_on(&mut self.course);
        if found == Found::Due {
            return true;
        }
        // Not left to `drop`: what is to cascade is a backlog at the hand, one tick before it was expected.
        self.wheel.settle_quiet_until();
        self.is_over = found == Found::Nothing;
        // The timers that have cascaded so far may be due. They are left to the next call, since this iterator has ended.
        self.left = 0;
        false
    }
}

impl<T> Iterator for Expire<'_, T> {
    type Item = (Key, Tick, T);

    #[inline]
    fn next(&mut self) -> Option<(Key, Tick, T)> {
        let node = match self.wheel.lists.first(self.fresh) {
            Some(node) => node,
            // Without budget left, too, so that `has_backlog` says whether more is due.
            None if self.move_on() => self.wheel.lists.first(self.fresh)?,
            None => return None,
        };
        self.left = self.left.checked_sub(1)?;
        Some(self.wheel.remove_due(node))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left.min(self.wheel.len())))
    }
}

impl<T> FusedIterator for Expire<'_, T> {}

impl<T> Drop for Expire<'_, T> {
    /// Computes the next expiration once for all items. Until then, and if the iterator is leaked,
    /// `quiet_until` is too early, which the wheel allows.
    fn drop(&mut self) {
        if !self.is_over {
            self.wheel.settle_quiet_until();
        }
    }
}

impl<T> fmt::Debug for Expire<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expire")
            .field("now", &self.course.now)
            .field("left", &self.left)
            .field("wheel", &self.wheel)
            .finish_non_exhaustive()
    }
}

impl<T> Wheel<T> {
    /// Removes a timer that is in a queue.
    #[inline]
    fn remove_due(&mut self, node: u32) -> (Key, Tick, T) {
        let index = self.lists.index(node);
        let entry = self.lists.entries.remove(index);
        self.lists.join(entry.link);
        self.pending -= 1;
        let key = Key {
            index: index as u32,
            generation: entry.generation,
        };
        (key, entry.deadline, entry.payload)
    }
}

// Serving a queue: asking the judge about each timer, and doing what it says.

/// How many timers may cascade for each timer that may be served. Filing one again costs about a
/// tenth of waking a task.
pub(crate) const CASCADES_PER_TIMER: usize = 8;

/// Where a judge meets a timer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met {
    /// Where the hand stands. A timer whose deadline is at or before it is due.
    pub(crate) hand: Tick,
    /// Whether the walk took the timer from the back of its queue.
    pub(crate) at_back: bool,
}

/// From which end of a queue the timers are taken.
///
/// From both ends is faster where no order is promised. Each entry names the next one, so on the way from
/// one end a processor waits for one entry after the other to come from memory; from both ends it waits for
/// two at once. (`benches/LOG.md` has the figures.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    Front,
    /// Alternately from both ends, from the front first.
    FrontAndBack,
    /// Alternately from both ends, from the back first.
    BackAndFront,
}

impl<T> Wheel<T> {
    /// Serves up to `budget` timers of a queue, and returns how many it served.
    #[inline]
    pub(super) fn serve(
        &mut self,
        queue: u32,
        walk: Walk,
        budget: usize,
        judge: &mut impl FnMut(Met, Key, Tick, &mut T) -> Verdict,
        due: &mut impl FnMut(Tick, T),
        progress: &mut Progress,
    ) -> usize {
        let list = self.queue(queue);
        for served in 0..budget {
            let at_back = match walk {
                Walk::Front => false,
                Walk::FrontAndBack => served % 2 == 1,
                Walk::BackAndFront => served % 2 == 0,
            };
            let next = match at_back {
                true => self.lists.last(list),
                false => self.lists.first(list),
            };
            let Some(node) = next else {
                return served;
            };
            let index = self.lists.index(node);
            let entry = &mut self.lists.entries[index];
            let key = Key {
                index: index as u32,
                generation: entry.generation,
            };
            let deadline = entry.deadline;
            let link = entry.link;
            // The entry is still in its list here, so a judge that panics loses nothing.
            let hand = self.dials.hand();
            let verdict = judge(Met { hand, at_back }, key, deadline, &mut entry.payload);
            match verdict {
                Verdict::Postpone(later) if later > self.dials.hand() => {
                    entry.deadline = later;
                    self.lists.join(link);
                    self.file(node, later);
                    progress.postponed += 1;
                }
                Verdict::Disarm => {
                    self.unfile(node);
                    progress.expired += 1;
                }
                Verdict::Due | Verdict::Postpone(_) => {
                    self.lists.join(link);
                    self.pending -= 1;
                    progress.expired += 1;
                    let entry = self.lists.entries.remove(index);
                    due(deadline, entry.payload);
                }
            }
        }
        budget
    }
}

// When something comes up next.

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
