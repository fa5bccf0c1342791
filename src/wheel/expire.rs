use std::fmt;
use std::iter::FusedIterator;

use super::in_order::{Course, Found};
use super::serve::CASCADES_PER_TIMER;
use super::timers::FRESH;
use super::{Key, Tick, Wheel};

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
        // What has cascaded so far may be due. It is left to the next call, since this iterator has ended.
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
