//! Moving the hand, and serving what comes up.
//!
//! The hand moves first and the slots that it passed are queued whole, so that a slot with a
//! million timers costs the next slot nothing. Then a bounded batch is served:
//!
//! 1. the *cascading*: timers that came up on a dial above the first are filed again;
//! 2. the *fresh*: what became due since the hand last moved, so that a timer due now does not
//!    wait for a herd that was due before it; and of these the last to be filed and the first in
//!    turn, so that one of a millisecond does not wait for a herd of minutes that is due at the
//!    same tick;
//! 3. the *backlog*, oldest first, with at least half of the budget, so that a steady overload
//!    of fresh timers does not starve the old ones.
//!
//! That is fair, and keeps no order. [`in_order`](super::in_order) has the other way.
//!
//! A list is walked from both its ends in turn where no order is promised: each entry names the
//! next one, so on its way from one end a processor waits for one entry after the other to
//! come from memory; from both ends it waits for two at once. (A million timers at random over a
//! second: 220 ns each from one end, 110 from both; over an hour, with cascades, 540 and 270.)

use super::{BACKLOG, CASCADING, FRESH, Key, Tick, Wheel, dials};

/// What is to become of a timer that has come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is due: its entry is given back and its payload handed out.
    Due,
    /// It is due, but its entry stays, off the dials, until its key is cancelled or reset. For
    /// owners that keep the key and must be sure that nobody else gets its place before.
    Disarm,
    /// It has been postponed to this tick. One that is not after the hand counts as due: a timer
    /// cannot be filed in the slot that is being served.
    Postpone(Tick),
}

/// What one [`Wheel::advance`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Timers that the judge called due, disarmed ones included.
    pub fired: usize,
    /// Timers that were filed again under a later deadline.
    pub postponed: usize,
    /// Whether the budget did not reach, so that `advance` should be called again, with the same
    /// time or a later one.
    pub backlog: bool,
}

/// How many timers may cascade for each that may be served: filing one again costs about a
/// tenth of waking a task.
pub(crate) const CASCADES_PER_FIRE: usize = 8;

/// Where a judge meets a timer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met {
    /// Where the hand stands: a timer that is due no later than this is due.
    pub(crate) hand: Tick,
    /// The walk took the timer from the back of its slot.
    pub(crate) at_back: bool,
}

/// From which end of a queue its timers are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    Front,
    /// From both in turn, from the front first.
    FrontAndBack,
    /// From both in turn, from the back first.
    BackAndFront,
}

impl<T> Wheel<T> {
    /// Moves the hand to `now` and serves what has come up.
    ///
    /// The judge is asked about each timer that has come up, and those that it calls
    /// [`Verdict::Due`] are handed to `due` with their deadlines. They come in no promised order;
    /// [`advance_in_order`](Wheel::advance_in_order) keeps one.
    ///
    /// At most `budget` timers are judged (and at most eight times as many cascaded); the rest
    /// waits for the next call, which [`Progress::backlog`] tells. While there is a backlog, what
    /// has come up last and what has waited longest are served in equal parts. A `now` before
    /// the hand is taken to be the hand: time does not go backwards.
    ///
    /// If `judge` or `due` panics, the wheel stays in order: a timer whose judge panicked is
    /// still there, one that was handed to `due` is gone.
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
        self.cascade(budget.saturating_mul(CASCADES_PER_FIRE));
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
        self.quiet_until = self.next_expiration().unwrap_or(Tick::MAX);
        progress
    }

    /// Takes all payloads out, disarmed ones included, and leaves an empty wheel behind, its hand
    /// where it was. The slab's memory goes with the iterator.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        let empty = Wheel::starting_at(self.resolution, self.now());
        let full = std::mem::replace(
            self,
            Wheel {
                cascaded: self.cascaded,
                // Keys from before the drain must not name what comes after it.
                last_generation: self.last_generation,
                ..empty
            },
        );
        full.lists
            .entries
            .into_iter()
            .map(|(_, entry)| entry.payload)
    }

    /// Whether nothing has come up by `now`; then the hand is moved there.
    #[inline]
    pub(super) fn is_quiet_at(&mut self, now: Tick) -> bool {
        let is_quiet = now < self.quiet_until;
        if is_quiet {
            self.skip_to(now);
            self.quiet_until = self.next_expiration().unwrap_or(Tick::MAX);
        }
        is_quiet
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

    /// Queues what is in the next `count` slots of a dial, earliest first.
    fn take_slots(&mut self, dial: usize, count: u64, queue: u32) {
        let slots = self.dials.slots_of(dial);
        let next = self.dials.next_slot(dial);
        // At most all slots of the dial.
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

    pub(super) fn take_slot(&mut self, slot: u32, queue: u32) {
        self.lists.append(slot, queue);
        self.occupied.clear(slot);
    }

    /// Files up to `budget` cascading timers again, from both ends.
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

    /// Serves up to `budget` timers of a queue, and tells how many it was.
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
            // The entry is still in its list here: a panicking judge loses nothing.
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
                    progress.fired += 1;
                }
                Verdict::Due | Verdict::Postpone(_) => {
                    self.lists.join(link);
                    self.pending -= 1;
                    progress.fired += 1;
                    let entry = self.lists.entries.remove(index);
                    due(deadline, entry.payload);
                }
            }
        }
        budget
    }
}
