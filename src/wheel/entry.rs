use std::num::NonZeroU32;

use super::Tick;
use super::link::Link;

/// What the slab keeps of a timer.
///
/// 40 bytes with a payload of 16. The slab keeps its own flag in the value that the generation never
/// has, zero.
pub(super) struct Entry<T> {
    pub(super) link: Link,
    pub(super) generation: NonZeroU32,
    pub(super) deadline: Tick,
    pub(super) payload: T,
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;
    use std::task::Waker;

    use super::Entry;

    #[test]
    fn an_entry_of_a_waker_takes_40_bytes_in_the_slab() {
        assert_eq!(size_of::<Option<Entry<Option<Waker>>>>(), 40);
    }
}
