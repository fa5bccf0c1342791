//! The data structure: a hierarchical timing wheel, built like a water meter.
//!
//! A [`Wheel`] keeps payloads by deadline. It has no clock, no thread, no lock and no future: its owner passes it
//! the time, in [`Tick`]s, and gets back what is due. The timers of this crate are built on it. It is public
//! because it is useful elsewhere, too: in delay queues, caches that expire entries, game loops and simulations.
//!
//! # The dials
//!
//! | dial | slots | one slot covers |
//! |---|---|---|
//! | 0 | the number of ticks in a second | one tick |
//! | 1 | 60 | a second |
//! | 2 | 60 | a minute |
//! | 3 | 24 | an hour |
//! | 4 | 64 | a day |
//! | beyond | 1 | everything further away |
//!
//! A full revolution of one dial moves the next dial by one slot, and the slot that comes up *cascades*: its
//! timers are filed again, on lower dials. So a timer of up to a second never moves, a timer of up to a minute
//! moves at most once, and a timer of up to an hour at most twice. There is no longest delay.
//!
//! One bit per slot says whether it holds a timer, so empty time costs nothing: a jump of a century takes a few
//! steps.
//!
//! # Time
//!
//! | type | meaning |
//! |---|---|
//! | [`Tick`] | a point in time: a number of ticks since the wheel's own zero |
//! | [`Ticks`] | a span of time: a number of ticks |
//! | [`Resolution`] | the length of one tick |
//!
//! The owner converts its own time into ticks. It rounds a deadline up to a tick, and the current time down. Then
//! a timer is never early, and it is late by less than a tick plus the time that the owner takes to advance the
//! wheel.
//!
//! # Costs
//!
//! | operation | cost |
//! |---|---|
//! | [`insert`](Wheel::insert), [`cancel`](Wheel::cancel), [`reset`](Wheel::reset), [`disarm`](Wheel::disarm) | O(1) |
//! | [`expire`](Wheel::expire), [`advance_in_order`](Wheel::advance_in_order), [`advance`](Wheel::advance) | O(timers served + timers cascaded + slots that came up) |
//! | [`next_expiration`](Wheel::next_expiration) | O(dials) |
//! | [`peek`](Wheel::peek) | O(dials), or O(timers in the next slot of each dial) |
//! | memory per timer | up to 24 bytes and the payload, rounded up to the payload's alignment |
//! | memory per slot | 8 bytes |
//!
//! Advancing in order by 64 days or more also visits each timer beyond the last dial, once for each slot from
//! which timers cascaded.
//!
//! Cancelling a timer frees its entry for the next insertion. The slab that holds the entries grows by an eighth
//! at a time, and does not shrink until the wheel is dropped, [drained](Wheel::drain) or
//! [shrunk](Wheel::shrink_to_fit). [`with_capacity`](Wheel::with_capacity) and [`reserve`](Wheel::reserve) make
//! room in advance, and [`clear`](Wheel::clear) keeps it.
//!
//! # Examples
//!
//! ```
//! use waterwheel::wheel::{Resolution, Tick, Ticks, Wheel};
//!
//! let mut wheel = Wheel::new(Resolution::MILLISECOND);
//! let minute = Ticks::new(60_000);
//! let tea = wheel.insert(wheel.now().saturating_add(minute), "tea");
//! let egg = wheel.insert(Tick::new(300_000), "egg");
//! assert_eq!(wheel.cancel(tea), Some("tea"));
//! assert_eq!(wheel.peek(), Some((egg, Tick::new(300_000), &"egg")));
//!
//! // The caller's loop: wait until `next_expiration`, then take what is due.
//! let mut done = Vec::new();
//! while let Some(now) = wheel.next_expiration() {
//!     for (_key, deadline, payload) in wheel.expire(now, usize::MAX) {
//!         assert_eq!(deadline, now);
//!         done.push(payload);
//!     }
//! }
//! assert_eq!(done, ["egg"]);
//! assert_eq!((wheel.now(), wheel.get(egg)), (Tick::new(300_000), None));
//! ```
//!
//! # Prior art
//!
//! Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987), here with the dials of a clock instead of
//! powers of two, and with the occupancy bits with which Linux and tokio skip empty slots.

mod advance;
mod dials;
mod in_order;
mod invariants;
mod memory;
mod peek;
mod snapshot;
mod tick;
mod timers;

pub(crate) use advance::{CASCADES_PER_TIMER, Met, Walk};
pub(crate) use dials::COUNT as DIAL_COUNT;
pub(crate) use memory::Removed;
pub(crate) use snapshot::{DialCounts, SlotCounts, Standing};
pub(crate) use tick::Divisor;

pub use advance::{Expire, Progress, Verdict};
pub use tick::{InvalidResolution, Resolution, Tick, Ticks};
pub use timers::{Key, Wheel};
