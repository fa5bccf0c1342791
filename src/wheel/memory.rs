//! The slab's memory, by the owner's wish: room ahead of the timers, and what is done with it after them.

use slab::Slab;

use super::dials::Dials;
use super::timers::{Entry, Lists, QUEUES, Wheel};
use super::{Resolution, Tick};

impl<T> Wheel<T> {
    /// Creates an empty wheel as [`new`](Wheel::new) does, with room for `capacity` timers.
    ///
    /// # Panics
    ///
    /// Panics as [`reserve`](Wheel::reserve) does.
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Wheel};
    ///
    /// let wheel = Wheel::<u64>::with_capacity(Resolution::MILLISECOND, 10_000);
    /// assert!(wheel.capacity() >= 10_000);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity(resolution: Resolution, capacity: usize) -> Wheel<T> {
        let mut wheel = Wheel::new(resolution);
        wheel.reserve(capacity);
        wheel
    }

    /// Makes room for at least `additional` more timers, so that the next insertions do not allocate.
    ///
    /// If there is too little room, the slab grows to what is asked for, and by at least an eighth, so that
    /// repeated small reservations do not copy it each time. O([`len`](Wheel::len)) if the allocator copies the
    /// slab, otherwise O(1).
    ///
    /// # Panics
    ///
    /// Panics if that would be room for about 2³² timers, which is more than a wheel holds, or for more than
    /// `isize::MAX` bytes.
    #[track_caller]
    pub fn reserve(&mut self, additional: usize) {
        self.lists.reserve(additional);
    }

    /// Panics where [`reserve`](Wheel::reserve) would, for an empty wheel that is still to be made, of whatever resolution.
    #[track_caller]
    pub(crate) fn assert_room(capacity: usize) {
        let slots = Dials::new(Resolution::FINEST, Tick::ZERO).slots();
        Lists::<T>::assert_room((slots + QUEUES) as usize, capacity);
    }

    /// Frees the memory behind the last timer in the slab, pending or disarmed.
    ///
    /// A [`Key`](super::Key) names a timer by its place, so no timer moves. A single timer near the end of the
    /// slab keeps all places before it, and the next insertions use them. If there is no timer, the capacity is 0
    /// afterwards. O([`capacity`](Wheel::capacity)).
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// let keys: Vec<_> = (0..1_000).map(|n| wheel.insert(Tick::new(n), n)).collect();
    /// for &key in &keys[..999] {
    ///     wheel.cancel(key);
    /// }
    /// wheel.shrink_to_fit();
    /// assert!(wheel.capacity() >= 1_000, "the last one has stayed at its place");
    /// wheel.cancel(keys[999]);
    /// wheel.shrink_to_fit();
    /// assert_eq!(wheel.capacity(), 0);
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.lists.entries.shrink_to_fit();
    }

    /// Removes all timers, including disarmed ones, drops their payloads, and keeps the memory.
    ///
    /// The hand stays where it is. A key from before never names a timer from after.
    /// O([`capacity`](Wheel::capacity) + slots), and O(1) if there is no timer.
    ///
    /// If the destructor of a payload panics, the wheel is empty and in a consistent state, and the memory of the
    /// slab is freed.
    ///
    /// ```
    /// use waterwheel::wheel::{Resolution, Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(Resolution::MILLISECOND);
    /// let stale = wheel.insert(Tick::new(10), "before");
    /// let capacity = wheel.capacity();
    /// wheel.clear();
    /// assert!(wheel.is_empty() && wheel.capacity() == capacity);
    /// wheel.insert(Tick::new(10), "after");
    /// assert_eq!(wheel.cancel(stale), None);
    /// ```
    pub fn clear(&mut self) {
        let mut cleared = self.take_all();
        cleared.clear();
        // The memory that is swapped out was never allocated: nothing was inserted meanwhile.
        drop(self.give_room(cleared));
    }

    /// Empties the wheel. The caller drops what it gets where a payload's destructor may run.
    #[must_use]
    pub(crate) fn take_all(&mut self) -> Removed<T> {
        if self.pending > 0 {
            self.lists.empty();
            self.occupied.clear_all();
            self.pending = 0;
        }
        self.quiet_until = Tick::MAX;
        Removed(std::mem::take(&mut self.lists.entries))
    }

    /// Gives an empty slab back to a wheel, if the wheel has no entry and less room. Returns the slab that is not used.
    pub(crate) fn give_room(&mut self, room: Removed<T>) -> Removed<T> {
        debug_assert!(room.0.is_empty());
        let entries = &mut self.lists.entries;
        if !entries.is_empty() || room.0.capacity() <= entries.capacity() {
            return room;
        }
        Removed(std::mem::replace(entries, room.0))
    }
}

/// The slab of a wheel that was emptied.
pub(crate) struct Removed<T>(Slab<Entry<T>>);

impl<T> Removed<T> {
    /// Drops the payloads and keeps the memory.
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_payloads(self) -> impl Iterator<Item = T> + use<T> {
        self.0.into_iter().map(|(_, entry)| entry.payload)
    }
}
