//! The data structure: a hierarchical timing wheel, built like a water meter.
//!
//! A [`Wheel`] keeps payloads by deadline. It knows no clock, no thread, no lock and no future:
//! its owner tells it what time it is, in [`Tick`]s, and is told what is due. Everything else in
//! this crate stands on it, and it is public because it serves other uses as well.
//!
//! # The dials
//!
//! | dial | slots | one slot is |
//! |---|---|---|
//! | 0 | as many ticks as make a second | one tick |
//! | 1 | 60 | a second |
//! | 2 | 60 | a minute |
//! | 3 | 24 | an hour |
//! | 4 | 64 | a day |
//! | beyond | 1 | whatever is further away |
//!
//! A full revolution of one dial moves the next by one, and the slot that comes up *cascades*: its
//! timers are filed again, on dials below. So a timer of up to a second never moves, one of up
//! to a minute moves at most once, one of up to an hour at most twice. There is no longest delay.
//! Each slot has a bit that says whether it is occupied, so empty time costs nothing: a jump of a
//! century is a few steps.
//!
//! # Costs
//!
//! | operation | cost |
//! |---|---|
//! | [`insert`](Wheel::insert), [`cancel`](Wheel::cancel), [`reset`](Wheel::reset) | O(1) |
//! | [`advance`](Wheel::advance), [`advance_in_order`](Wheel::advance_in_order) | O(timers handed out + timers cascaded + slots that came up) |
//! | [`next_expiration`](Wheel::next_expiration) | O(dials) |
//! | memory | 24 bytes and the payload a timer, rounded up to the payload's alignment; 8 bytes a slot |
//!
//! A jump of 64 days or more, in order, also looks at what lies beyond the last dial, once for each slot from which
//! timers were filed again.
//!
//! Cancelling gives a timer's entry back at once. The slab of entries grows by an eighth at a time
//! to its peak, and stays there.
//!
//! # Example
//!
//! ```
//! use waterwheel::wheel::{Resolution, Tick, Verdict, Wheel};
//!
//! let mut wheel = Wheel::new(Resolution::MILLISECOND);
//! let tea = wheel.insert(Tick::new(240_000), "tea");
//! let egg = wheel.insert(Tick::new(300_000), "egg");
//! assert_eq!(wheel.cancel(tea), Some("tea"));
//!
//! let mut done = Vec::new();
//! wheel.advance(
//!     Tick::new(300_000),
//!     usize::MAX,
//!     |_key, _deadline, _payload| Verdict::Due,
//!     |_deadline, payload| done.push(payload),
//! );
//! assert_eq!(done, ["egg"]);
//! assert!(wheel.get(egg).is_none());
//! ```
//!
//! The idea is that of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987), with
//! the dials of a clock in place of powers of two.

mod advance;
mod dials;
mod divisor;
mod entry;
mod in_order;
mod invariants;
mod lists;
mod occupancy;
mod resolution;
mod tick;
mod ticks;

use std::fmt;
use std::num::NonZeroU32;

use dials::Dials;
use lists::Lists;
use occupancy::Occupancy;

pub(crate) use advance::{CASCADES_PER_FIRE, Met, Walk};
pub(crate) use divisor::Divisor;

pub use advance::{Progress, Verdict};
pub use entry::Key;
pub use resolution::{InvalidResolution, Resolution};
pub use tick::Tick;
pub use ticks::Ticks;

/// A hierarchical timing wheel of payloads. See the [module](self) for how it works.
///
/// A payload's destructor never runs inside the wheel's own work, so one that panics leaves the
/// wheel in order.
pub struct Wheel<T> {
    resolution: Resolution,
    dials: Dials,
    occupied: Occupancy,
    lists: Lists<T>,
    /// No slot comes up before this tick, and nothing waits to be served if it is after the hand.
    /// Exact after `advance`; a cancel leaves it too early, which costs one needless advance.
    quiet_until: Tick,
    /// Entries that are in a list: those that are pending.
    pending: usize,
    cascaded: u64,
    last_generation: NonZeroU32,
}

/// What has come up, due, since the hand last moved: served first.
const FRESH: u32 = 0;
/// What was due before and has not been served yet: served oldest first.
const BACKLOG: u32 = 1;
/// What came up on a dial above the first and has not been filed again yet.
const CASCADING: u32 = 2;
/// The lists that are no slots, behind those that are.
const QUEUES: u32 = 3;

impl<T> Wheel<T> {
    /// An empty wheel whose hand stands at [`Tick::ZERO`].
    #[must_use]
    pub fn new(resolution: Resolution) -> Wheel<T> {
        Wheel::starting_at(resolution, Tick::ZERO)
    }

    /// An empty wheel whose hand stands at `now`.
    #[must_use]
    pub fn starting_at(resolution: Resolution, now: Tick) -> Wheel<T> {
        let dials = Dials::new(resolution, now);
        let slots = dials.slots();
        Wheel {
            resolution,
            dials,
            occupied: Occupancy::new(slots),
            lists: Lists::new(slots + QUEUES),
            quiet_until: Tick::MAX,
            pending: 0,
            cascaded: 0,
            last_generation: NonZeroU32::MAX,
        }
    }

    /// The length of one tick.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Where the hand stands: the latest time that the wheel was told.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.dials.hand()
    }

    /// How many timers are pending: inserted, and neither cancelled nor handed out nor disarmed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending
    }

    /// Whether no timer is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// How many entries the slab holds before it grows.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.lists.entries.capacity()
    }

    /// The slab, if it holds no entry and has room for more than `kept`: to be dropped where that may
    /// take its time, which is a few milliseconds for a million entries.
    pub(crate) fn take_spare(&mut self, kept: usize) -> Option<impl Sized + use<T>> {
        self.lists.take_spare(kept)
    }

    /// How often a timer was filed again because its slot on a dial above the first, or what lies
    /// beyond the last dial, came up.
    #[must_use]
    pub fn cascaded(&self) -> u64 {
        self.cascaded
    }

    /// Adds a timer that comes up once the wheel advances to `deadline`.
    ///
    /// A deadline at or before [`now`](Wheel::now) comes up at the next advance, whatever time
    /// that is told.
    ///
    /// # Panics
    ///
    /// If the wheel already holds about 2³² timers.
    #[inline]
    pub fn insert(&mut self, deadline: Tick, payload: T) -> Key {
        self.last_generation = self
            .last_generation
            .checked_add(1)
            .unwrap_or(NonZeroU32::MIN);
        let generation = self.last_generation;
        let list = self.list_for(deadline);
        let index = self.lists.insert(list, generation, deadline, payload);
        self.pending += 1;
        Key { index, generation }
    }

    /// Removes a timer and gives its payload back; `None` if the key names none any more.
    ///
    /// A disarmed timer is removed as well.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.take(key).map(|(payload, _)| payload)
    }

    /// [`cancel`](Wheel::cancel), and whether the timer was pending.
    #[inline]
    pub(crate) fn take(&mut self, key: Key) -> Option<(T, bool)> {
        let entry = self.lists.entries.get(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let link = entry.link;
        let was_pending = link.next != self.lists.node(key.index);
        if was_pending {
            let emptied = self.lists.join(link);
            self.one_left(emptied);
        }
        let entry = self.lists.entries.remove(key.index as usize);
        Some((entry.payload, was_pending))
    }

    /// Moves a timer to another deadline, earlier or later, disarmed or not; `false` if the key
    /// names none any more.
    #[inline]
    pub fn reset(&mut self, key: Key, deadline: Tick) -> bool {
        let Some(node) = self.find(key) else {
            return false;
        };
        self.unfile(node);
        self.lists.entries[key.index as usize].deadline = deadline;
        self.file(node, deadline);
        self.pending += 1;
        true
    }

    /// Takes a timer off the dials and keeps its entry: it never comes up, until it is
    /// [`reset`](Wheel::reset). Returns whether it was pending.
    #[inline]
    pub fn disarm(&mut self, key: Key) -> bool {
        match self.find(key) {
            Some(node) => self.unfile(node),
            None => false,
        }
    }

    /// Whether the key names a timer that is pending: not gone, and not disarmed.
    #[inline]
    #[must_use]
    pub fn is_pending(&self, key: Key) -> bool {
        self.find(key)
            .is_some_and(|node| self.lists.is_linked(node))
    }

    /// The deadline that a timer is filed under.
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<Tick> {
        let node = self.find(key)?;
        Some(self.lists.entries[self.lists.index(node)].deadline)
    }

    /// A timer's payload.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let node = self.find(key)?;
        Some(&self.lists.entries[self.lists.index(node)].payload)
    }

    /// A timer's payload, if it is pending.
    #[inline]
    pub(crate) fn pending(&self, key: Key) -> Option<&T> {
        let entry = self.lists.entries.get(key.index as usize)?;
        let is_pending =
            entry.generation == key.generation && entry.link.next != self.lists.node(key.index);
        is_pending.then_some(&entry.payload)
    }

    /// A timer's payload, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let node = self.find(key)?;
        let index = self.lists.index(node);
        Some(&mut self.lists.entries[index].payload)
    }

    /// Every pending timer, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Tick, &T)> {
        self.lists
            .entries
            .iter()
            .filter(|&(index, _)| self.lists.is_linked(self.lists.node(index as u32)))
            .map(|(index, entry)| {
                let key = Key {
                    index: index as u32,
                    generation: entry.generation,
                };
                (key, entry.deadline, &entry.payload)
            })
    }

    /// Moves the hand over empty time, to `now` or to just before the next slot comes up.
    ///
    /// Nothing becomes due by it. It keeps the dials fine: after an idle half hour, a timer of
    /// half a second is then still "less than a second away" and belongs on the first dial.
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

    /// A tick before which [`advance`](Wheel::advance) has nothing to do; [`Tick::MAX`] if it
    /// never will. Cheaper than [`next_expiration`](Wheel::next_expiration), and never later; after a cancel
    /// it may be earlier.
    #[inline]
    #[must_use]
    pub fn quiet_until(&self) -> Tick {
        self.quiet_until
    }

    /// When [`advance`](Wheel::advance) has something to do next; `None` if nothing is pending.
    ///
    /// Never after the earliest deadline. It is exact if that timer is on the first dial and no
    /// slot of a dial above comes up before; else it is when that slot cascades. Always after
    /// [`now`](Wheel::now), unless timers that are due still wait to be served: then it is `now`.
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

    /// When the next slot of the first dial comes up.
    #[inline]
    fn next_due(&self) -> Option<Tick> {
        let (next, end) = (self.dials.next_slot_due(), self.dials.slots_due());
        let distance = match self.occupied.first(next, end) {
            Some(slot) => slot - next,
            None => self.occupied.first(0, next)? + end - next,
        };
        Some(Tick::new(self.now().get() + 1 + u64::from(distance)))
    }

    /// When the next slot of a dial above the first comes up, or `earliest`, if that is before.
    #[inline]
    fn earliest_above(&self, mut earliest: Option<Tick>) -> Option<Tick> {
        for dial in 1..dials::COUNT {
            // Nothing on this dial or above comes up before its hand moves on.
            if earliest.is_some_and(|earliest| earliest <= self.dials.next_unit(dial)) {
                return earliest;
            }
            if let Some(next) = self.next_on(dial) {
                earliest = Some(earliest.map_or(next, |earliest| next.min(earliest)));
            }
        }
        earliest
    }

    /// Whether timers that have come up still wait to be served or filed again, because the
    /// budget of the last [`advance`](Wheel::advance) did not reach.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        [FRESH, BACKLOG, CASCADING]
            .iter()
            .any(|&queue| !self.lists.is_empty(self.queue(queue)))
    }

    fn next_on(&self, dial: usize) -> Option<Tick> {
        let slots = self.dials.slots_of(dial);
        let next = self.dials.next_slot(dial);
        let distance = match self.occupied.first(next, slots.end) {
            Some(slot) => slot - next,
            None => self.occupied.first(slots.start, next)? + slots.end - next - slots.start,
        };
        Some(self.dials.comes_up(dial, u64::from(distance) + 1))
    }

    /// Files an entry that is in no list.
    #[inline]
    fn file(&mut self, node: u32, deadline: Tick) {
        let list = self.list_for(deadline);
        self.lists.push(list, node);
    }

    /// The list that a deadline belongs to, which is about to get an entry.
    #[inline]
    fn list_for(&mut self, deadline: Tick) -> u32 {
        if deadline <= self.now() {
            self.quiet_until = self.now();
            return self.queue(FRESH);
        }
        let place = self.dials.place(deadline);
        self.occupied.set(place.slot);
        self.quiet_until = self.quiet_until.min(place.comes_up);
        place.slot
    }

    /// Takes an entry out of its list, if it is in one; tells whether it was.
    #[inline]
    fn unfile(&mut self, node: u32) -> bool {
        if !self.lists.is_linked(node) {
            return false;
        }
        let emptied = self.lists.unlink(node);
        self.one_left(emptied);
        true
    }

    /// An entry has left its list, which that may have emptied.
    #[inline]
    fn one_left(&mut self, emptied: Option<u32>) {
        if let Some(list) = emptied.filter(|&list| list < self.dials.slots()) {
            self.occupied.clear(list);
        }
        self.pending -= 1;
    }

    #[inline]
    fn find(&self, key: Key) -> Option<u32> {
        let entry = self.lists.entries.get(key.index as usize)?;
        (entry.generation == key.generation).then(|| self.lists.node(key.index))
    }

    /// The number of a list that is no slot.
    #[inline]
    fn queue(&self, queue: u32) -> u32 {
        self.dials.slots() + queue
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("resolution", &self.resolution)
            .field("now", &self.now())
            .field("pending", &self.pending)
            .field("quiet_until", &self.quiet_until)
            .finish_non_exhaustive()
    }
}
