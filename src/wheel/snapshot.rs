//! The parts of a wheel that a snapshot shows.
//!
//! [`Standing`] is of one moment: where the hand stands on each dial, and which slots hold a timer. The timers themselves are too
//! many for one moment. [`Wheel::read_deadlines`] reads a portion of them, and the owner may give its lock back before the next
//! one. [`SlotCounts`] counts them by their deadlines, as seen from one tick. It does not ask where a timer is filed: a timer that
//! was filed long ago may wait on a higher dial than its deadline asks for now.

use std::time::Duration;

use super::dials::{self, Dials};
use super::{Resolution, Tick, Wheel};

/// Where a wheel stands: its hand on each dial, and the slots that hold a timer.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    hands: [u32; dials::COUNT],
    /// One bit for each slot of all dials.
    occupied: Box<[u64]>,
}

impl Standing {
    /// The state of a wheel without timers whose hand stands at `hand`.
    pub(crate) fn at(resolution: Resolution, hand: Tick) -> Standing {
        let dials = Dials::new(resolution, hand);
        let words = dials.slots().div_ceil(u64::BITS) as usize;
        Standing {
            hands: hands(&dials),
            occupied: vec![0; words].into(),
        }
    }

    /// Adds the occupied slots of another wheel of the same resolution. The hand stays.
    pub(crate) fn add_slots(&mut self, other: &Standing) {
        for (word, other) in self.occupied.iter_mut().zip(&other.occupied) {
            *word |= other;
        }
    }

    fn is_occupied(&self, slot: u32) -> bool {
        let word = self.occupied[(slot / u64::BITS) as usize];
        word & (1 << (slot % u64::BITS)) != 0
    }
}

/// The number of timers in each slot, as seen from one tick.
///
/// A timer counts in the slot that it would be filed in, if the hand stood at that tick.
#[derive(Clone)]
pub(crate) struct SlotCounts {
    resolution: Resolution,
    dials: Dials,
    counts: Box<[u64]>,
    due: u64,
}

/// A dial, with what [`SlotCounts`] and a [`Standing`] know of it.
pub(crate) struct DialCounts<'a> {
    /// How long one slot is.
    pub(crate) length: Duration,
    /// The slot that the hand stands at.
    pub(crate) hand: usize,
    /// For each slot, how many timers count in it.
    pub(crate) counts: &'a [u64],
    /// For each slot, whether it holds a timer.
    pub(crate) occupied: Vec<bool>,
}

impl SlotCounts {
    /// No timers, seen from this tick.
    pub(crate) fn at(resolution: Resolution, hand: Tick) -> SlotCounts {
        let dials = Dials::new(resolution, hand);
        let slots = dials.slots() as usize;
        SlotCounts {
            resolution,
            dials,
            counts: vec![0; slots].into(),
            due: 0,
        }
    }

    /// Counts a timer.
    #[inline]
    pub(crate) fn add(&mut self, deadline: Tick) {
        if deadline <= self.dials.hand() {
            self.due += 1;
        } else {
            self.counts[self.dials.slot_among_many(deadline) as usize] += 1;
        }
    }

    /// Adds what was counted of another wheel of the same resolution, from the same tick.
    pub(crate) fn add_all(&mut self, other: &SlotCounts) {
        debug_assert_eq!(self.dials.hand(), other.dials.hand());
        self.due += other.due;
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// The timers whose tick has come.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// The timers beyond the last dial.
    pub(crate) fn beyond(&self) -> u64 {
        self.counts[self.dials.beyond() as usize]
    }

    /// The dials, from the lowest to the highest, with the hand and the occupied slots of a wheel.
    pub(crate) fn dials<'a>(
        &'a self,
        standing: &'a Standing,
    ) -> impl Iterator<Item = DialCounts<'a>> {
        (0..dials::COUNT).map(|dial| {
            let slots = self.dials.slots_of(dial);
            DialCounts {
                length: dials::slot_length(self.resolution, dial),
                hand: standing.hands[dial] as usize,
                counts: &self.counts[slots.start as usize..slots.end as usize],
                occupied: slots.map(|slot| standing.is_occupied(slot)).collect(),
            }
        })
    }
}

impl<T> Wheel<T> {
    /// Where the wheel stands now. O(slots).
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            hands: hands(&self.dials),
            occupied: self.occupied.words().into(),
        }
    }

    /// Calls `read` with the index and the deadline of each pending timer in the slab's places from `first` on, at most `places` of
    /// them. Returns the place at which the next call goes on; `None` after the last one.
    ///
    /// A timer stays in its place. So whatever happens between two calls, a timer that is pending from the first to the last is read
    /// once.
    pub(crate) fn read_deadlines(
        &self,
        first: usize,
        places: usize,
        mut read: impl FnMut(u32, Tick),
    ) -> Option<usize> {
        let capacity = self.capacity();
        let end = first.saturating_add(places).min(capacity);
        for place in first..end {
            let Some(entry) = self.lists.entries.get(place) else {
                continue;
            };
            let index = place as u32;
            let is_pending = entry.link.next != self.lists.node(index);
            if is_pending {
                read(index, entry.deadline);
            }
        }
        (end < capacity).then_some(end)
    }
}

fn hands(dials: &Dials) -> [u32; dials::COUNT] {
    std::array::from_fn(|dial| dials.slot_of_hand(dial))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{SlotCounts, Standing};
    use crate::wheel::{Key, Resolution, Tick, Verdict, Wheel};

    const SECOND: u64 = 1_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    /// Where each timer counts, by the list of deadlines alone: the dial, and the slot on it.
    fn naive(deadline: u64, now: u64) -> Option<(usize, u64)> {
        if deadline <= now {
            return None;
        }
        let dials = [
            (1, 1_000),
            (SECOND, 60),
            (MINUTE, 60),
            (HOUR, 24),
            (DAY, 64),
        ];
        dials.iter().enumerate().find_map(|(dial, &(slot, slots))| {
            let (unit, hand) = (deadline / slot, now / slot);
            (unit - hand <= slots).then_some((dial, unit % slots))
        })
    }

    fn counted(wheel: &Wheel<u64>, now: u64, portion: usize) -> SlotCounts {
        let mut counts = SlotCounts::at(wheel.resolution(), Tick::new(now));
        let mut place = Some(0);
        while let Some(first) = place {
            let mut read = 0;
            place = wheel.read_deadlines(first, portion, |_, deadline| {
                counts.add(deadline);
                read += 1;
            });
            assert!(read <= portion);
        }
        counts
    }

    fn assert_as_listed(wheel: &Wheel<u64>, now: u64) {
        let deadlines: Vec<u64> = wheel.iter().map(|(_, tick, _)| tick.get()).collect();
        let mut expected: Vec<Vec<u64>> = [1_000, 60, 60, 24, 64].map(|it| vec![0; it]).into();
        let (mut due, mut beyond) = (0, 0);
        for &deadline in &deadlines {
            match naive(deadline, now) {
                Some((dial, slot)) => expected[dial][slot as usize] += 1,
                None if deadline <= now => due += 1,
                None => beyond += 1,
            }
        }
        for portion in [1, 7, 1_024, usize::MAX] {
            let counts = counted(wheel, now, portion);
            let standing = wheel.standing();
            let found: Vec<Vec<u64>> = counts.dials(&standing).map(|it| it.counts.into()).collect();
            assert!(found == expected, "at {now}, in portions of {portion}");
            assert_eq!((counts.due(), counts.beyond()), (due, beyond));
        }
    }

    // With deadlines on both sides of each edge, seen from each tick at which slots come up.
    #[test]
    fn each_timer_counts_once_by_its_deadline_on_all_dials() {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        let edges = [
            1,
            SECOND,
            MINUTE,
            MINUTE + SECOND,
            HOUR,
            DAY,
            64 * DAY,
            65 * DAY,
            9_000 * DAY,
        ];
        for edge in edges {
            for deadline in [edge - 1, edge, edge + 1, edge + 1] {
                wheel.insert(Tick::new(deadline), deadline);
            }
        }
        let never = wheel.insert(Tick::MAX, u64::MAX);
        let stops = edges.iter().flat_map(|edge| [edge - 1, *edge, edge + 1]);
        let mut stops: Vec<u64> = stops.chain([500, 30 * SECOND, 31 * DAY]).collect();
        stops.sort_unstable();
        assert_as_listed(&wheel, 0);
        for now in stops {
            wheel.advance_in_order(Tick::new(now), usize::MAX, due, |_, _| ());
            wheel.check_invariants();
            assert_as_listed(&wheel, now);
            // The hand may also lag behind the tick that the timers are seen from.
            assert_as_listed(&wheel, now + 40 * SECOND);
        }
        assert_eq!(counted(&wheel, 9_001 * DAY, 1_024).beyond(), 1);
        assert!(wheel.cancel(never).is_some());
        assert_as_listed(&wheel, 9_001 * DAY);
    }

    #[test]
    fn a_standing_has_the_hand_and_the_occupied_slots() {
        let mut wheel = Wheel::starting_at(Resolution::MILLISECOND, Tick::new(MINUTE + 1_417));
        for deadline in [MINUTE + 1_418, MINUTE + 2_417, MINUTE + 2_418, 3 * DAY] {
            wheel.insert(Tick::new(deadline), deadline);
        }
        let standing = wheel.standing();
        let counts = counted(&wheel, wheel.now().get(), 1_024);
        let dials: Vec<_> = counts.dials(&standing).collect();
        let hands: Vec<usize> = dials.iter().map(|dial| dial.hand).collect();
        assert_eq!(hands, [417, 1, 1, 0, 0]);
        let lengths: Vec<u64> = dials.iter().map(|dial| dial.length.as_secs()).collect();
        assert_eq!(lengths, [0, 1, 60, 3_600, 86_400]);
        assert_eq!(dials[0].length, Duration::from_millis(1));
        for (dial, slots) in [
            (0, &[417, 418][..]),
            (1, &[2]),
            (2, &[]),
            (3, &[]),
            (4, &[3]),
        ] {
            let occupied = dials[dial].occupied.iter().enumerate();
            let found: Vec<usize> = occupied.filter(|it| *it.1).map(|it| it.0).collect();
            assert_eq!(found, slots, "dial {dial}");
            // The hand has not moved since these were filed.
            let counted = dials[dial].counts.iter().enumerate();
            let counted: Vec<usize> = counted.filter(|it| *it.1 > 0).map(|it| it.0).collect();
            assert_eq!(counted, slots, "dial {dial}");
        }
    }

    #[test]
    fn the_slots_and_counts_of_two_wheels_add_up() {
        let resolution = Resolution::new(Duration::from_millis(100)).unwrap();
        let now = Tick::new(7);
        let mut standing = Standing::at(resolution, now);
        let mut sum = SlotCounts::at(resolution, now);
        for deadlines in [[5, 8, 9], [8, 600, u64::MAX]] {
            let mut wheel = Wheel::new(resolution);
            for deadline in deadlines {
                wheel.insert(Tick::new(deadline), deadline);
            }
            standing.add_slots(&wheel.standing());
            sum.add_all(&counted(&wheel, now.get(), 2));
        }
        assert_eq!((sum.due(), sum.beyond()), (1, 1));
        let dials: Vec<_> = sum.dials(&standing).collect();
        assert_eq!(dials[0].counts, [0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        assert_eq!(dials[0].hand, 7);
        let occupied: Vec<usize> = (0..10).filter(|&slot| dials[0].occupied[slot]).collect();
        assert_eq!(occupied, [5, 8, 9]);
        assert_eq!((dials[1].counts[0], dials[1].occupied[0]), (1, true));
    }

    #[test]
    fn disarmed_timers_and_free_places_are_not_read() {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        let keys: Vec<Key> = (1..=3_000)
            .map(|it| wheel.insert(Tick::new(it), it))
            .collect();
        for (at, &key) in keys.iter().enumerate() {
            match at % 3 {
                0 => assert!(wheel.disarm(key)),
                1 => assert!(wheel.cancel(key).is_some()),
                _ => (),
            }
        }
        let counts = counted(&wheel, 0, 100);
        let standing = wheel.standing();
        let timers = counts
            .dials(&standing)
            .map(|it| it.counts.iter().sum::<u64>());
        assert_eq!(timers.sum::<u64>(), 1_000);
        assert_as_listed(&wheel, 0);
        let nothing = Wheel::<u64>::new(Resolution::MILLISECOND);
        assert_eq!(nothing.read_deadlines(0, 1_024, |_, _| panic!()), None);
    }

    fn due(_: Key, _: Tick, _: &mut u64) -> Verdict {
        Verdict::Due
    }
}
