use std::fmt;

use tokio::time::Instant;

use super::Key;
use super::ticking::Ticking;
use crate::wheel::{self, Tick};

/// An item that a [`DelayQueue`](super::DelayQueue) has returned, with its deadline and its former key.
///
/// It is no longer in the queue. To queue the value again, pass [`into_inner`](Expired::into_inner) to `insert`.
pub struct Expired<T> {
    pub(super) value: T,
    pub(super) tick: Tick,
    pub(super) ticks: Ticking,
    pub(super) key: Key,
}

impl<T> Expired<T> {
    #[inline]
    pub(super) fn new((key, tick, value): (wheel::Key, Tick, T), ticks: Ticking) -> Expired<T> {
        Expired {
            value,
            tick,
            ticks,
            key: Key(key),
        }
    }

    /// Returns a reference to the value.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a mutable reference to the value.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns the value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the item's deadline, rounded up to a tick of the queue's timer: the instant from which the item was due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.ticks.instant_of(self.tick)
    }

    /// Returns the key that the item had.
    #[must_use]
    pub fn key(&self) -> Key {
        self.key
    }
}

impl<T: fmt::Debug> fmt::Debug for Expired<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired")
            .field("value", &self.value)
            .field("deadline", &self.deadline())
            .field("key", &self.key)
            .finish()
    }
}
