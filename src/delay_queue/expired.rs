use std::fmt;

use tokio::time::Instant;

use super::Key;
use super::ticking::Ticking;
use crate::wheel::{self, Tick};

/// An item that a [`DelayQueue`](super::DelayQueue) has handed out, with its deadline and its former key.
///
/// It names no item any more: pass [`into_inner`](Expired::into_inner) to `insert` to queue the value again.
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

    /// The value.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value, mutable.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value, owned.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The item's deadline, rounded up to a tick of the queue's timer: the instant from which on the item was due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.ticks.instant_of(self.tick)
    }

    /// The key that the item had.
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
