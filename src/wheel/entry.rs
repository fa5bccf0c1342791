use std::fmt;
use std::num::NonZeroU32;

use super::Tick;
use super::rings::Link;

/// A timer's record in the slab.
///
/// 40 bytes with a payload of 16: the stamp is never zero, which is where the slab keeps its own
/// flag.
pub(super) struct Entry<T> {
    pub(super) link: Link,
    pub(super) stamp: NonZeroU32,
    pub(super) deadline: Tick,
    pub(super) payload: T,
}

/// Names one timer of one [`Wheel`](super::Wheel), from its insertion until it is cancelled or
/// handed out; afterwards it names nothing.
///
/// A key holds the place of the timer's record and a stamp that no other of the wheel's last
/// 2³² − 1 insertions had, so a key whose timer is gone does not name the next one to use the
/// same place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub(super) index: u32,
    pub(super) stamp: NonZeroU32,
}

impl Key {
    /// The place of the record: small, dense, and used again once the timer is gone.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The two halves of a key, to be stored in fewer bytes than an `Option<Key>` takes.
    pub(crate) fn into_parts(self) -> (u32, NonZeroU32) {
        (self.index, self.stamp)
    }

    pub(crate) fn from_parts(index: u32, stamp: NonZeroU32) -> Key {
        Key { index, stamp }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}#{})", self.index, self.stamp)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;
    use std::task::Waker;

    use super::{Entry, Key};

    #[test]
    fn a_record_of_a_waker_takes_40_bytes_in_the_slab() {
        assert_eq!(size_of::<Option<Entry<Option<Waker>>>>(), 40);
        assert_eq!(size_of::<Option<Key>>(), 8);
    }
}
