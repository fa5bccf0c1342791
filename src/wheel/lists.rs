//! The entries of a wheel, and one list of them for each slot and each queue.
//!
//! The lists are circular and doubly linked, by 32-bit node numbers. A node below the number of lists
//! is the end of the list of that number. A node from there on is an entry of the slab.
//!
//! Each list is a circle through its own end, and an entry that is in no list links to itself. Therefore an
//! entry can leave its list without knowing which list that is, and a whole list moves behind another in
//! constant time.

use std::num::NonZeroU32;

use slab::Slab;

use super::Tick;
use super::timers::Entry;

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

    /// Makes room for so many more entries: an eighth of what there is at least, as [`grow`](Lists::grow) does.
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
mod tests {
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
