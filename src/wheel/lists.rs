//! The slots' contents: circular doubly linked lists of 32-bit indices.
//!
//! Indices below the number of lists name the lists' own ends, indices above them the entries of
//! the slab. Because a list closes over its own end, an entry can leave its list without knowing
//! which list that is, a whole list moves behind another in constant time, and an entry that is
//! in no list closes over itself.

use std::num::NonZeroU32;

use slab::Slab;

use super::Tick;
use super::entry::Entry;

/// The two neighbours of an entry, or of a list's end.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) next: u32,
    pub(super) previous: u32,
}

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

    /// The node of the entry at this index of the slab.
    #[inline]
    pub(super) fn node(&self, index: u32) -> u32 {
        index + self.ends.len() as u32
    }

    /// The slab's index of a node that is an entry.
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

    /// Makes an entry at a list's back and gives its index.
    ///
    /// # Panics
    ///
    /// If 32 bits do not reach it.
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
        let node = u32::try_from(index + self.ends.len())
            .expect("a wheel holds fewer than 2^32 timers: use several wheels");
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

    /// Makes room for an eighth more, so that no more than an eighth of the memory is ever in vain.
    ///
    /// Doubling is no faster where the allocator grows a large block in place, as glibc's does: 20 ns
    /// an insertion up to a million either way, and 0.1 ms for the longest. Where it copies, each
    /// entry is copied eight times on the way to a new peak rather than once.
    #[cold]
    fn grow(&mut self) {
        let more = (self.entries.capacity() / 8).max(64);
        self.entries.reserve_exact(more);
    }

    /// Takes out all memory of the entries, if there are none and it is for more than `kept`.
    pub(super) fn take_spare(&mut self, kept: usize) -> Option<Slab<Entry<T>>> {
        let is_spare = self.entries.is_empty() && self.entries.capacity() > kept;
        is_spare.then(|| std::mem::take(&mut self.entries))
    }

    /// Puts an entry that is in no list at a list's back.
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

    /// Puts an entry that is in no list at a list's front.
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

    /// Takes an entry out of its list, if it is in one, and tells which list that left empty.
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

    /// Has two nodes be neighbours whose common neighbour leaves, which is in a list, and tells which
    /// list that left empty.
    #[inline]
    pub(super) fn join(&mut self, Link { next, previous }: Link) -> Option<u32> {
        self.link(next).previous = previous;
        self.link(previous).next = next;
        // Nothing but a list's end is on both sides of what is in a list.
        debug_assert!(next != previous || (next as usize) < self.ends.len());
        (next == previous).then_some(next)
    }

    /// Moves all of a list behind the back of another.
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

    /// The entries of a list, front to back; for inspection.
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
