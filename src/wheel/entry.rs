use std::fmt;
use std::num::NonZeroU32;

use super::Tick;
use super::lists::Link;

/// A timer's entry in the slab.
///
/// 40 bytes with a payload of 16: the generation is never zero, which is where the slab keeps its own
/// flag.
pub(super) struct Entry<T> {
    pub(super) link: Link,
    pub(super) generation: NonZeroU32,
    pub(super) deadline: Tick,
    pub(super) payload: T,
}

/// Names one timer of one [`Wheel`](super::Wheel), from its insertion until it is cancelled or
/// handed out; afterwards it names nothing.
///
/// A key holds the place of the timer's entry and a generation that no other of the wheel's last
/// 2³² − 1 insertions had, so a key whose timer is gone does not name the next one to use the
/// same place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub(super) index: u32,
    pub(super) generation: NonZeroU32,
}

impl Key {
    /// The place of the entry: small, dense, and used again once the timer is gone.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The two halves of a key, to be stored in fewer bytes than an `Option<Key>` takes.
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

#[cfg(test)]
mod tests {
    use std::mem::size_of;
    use std::num::NonZeroU32;
    use std::task::Waker;

    use super::{Entry, Key};
    use crate::wheel::{Resolution, Tick, Verdict, Wheel};

    #[test]
    fn an_entry_of_a_waker_takes_40_bytes_in_the_slab() {
        assert_eq!(size_of::<Option<Entry<Option<Waker>>>>(), 40);
        assert_eq!(size_of::<Option<Key>>(), 8);
    }

    // Generations wrap after four thousand million insertions, which no test can wait for.
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
            assert_eq!(wheel.get(other), None, "a generation of another's");
        }
        // The place is used again by a generation that comes after the wrap.
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
        // Draining goes on from the generation that was last given.
        assert_eq!(wheel.drain().count(), 1);
        assert_eq!(wheel.insert(Tick::new(40), 40).generation.get(), 6);
    }
}
