//! The dials of the water meter: which slot of which dial a deadline belongs to.
//!
//! | dial | slots | one slot is | a slot comes up |
//! |---|---|---|---|
//! | 0 | ticks per second (1000) | one tick | when its timers are due |
//! | 1 | 60 | a second | at the start of its second, and cascades |
//! | 2 | 60 | a minute | at the start of its minute |
//! | 3 | 24 | an hour | at the start of its hour |
//! | 4 | 64 | a day | at the start of its day |
//! | beyond | 1 | what is further away | at the start of each revolution of dial 4 |
//!
//! The *unit* of a tick on a dial is the number of whole slots of that dial that have passed since
//! tick zero. With the hand at unit `h`, a dial of `n` slots holds the units `h + 1 ..= h + n`, each
//! in slot `unit % n`. The hand's own unit has come up already, so its slot is free for the last unit of
//! the window, and no slot holds two units at once.

use std::time::Duration;

use super::tick::Divisor;
use super::{Resolution, Tick};

/// A dial above the first: the number of its slots, and how many slots of the dial below make one of its own.
struct Dial {
    slots: u64,
    of_below: u64,
}

const DIALS: [Dial; 4] = [
    // Seconds: `of_below` is the resolution's ticks per second, not a constant.
    Dial {
        slots: 60,
        of_below: 0,
    },
    Dial {
        slots: 60,
        of_below: 60,
    },
    Dial {
        slots: 24,
        of_below: 60,
    },
    Dial {
        slots: 64,
        of_below: 24,
    },
];

/// How many dials there are, the first one included.
pub(crate) const COUNT: usize = DIALS.len() + 1;
const LAST: usize = COUNT - 1;

/// The seconds in one slot of a dial above the first, by the dial's number.
const SECONDS: [u64; COUNT] = {
    let mut seconds = [1; COUNT];
    let mut dial = 2;
    while dial < COUNT {
        seconds[dial] = seconds[dial - 1] * DIALS[dial - 1].of_below;
        dial += 1;
    }
    seconds
};

/// The first slot of each dial above the first, and the slot for what lies beyond. Counted from the end of the first
/// dial, whose size depends on the resolution.
///
/// (Constants, not sums: where nothing is optimised, as in tests, that saves instructions: `benches/LOG.md`.)
const FIRST_SLOTS: [u32; COUNT + 1] = {
    let mut first = [0; COUNT + 1];
    let mut dial = 2;
    while dial <= COUNT {
        first[dial] = first[dial - 1] + DIALS[dial - 2].slots as u32;
        dial += 1;
    }
    first
};

// A full revolution of one dial moves the next one by a slot. Only the last dial may have any size.
const _: () = assert!(DIALS[0].slots == DIALS[1].of_below);
const _: () = assert!(DIALS[1].slots == DIALS[2].of_below);
const _: () = assert!(DIALS[2].slots == DIALS[3].of_below);
const _: () = assert!(DIALS[3].slots > 0);

/// How long one slot of a dial is.
pub(super) fn slot_length(resolution: Resolution, dial: usize) -> Duration {
    match dial {
        0 => resolution.tick(),
        _ => Duration::from_secs(SECONDS[dial]),
    }
}

/// Where a deadline is filed, and when that slot comes up.
pub(super) struct Place {
    /// The slot, by its number among the slots of all dials.
    pub(super) slot: u32,
    /// When the slot comes up: never after the deadline, always after the hand.
    pub(super) comes_up: Tick,
}

/// The geometry of one wheel, and where its hand stands on each dial.
#[derive(Clone)]
pub(super) struct Dials {
    per_second: Divisor,
    hand: Tick,
    /// The hand's unit on each dial.
    units: [u64; COUNT],
}

impl Dials {
    pub(super) fn new(resolution: Resolution, hand: Tick) -> Dials {
        let mut dials = Dials {
            per_second: Divisor::new(resolution.ticks_per_second()),
            hand,
            units: [0; COUNT],
        };
        dials.set_hand(hand);
        dials
    }

    pub(super) fn hand(&self) -> Tick {
        self.hand
    }

    /// Moves the hand to this tick, which is not before it.
    #[inline]
    pub(super) fn set_hand(&mut self, hand: Tick) {
        self.hand = hand;
        if hand < self.next_unit(1) {
            // Most moves stay within a second: the other units stay as they are.
            self.units[0] = hand.get();
        } else {
            self.set_units(hand);
        }
    }

    #[inline(never)]
    fn set_units(&mut self, hand: Tick) {
        self.units = self.units_of(hand);
    }

    /// The slot of this tick on the first dial, if the tick is at most one revolution after the hand.
    #[inline]
    pub(super) fn slot_of_tick(&self, tick: Tick) -> u32 {
        self.per_second.remainder(tick.get()) as u32
    }

    /// The number of slots of the first dial. They are the first of all slots.
    #[inline]
    pub(super) fn slots_due(&self) -> u32 {
        self.per_second.get() as u32
    }

    /// The slot of the first dial that comes up next.
    #[inline]
    pub(super) fn next_slot_due(&self) -> u32 {
        self.slot_of_tick(Tick::new(self.hand.get().wrapping_add(1)))
    }

    /// The number of slots of all dials, plus one for what lies beyond.
    pub(super) fn slots(&self) -> u32 {
        self.beyond() + 1
    }

    /// The slot for what lies beyond the last dial: the last of all slots.
    pub(super) fn beyond(&self) -> u32 {
        self.first_slot(COUNT)
    }

    /// The slots of a dial, as numbers among the slots of all dials.
    pub(super) fn slots_of(&self, dial: usize) -> std::ops::Range<u32> {
        self.first_slot(dial)..self.first_slot(dial + 1)
    }

    /// The place of a deadline, which is after the hand.
    ///
    /// The divisors above the first dial are constants, so the compiler turns the divisions into multiplications.
    #[inline]
    pub(super) fn place(&self, deadline: Tick) -> Place {
        debug_assert!(deadline > self.hand);
        let tick = deadline.get();
        if tick - self.hand.get() <= self.per_second.get() {
            return Place {
                slot: self.per_second.remainder(tick) as u32,
                comes_up: deadline,
            };
        }
        // Not a loop: its divisors would be variables, and an insertion take nearly twice as long.
        let seconds = self.per_second.divide(tick);
        if let Some(place) = self.place_on::<1>(seconds) {
            return place;
        }
        let minutes = seconds / DIALS[1].of_below;
        if let Some(place) = self.place_on::<2>(minutes) {
            return place;
        }
        let hours = minutes / DIALS[2].of_below;
        if let Some(place) = self.place_on::<3>(hours) {
            return place;
        }
        let days = hours / DIALS[3].of_below;
        if let Some(place) = self.place_on::<4>(days) {
            return place;
        }
        Place {
            slot: self.beyond(),
            comes_up: self.next_revolution(),
        }
    }

    /// The slot of [`place`](Dials::place), for a caller that asks for many deadlines of all dials. No branch depends on the dial, which the
    /// processor could not predict. (A snapshot of a million timers: 12.7 ms with `place`, 8.3 with this.)
    #[inline]
    pub(super) fn slot_among_many(&self, deadline: Tick) -> u32 {
        let units = self.units_of(deadline);
        let [tick, seconds, minutes, hours, days] = units;
        let slots = [
            self.per_second.remainder(tick),
            seconds % DIALS[0].slots,
            minutes % DIALS[1].slots,
            hours % DIALS[2].slots,
            days % DIALS[3].slots,
            // Beyond.
            0,
        ];
        // If a dial does not reach the deadline, none below it does.
        let reaches = |dial: usize| units[dial] - self.units[dial] <= self.slots_on(dial);
        let dial: usize = (0..COUNT).map(|dial| usize::from(!reaches(dial))).sum();
        let first = u32::from(dial > 0) * self.slots_due() + FIRST_SLOTS[dial];
        let slot = first + slots[dial] as u32;
        debug_assert_eq!(slot, self.place(deadline).slot);
        slot
    }

    /// The number of slots of a dial.
    #[inline]
    fn slots_on(&self, dial: usize) -> u64 {
        match dial {
            0 => self.per_second.get(),
            _ => DIALS[dial - 1].slots,
        }
    }

    /// The place of this unit of a dial above the first, if the dial reaches it.
    #[inline]
    fn place_on<const DIAL: usize>(&self, unit: u64) -> Option<Place> {
        let slots = DIALS[DIAL - 1].slots;
        (unit - self.units[DIAL] <= slots).then(|| Place {
            slot: self.first_slot(DIAL) + (unit % slots) as u32,
            comes_up: Tick::new(unit * self.length(DIAL)),
        })
    }

    /// When the slot at this distance from the hand's slot of a dial comes up. 1 is the next slot.
    pub(super) fn comes_up(&self, dial: usize, distance: u64) -> Tick {
        // Callers ask only for slots that hold a timer, so the product does not overflow.
        Tick::new((self.units[dial] + distance) * self.length(dial))
    }

    /// The slot of a dial above the first that comes up at this tick.
    pub(super) fn slot_that_comes_up(&self, dial: usize, tick: Tick) -> u32 {
        let slots = self.slots_of(dial);
        let unit = tick.get() / self.length(dial);
        slots.start + (unit % u64::from(slots.end - slots.start)) as u32
    }

    /// The hand's slot on this dial, counted from the dial's first.
    pub(super) fn slot_of_hand(&self, dial: usize) -> u32 {
        let slots = self.slots_of(dial);
        (self.units[dial] % u64::from(slots.end - slots.start)) as u32
    }

    /// The slot after the hand's slot of this dial: the one that comes up next.
    pub(super) fn next_slot(&self, dial: usize) -> u32 {
        let slots = self.slots_of(dial);
        let count = u64::from(slots.end - slots.start);
        slots.start + (self.units[dial].wrapping_add(1) % count) as u32
    }

    /// The start of the unit after the hand's on this dial. No slot of this dial, or of one above it, comes up
    /// before.
    pub(super) fn next_unit(&self, dial: usize) -> Tick {
        Tick::new(
            self.units[dial]
                .saturating_add(1)
                .saturating_mul(self.length(dial)),
        )
    }

    /// How many slots of each dial come up as the hand moves on to `now`; at most all slots of the dial.
    #[inline]
    pub(super) fn slots_passed(&self, now: Tick) -> [u64; COUNT] {
        let mut passed = self.units_of(now);
        for (dial, passed) in passed.iter_mut().enumerate() {
            let slots = self.slots_of(dial);
            *passed = (*passed - self.units[dial]).min(u64::from(slots.end - slots.start));
        }
        passed
    }

    /// The start of the next revolution of the last dial. What lies beyond is looked at then, and is not due
    /// before.
    pub(super) fn next_revolution(&self) -> Tick {
        let revolution = DIALS[LAST - 1].slots;
        let units = (self.units[LAST] / revolution + 1) * revolution;
        Tick::new(units.saturating_mul(self.length(LAST)))
    }

    /// The start of the revolution of the last dial that this tick is in. From then on, the dials reach the tick.
    pub(super) fn revolution_of(&self, tick: Tick) -> Tick {
        let revolution = DIALS[LAST - 1].slots * self.length(LAST);
        Tick::new(tick.get() / revolution * revolution)
    }

    /// Ticks in one slot of this dial.
    #[inline]
    fn length(&self, dial: usize) -> u64 {
        match dial {
            0 => 1,
            _ => self.per_second.get() * SECONDS[dial],
        }
    }

    #[inline]
    fn first_slot(&self, dial: usize) -> u32 {
        match dial {
            0 => 0,
            _ => self.slots_due() + FIRST_SLOTS[dial],
        }
    }

    #[inline]
    fn units_of(&self, tick: Tick) -> [u64; COUNT] {
        let seconds = self.per_second.divide(tick.get());
        let minutes = seconds / DIALS[1].of_below;
        let hours = minutes / DIALS[2].of_below;
        [
            tick.get(),
            seconds,
            minutes,
            hours,
            hours / DIALS[3].of_below,
        ]
    }
}
