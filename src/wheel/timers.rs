use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

use slab::Slab;

use super::dials::Dials;
use super::{Resolution, Tick};

/// A hierarchical timing wheel: timers with a payload each, kept by deadline.
///
/// See the [module](super) for how it works, what it costs and how to use it. In short:
///
/// - [`insert`](Wheel::insert), [`cancel`](Wheel::cancel), [`reset`](Wheel::reset) and [`disarm`](Wheel::disarm)
///   work on one timer. All are O(1).
/// - [`expire`](Wheel::expire) advances the time and returns what is due, in order.
///   [`advance_in_order`](Wheel::advance_in_order) and [`advance`](Wheel::advance) do so with a callback that may
///   postpone a timer or keep its entry.
/// - [`next_expiration`](Wheel::next_expiration) says when to do that next. [`peek`](Wheel::peek) shows the timer
///   that is due first.
///
/// All times are [`Tick`]s, whose length is the wheel's [`Resolution`]. The caller converts its own time: it
/// rounds a deadline up to a tick, and the current time down, so that no timer expires early.
///
/// # Panics in the caller's code
///
/// The wheel never runs a payload's destructor in the middle of its own work, so a destructor that panics leaves
/// the wheel in a consistent state. So does a callback that panics.
pub struct Wheel<T> {
    pub(super) resolution: Resolution,
    pub(super) dials: Dials,
    pub(super) occupied: Occupancy,
    pub(super) lists: Lists<T>,
    /// No slot comes up before this tick, and if it is after the hand, no timer waits to be served.
    ///
    /// It is exact after an advance. It is too early after a cancel, or after an [`Expire`](super::Expire) that
    /// was forgotten. That costs one needless advance.
    pub(super) quiet_until: Tick,
    /// The number of entries that are in a list. Those are the pending timers.
    pub(super) pending: usize,
    pub(super) cascaded: u64,
    pub(super) last_generation: NonZeroU32,
}

/// The queue of what became due when the hand last moved. It is served first.
pub(super) const FRESH: u32 = 0;
/// The queue of what was due before that and has not been served yet, oldest first.
pub(super) const BACKLOG: u32 = 1;
/// The queue of what came up on a dial above the first and has not been filed again yet.
pub(super) const CASCADING: u32 = 2;
/// The number of lists that are queues. They come after the lists that are slots.
pub(super) const QUEUES: u32 = 3;

impl<T> Wheel<T> {
    /// Creates an empty wheel whose hand stands at [`Tick::ZERO`].
    ///
    /// This allocates the slots: the finer the resolution, the more. See
    /// [`Builder::resolution`](crate::Builder::resolution) for their size.
    #[must_use]
    pub fn new(resolution: Resolution) -> Wheel<T> {
        Wheel::starting_at(resolution, Tick::ZERO)
    }

    /// Creates an empty wheel whose hand stands at `now`.
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

    /// Returns the length of one tick.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Returns where the hand stands.
    ///
    /// That is the latest time that was passed to the wheel, or an earlier one as long as timers wait to be served
    /// ([`advance_in_order`](Wheel::advance_in_order), [`expire`](Wheel::expire)) or if
    /// [`skip_to`](Wheel::skip_to) met a slot that holds a timer.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.dials.hand()
    }

    /// Returns the number of pending timers: those that were inserted, and neither cancelled nor handed out nor
    /// disarmed since.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending
    }

    /// Returns whether no timer is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Returns how many timers the wheel can hold without allocating. Disarmed timers count.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.lists.entries.capacity()
    }

    /// Takes the slab, if it is empty and has room for more than `kept` entries.
    ///
    /// Freeing it takes a few milliseconds for a million entries, so the caller drops it where that does no harm.
    pub(crate) fn take_spare(&mut self, kept: usize) -> Option<impl Sized + use<T>> {
        self.lists.take_spare(kept)
    }

    /// Returns how often a timer was filed again because its slot came up on a dial above the first, or because
    /// the wheel visited the timers beyond the last dial.
    #[must_use]
    pub fn cascaded(&self) -> u64 {
        self.cascaded
    }

    /// Inserts a timer that is due once the wheel advances to `deadline`. O(1).
    ///
    /// A deadline at or before [`now`](Wheel::now) is due at the next advance, whatever time that is given.
    ///
    /// # Panics
    ///
    /// Panics if the wheel already holds about 2³² timers.
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

    /// Removes a timer, pending or disarmed, and returns its payload. O(1).
    ///
    /// Returns `None` if the timer is already gone. The entry is free for the next insertion at once.
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

    /// Moves a timer to another deadline, earlier or later. O(1).
    ///
    /// A disarmed timer is pending again. The timer comes after the timers that are already at its new tick.
    /// Returns `false` if the timer is gone.
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

    /// Takes a timer off the dials and keeps its entry. O(1).
    ///
    /// The timer is not due until it is [`reset`](Wheel::reset), and keeps its payload. Returns whether the timer
    /// was pending.
    #[inline]
    pub fn disarm(&mut self, key: Key) -> bool {
        match self.find(key) {
            Some(node) => self.unfile(node),
            None => false,
        }
    }

    /// Returns whether the timer is pending: neither gone nor disarmed.
    #[inline]
    #[must_use]
    pub fn is_pending(&self, key: Key) -> bool {
        self.find(key)
            .is_some_and(|node| self.lists.is_linked(node))
    }

    /// Returns the deadline of a timer, or `None` if it is gone. A disarmed timer keeps its last deadline.
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<Tick> {
        let node = self.find(key)?;
        Some(self.lists.entries[self.lists.index(node)].deadline)
    }

    /// Returns a reference to the payload of a timer, or `None` if it is gone.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let node = self.find(key)?;
        Some(&self.lists.entries[self.lists.index(node)].payload)
    }

    /// The payload of a timer, if the timer is pending.
    #[inline]
    pub(crate) fn pending(&self, key: Key) -> Option<&T> {
        let entry = self.lists.entries.get(key.index as usize)?;
        let is_pending =
            entry.generation == key.generation && entry.link.next != self.lists.node(key.index);
        is_pending.then_some(&entry.payload)
    }

    /// Returns a mutable reference to the payload of a timer, or `None` if it is gone.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let node = self.find(key)?;
        let index = self.lists.index(node);
        Some(&mut self.lists.entries[index].payload)
    }

    /// Returns all pending timers with their deadlines, in no particular order.
    ///
    /// O([`capacity`](Wheel::capacity)) for the whole iteration.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Tick, &T)> {
        self.iter_all()
            .filter(|(key, ..)| self.lists.is_linked(self.lists.node(key.index)))
    }

    /// Returns all timers with their deadlines, including [disarmed](Wheel::disarm) ones, in no particular order.
    ///
    /// A disarmed timer keeps its last deadline. O([`capacity`](Wheel::capacity)) for the whole iteration.
    pub fn iter_all(&self) -> impl Iterator<Item = (Key, Tick, &T)> {
        self.lists.entries.iter().map(|(index, entry)| {
            let key = Key {
                index: index as u32,
                generation: entry.generation,
            };
            (key, entry.deadline, &entry.payload)
        })
    }

    /// Returns the timers in a range of places in the slab, pending or disarmed, with their deadlines. Places are
    /// less than [`capacity`](Wheel::capacity).
    ///
    /// A timer stays in its place, so all timers can be listed in portions, with a lock released in between: a
    /// timer that is there from the first portion to the last is listed once, whatever else happens.
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// for n in 0..1_000 {
    ///     wheel.insert(Tick::new(n), n);
    /// }
    /// let (mut listed, mut first) = (0, 0);
    /// while first < wheel.capacity() {
    ///     listed += wheel.iter_places(first..first + 256).count();
    ///     first += 256;
    /// }
    /// assert_eq!(listed, 1_000);
    /// ```
    pub fn iter_places(&self, places: Range<usize>) -> impl Iterator<Item = (Key, Tick, &T)> {
        let end = places.end.min(self.capacity());
        (places.start..end).filter_map(|place| {
            let entry = self.lists.entries.get(place)?;
            let key = Key {
                index: place as u32,
                generation: entry.generation,
            };
            Some((key, entry.deadline, &entry.payload))
        })
    }

    /// Removes all timers, including disarmed ones, and returns their payloads.
    ///
    /// The wheel is empty at once, and its hand stays where it was. The iterator owns the slab and frees it.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        let empty = Wheel::starting_at(self.resolution, self.now());
        let full = std::mem::replace(
            self,
            Wheel {
                cascaded: self.cascaded,
                // A key from before the drain must not name a timer from after it.
                last_generation: self.last_generation,
                ..empty
            },
        );
        full.lists
            .entries
            .into_iter()
            .map(|(_, entry)| entry.payload)
    }

    /// Files an entry that is in no list.
    #[inline]
    pub(super) fn file(&mut self, node: u32, deadline: Tick) {
        let list = self.list_for(deadline);
        self.lists.push(list, node);
    }

    /// The list that a deadline belongs to. The caller puts an entry there.
    #[inline]
    pub(super) fn list_for(&mut self, deadline: Tick) -> u32 {
        if deadline <= self.now() {
            self.quiet_until = self.now();
            return self.queue(FRESH);
        }
        let place = self.dials.place(deadline);
        self.occupied.set(place.slot);
        self.quiet_until = self.quiet_until.min(place.comes_up);
        place.slot
    }

    /// Takes an entry out of its list. Returns whether it was in one.
    #[inline]
    pub(super) fn unfile(&mut self, node: u32) -> bool {
        if !self.lists.is_linked(node) {
            return false;
        }
        let emptied = self.lists.unlink(node);
        self.one_left(emptied);
        true
    }

    /// Counts an entry that has left its list, and clears the slot's bit if the list is empty now.
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

    /// The list that is this queue.
    #[inline]
    pub(super) fn queue(&self, queue: u32) -> u32 {
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

/// Identifies a timer of a [`Wheel`], from its insertion until it is cancelled or returned.
///
/// A key consists of the index of the timer's entry and a generation. No two of the wheel's last 2³² − 1
/// insertions have the same generation. So the key of a timer that is gone does not name the next timer at the
/// same index: all methods treat it as a key without a timer. A key has no meaning for another wheel.
///
/// ```
/// use waterwheel::wheel::{Resolution, Tick, Wheel};
///
/// let mut wheel = Wheel::new(Resolution::MILLISECOND);
/// let first = wheel.insert(Tick::new(10), "first");
/// wheel.cancel(first);
/// let second = wheel.insert(Tick::new(20), "second");
/// assert_eq!(first.index(), second.index());
/// assert_eq!((wheel.get(first), wheel.get(second)), (None, Some(&"second")));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub(super) index: u32,
    pub(super) generation: NonZeroU32,
}

impl Key {
    /// Returns the index of the timer's entry: small, dense, and reused once the timer is gone.
    ///
    /// Owners can store more about a timer in a table of their own at this index.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The two halves of a key, for an owner that packs them with other data.
    pub(crate) fn into_parts(self) -> (u32, NonZeroU32) {
        (self.index, self.generation)
    }

    pub(crate) fn from_parts(index: u32, generation: NonZeroU32) -> Key {
        Key { index, generation }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}#{})", self.index, self.generation)
    }
}

/// An entry of the slab: one timer.
///
/// 40 bytes with a payload of 16. The slab keeps its own flag in the value that the generation never
/// has, zero.
pub(super) struct Entry<T> {
    pub(super) link: Link,
    pub(super) generation: NonZeroU32,
    pub(super) deadline: Tick,
    pub(super) payload: T,
}

// The entries of a wheel, and one list of them for each slot and each queue. The lists are circular and doubly linked, by 32-bit node numbers. A node below the number of lists
// is the end of the list of that number. A node from there on is an entry of the slab.
//
// Each list is a circle through its own end, and an entry that is in no list links to itself. Therefore an
// entry can leave its list without knowing which list that is, and a whole list moves behind another in
// constant time.

pub(super) struct Lists<T> {
    ends: Box<[Link]>,
    pub(super) entries: Slab<Entry<T>>,
}

impl<T> Lists<T> {
    pub(super) fn new(lists: u32) -> Lists<T> {
        let ends = (0..lists).map(|list| Link {
            next: list,
            previous: list,
        });
        Lists {
            ends: ends.collect(),
            entries: Slab::new(),
        }
    }

    /// The node of the entry at this slab index.
    #[inline]
    pub(super) fn node(&self, index: u32) -> u32 {
        index + self.ends.len() as u32
    }

    /// The slab index of a node that is an entry.
    #[inline]
    pub(super) fn index(&self, node: u32) -> usize {
        node as usize - self.ends.len()
    }

    /// The first entry of a list.
    #[inline]
    pub(super) fn first(&self, list: u32) -> Option<u32> {
        let first = self.ends[list as usize].next;
        (first != list).then_some(first)
    }

    /// The last entry of a list.
    #[inline]
    pub(super) fn last(&self, list: u32) -> Option<u32> {
        let last = self.ends[list as usize].previous;
        (last != list).then_some(last)
    }

    pub(super) fn is_empty(&self, list: u32) -> bool {
        self.ends[list as usize].next == list
    }

    /// Makes an entry at the back of a list, and returns its slab index.
    ///
    /// # Panics
    ///
    /// If its node number does not fit in 32 bits.
    #[inline]
    pub(super) fn insert(
        &mut self,
        list: u32,
        generation: NonZeroU32,
        deadline: Tick,
        payload: T,
    ) -> u32 {
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        let place = self.entries.vacant_entry();
        let index = place.key();
        let Ok(node) = u32::try_from(index + self.ends.len()) else {
            panic_full()
        };
        let end = &mut self.ends[list as usize];
        let last = end.previous;
        place.insert(Entry {
            link: Link {
                next: list,
                previous: last,
            },
            generation,
            deadline,
            payload,
        });
        end.previous = node;
        self.link(last).next = node;
        index as u32
    }

    /// Makes room for an eighth more, so that at most an eighth of the memory is unused at a peak.
    ///
    /// Doubling is no faster where the allocator grows a large block in place, as glibc's does. Where the allocator copies, each
    /// entry is copied about eight times on the way to a new peak, not once.
    #[cold]
    fn grow(&mut self) {
        let more = (self.entries.capacity() / 8).max(64);
        self.entries.reserve_exact(more);
    }

    /// Makes room for this many more entries, or at least an eighth of the current ones, as [`grow`](Lists::grow) does.
    #[track_caller]
    pub(super) fn reserve(&mut self, additional: usize) {
        let (len, capacity) = (self.entries.len(), self.entries.capacity());
        if capacity - len >= additional {
            return;
        }
        Lists::<T>::assert_room(self.ends.len(), len.saturating_add(additional));
        let eighth = (capacity - len).saturating_add(capacity / 8);
        self.entries.reserve_exact(additional.max(eighth));
    }

    /// Panics if this many entries are more than this many lists leave numbers for, or more than fit in memory.
    #[track_caller]
    pub(super) fn assert_room(lists: usize, entries: usize) {
        if entries > u32::MAX as usize - lists {
            panic_full();
        }
        // The slab keeps its own flag in the entry.
        let bytes = entries.checked_mul(size_of::<Entry<T>>());
        assert!(
            bytes.is_some_and(|bytes| bytes <= isize::MAX as usize),
            "room for {entries} timers takes more than `isize::MAX` bytes: ask for less, or box the payload"
        );
    }

    /// Makes all lists empty. The caller takes the entries.
    pub(super) fn empty(&mut self) {
        for (list, end) in (0..).zip(&mut self.ends) {
            *end = Link {
                next: list,
                previous: list,
            };
        }
    }

    /// Takes the slab, if it is empty and has room for more than `kept` entries.
    pub(super) fn take_spare(&mut self, kept: usize) -> Option<Slab<Entry<T>>> {
        let is_spare = self.entries.is_empty() && self.entries.capacity() > kept;
        is_spare.then(|| std::mem::take(&mut self.entries))
    }

    /// Puts an entry that is in no list at the back of a list.
    #[inline]
    pub(super) fn push(&mut self, list: u32, node: u32) {
        let last = self.ends[list as usize].previous;
        *self.link(node) = Link {
            next: list,
            previous: last,
        };
        self.link(last).next = node;
        self.ends[list as usize].previous = node;
    }

    /// Puts an entry that is in no list at the front of a list.
    #[inline]
    pub(super) fn push_front(&mut self, list: u32, node: u32) {
        let first = self.ends[list as usize].next;
        *self.link(node) = Link {
            next: first,
            previous: list,
        };
        self.link(first).previous = node;
        self.ends[list as usize].next = node;
    }

    /// Takes an entry out of its list, if it is in one. Returns the list if that left it empty.
    #[inline]
    pub(super) fn unlink(&mut self, node: u32) -> Option<u32> {
        let link = self.link(node);
        let neighbours = *link;
        *link = Link {
            next: node,
            previous: node,
        };
        self.join(neighbours)
    }

    /// Links the two neighbours of an entry that leaves its list. Returns the list if that left it empty.
    ///
    /// The entry's own link stays as it is: the caller frees the entry, or files it again.
    #[inline]
    pub(super) fn join(&mut self, Link { next, previous }: Link) -> Option<u32> {
        self.link(next).previous = previous;
        self.link(previous).next = next;
        // A node can have the same neighbour on both sides only if that is the end of the list.
        debug_assert!(next != previous || (next as usize) < self.ends.len());
        (next == previous).then_some(next)
    }

    /// Moves all entries of a list to the back of another.
    pub(super) fn append(&mut self, from: u32, to: u32) {
        let Link {
            next: first,
            previous: last,
        } = self.ends[from as usize];
        if first == from {
            return;
        }
        let back = self.ends[to as usize].previous;
        self.link(first).previous = back;
        self.link(back).next = first;
        self.link(last).next = to;
        self.ends[to as usize].previous = last;
        self.ends[from as usize] = Link {
            next: from,
            previous: from,
        };
    }

    /// Whether an entry is in a list.
    #[inline]
    pub(super) fn is_linked(&self, node: u32) -> bool {
        self.entries[self.index(node)].link.next != node
    }

    /// The entries of a list, front to back.
    pub(super) fn iter(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = list;
        std::iter::from_fn(move || {
            let next = self.link_of(at).next;
            assert_eq!(self.link_of(next).previous, at, "a list is torn at {next}");
            at = next;
            (at != list).then_some(at)
        })
    }

    fn link_of(&self, node: u32) -> Link {
        match self.ends.get(node as usize) {
            Some(end) => *end,
            None => self.entries[self.index(node)].link,
        }
    }

    #[inline]
    fn link(&mut self, node: u32) -> &mut Link {
        let ends = self.ends.len();
        match self.ends.get_mut(node as usize) {
            Some(end) => end,
            None => &mut self.entries[node as usize - ends].link,
        }
    }
}

#[cold]
#[track_caller]
fn panic_full() -> ! {
    panic!(
        "the wheel or `DelayQueue` is full: it can hold only fewer than 2^32 entries; spread them over several"
    );
}

/// The two neighbours of an entry, or of a list's end.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) next: u32,
    pub(super) previous: u32,
}

// Which slots hold a timer: one bit for each slot, and one for each word of these bits. A search skips 4096 empty
// slots at a step.

pub(super) struct Occupancy {
    words: Box<[u64]>,
    /// One bit for each of `words`, set if that is not zero.
    summary: Box<[u64]>,
}

impl Occupancy {
    pub(super) fn new(slots: u32) -> Occupancy {
        let words = slots.div_ceil(u64::BITS) as usize;
        let summary = words.div_ceil(u64::BITS as usize);
        Occupancy {
            words: vec![0; words].into(),
            summary: vec![0; summary].into(),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, slot: u32) {
        let (word, bit) = split(slot as usize);
        self.words[word] |= bit;
        let (summary, bit) = split(word);
        self.summary[summary] |= bit;
    }

    #[inline]
    pub(super) fn clear(&mut self, slot: u32) {
        let (word, bit) = split(slot as usize);
        self.words[word] &= !bit;
        if self.words[word] == 0 {
            let (summary, bit) = split(word);
            self.summary[summary] &= !bit;
        }
    }

    pub(super) fn clear_all(&mut self) {
        self.words.fill(0);
        self.summary.fill(0);
    }

    pub(super) fn contains(&self, slot: u32) -> bool {
        let (word, bit) = split(slot as usize);
        self.words[word] & bit != 0
    }

    /// The first occupied slot from `slot` on, and before `end`.
    pub(super) fn first(&self, slot: u32, end: u32) -> Option<u32> {
        let slot = slot as usize;
        let from = slot / BITS;
        let found = match self.words.get(from)? >> (slot % BITS) {
            0 => self.first_beyond_word(from + 1)?,
            bits => slot + bits.trailing_zeros() as usize,
        };
        let found = found as u32;
        (found < end).then_some(found)
    }

    /// All bits, in words.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    fn first_beyond_word(&self, word: usize) -> Option<usize> {
        let mut index = word / BITS;
        let mut bits = self.summary.get(index)? >> (word % BITS) << (word % BITS);
        while bits == 0 {
            index += 1;
            bits = *self.summary.get(index)?;
        }
        let word = index * BITS + bits.trailing_zeros() as usize;
        Some(word * BITS + self.words[word].trailing_zeros() as usize)
    }
}

const BITS: usize = u64::BITS as usize;

#[inline]
fn split(index: usize) -> (usize, u64) {
    (index / BITS, 1 << (index % BITS))
}

#[cfg(test)]
mod key_tests {
    use std::num::NonZeroU32;

    use super::Key;
    use crate::wheel::{Resolution, Tick, Verdict, Wheel};

    #[test]
    fn an_optional_key_takes_8_bytes() {
        assert_eq!(size_of::<Option<Key>>(), 8);
    }

    // Generations wrap after four thousand million insertions, too many for a test.
    #[test]
    fn keys_before_and_after_the_generations_wrap_stay_apart() {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        let stale = wheel.insert(Tick::new(1), 0);
        assert_eq!(wheel.cancel(stale), Some(0));
        wheel.last_generation = NonZeroU32::new(u32::MAX - 2).unwrap();
        let keys: Vec<Key> = (0..6).map(|n| wheel.insert(Tick::new(10 + n), n)).collect();
        let generations: Vec<u32> = keys.iter().map(|key| key.generation.get()).collect();
        assert_eq!(generations, [u32::MAX - 1, u32::MAX, 1, 2, 3, 4]);
        for (n, &key) in keys.iter().enumerate() {
            assert_eq!(wheel.get(key), Some(&(n as u64)));
            let other = Key {
                generation: keys[(n + 1) % 6].generation,
                ..key
            };
            assert_eq!(wheel.get(other), None, "another timer's generation");
        }
        // The index is used again, with a generation from after the wrap.
        assert_eq!(wheel.cancel(keys[1]), Some(1));
        let again = wheel.insert(Tick::new(30), 30);
        assert_eq!(again.index(), keys[1].index());
        assert!(!wheel.reset(keys[1], Tick::new(1)) && wheel.cancel(keys[1]).is_none());
        assert!(wheel.reset(keys[0], Tick::new(20)) && wheel.disarm(keys[2]));
        wheel.check_invariants();
        let mut handed = Vec::new();
        let due = |_, payload| handed.push(payload);
        wheel.advance(Tick::new(20), usize::MAX, |_, _, _| Verdict::Due, due);
        handed.sort_unstable();
        assert_eq!(handed, [0, 3, 4, 5]);
        assert_eq!((wheel.len(), wheel.cancel(keys[2])), (1, Some(2)));
        // A drain does not start the generations anew.
        assert_eq!(wheel.drain().count(), 1);
        assert_eq!(wheel.insert(Tick::new(40), 40).generation.get(), 6);
    }
}

#[cfg(test)]
mod entry_tests {
    use std::mem::size_of;
    use std::task::Waker;

    use super::Entry;

    #[test]
    fn an_entry_of_a_waker_takes_40_bytes_in_the_slab() {
        assert_eq!(size_of::<Option<Entry<Option<Waker>>>>(), 40);
    }
}

#[cfg(test)]
mod list_tests {
    use crate::wheel::{Resolution, Tick, Wheel};

    // A fine wheel has ten thousand lists.
    #[test]
    fn clearing_a_wheel_without_timers_rewrites_no_list() {
        let mut wheel = Wheel::new(Resolution::FINEST);
        let disarmed = wheel.insert(Tick::new(1), ());
        assert!(wheel.disarm(disarmed));
        // A mark that only a rewritten list loses: nothing reads the back of an empty one here.
        wheel.lists.ends[0].previous = 7;
        wheel.clear();
        wheel.clear();
        assert_eq!(wheel.lists.ends[0].previous, 7);
        assert!(wheel.get(disarmed).is_none());
        wheel.insert(Tick::new(1), ());
        wheel.clear();
        assert_eq!(wheel.lists.ends[0].previous, 0);
        wheel.check_invariants();
    }
}

#[cfg(test)]
mod occupancy_tests {
    use super::Occupancy;

    #[test]
    fn finds_each_bit_from_every_start() {
        for slots in [1, 63, 64, 65, 1_209, 10_209] {
            let mut occupancy = Occupancy::new(slots);
            assert_eq!(occupancy.first(0, slots), None);
            for slot in [0, 1, 62, 63, 64, 65, 4_095, 4_096, slots - 1] {
                if slot >= slots {
                    continue;
                }
                occupancy.set(slot);
                assert!(occupancy.contains(slot));
                assert_eq!(occupancy.first(0, slots), Some(slot));
                assert_eq!(occupancy.first(slot, slots), Some(slot));
                assert_eq!(occupancy.first(slot / 2, slots), Some(slot));
                assert_eq!(occupancy.first(slot + 1, slots), None);
                assert_eq!(occupancy.first(0, slot), None);
                occupancy.clear(slot);
                assert!(!occupancy.contains(slot));
            }
        }
    }
}
