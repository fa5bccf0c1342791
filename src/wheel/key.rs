use std::fmt;
use std::num::NonZeroU32;

/// Identifies a timer of a [`Wheel`](super::Wheel), from its insertion until it is cancelled or returned.
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

#[cfg(test)]
mod tests {
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
