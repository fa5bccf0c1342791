use std::fmt;
use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::items::Shared;
use super::{Expired, Key};

/// Inserts into a [`DelayQueue`](super::DelayQueue) from other tasks and threads. Made by [`handle`](super::DelayQueue::handle).
///
/// Clones are cheap, and all clones are of the same queue. Each operation is O(1) and takes the queue's lock for a
/// moment. None needs a runtime around it.
///
/// The queue may hand an item out, or be dropped, at any time. So there are no operations that panic on a stale key.
pub struct Handle<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Handle<T> {
    pub(super) fn new(shared: &Arc<Shared<T>>) -> Handle<T> {
        shared.lock().handles += 1;
        Handle {
            shared: Arc::clone(shared),
        }
    }

    /// Adds an item that is due `timeout` from now, by the clock of the queue's timer.
    ///
    /// If the item is due before all others, the task that waits for the queue is woken.
    ///
    /// # Errors
    ///
    /// [`Closed`], with the value, if the queue was dropped.
    ///
    /// # Panics
    ///
    /// If the queue already holds about 2³² items.
    pub fn insert(&self, value: T, timeout: Duration) -> Result<Key, Closed<T>> {
        self.insert_at(value, self.shared.deadline_after(timeout))
    }

    /// Adds an item that is due at `when`. Otherwise as [`insert`](Handle::insert).
    ///
    /// # Errors
    ///
    /// As [`insert`](Handle::insert).
    ///
    /// # Panics
    ///
    /// As [`insert`](Handle::insert).
    pub fn insert_at(&self, value: T, when: Instant) -> Result<Key, Closed<T>> {
        let tick = self.shared.clock.tick_after(when);
        let items = self.shared.lock();
        match items.is_closed {
            false => Ok(items.insert(tick, value)),
            true => Err(Closed(value)),
        }
    }

    /// Takes an item out; `None` if it is gone already.
    pub fn try_remove(&self, key: &Key) -> Option<Expired<T>> {
        self.shared.lock().remove(key, self.shared.ticks)
    }

    /// Moves an item's deadline to `timeout` from now. `false` if the item is gone already.
    pub fn try_reset(&self, key: &Key, timeout: Duration) -> bool {
        self.try_reset_at(key, self.shared.deadline_after(timeout))
    }

    /// Moves an item's deadline to `when`. `false` if the item is gone already.
    pub fn try_reset_at(&self, key: &Key, when: Instant) -> bool {
        let tick = self.shared.clock.tick_after(when);
        self.shared.lock().reset(key, tick)
    }

    /// The deadline of an item, rounded up to a tick; `None` if the item is gone already.
    #[must_use]
    pub fn try_deadline(&self, key: &Key) -> Option<Instant> {
        self.shared.deadline(key)
    }

    /// Whether the queue was dropped, so that an insertion gives the value back. As of `tokio::sync::mpsc::Sender::is_closed`.
    ///
    /// Once it is true, it stays so. If it is false, the queue may be dropped right after: only [`insert`](Handle::insert) says for sure.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::DelayQueue;
    ///
    /// let mut queue = DelayQueue::<u8>::new();
    /// let handle = queue.handle();
    /// assert!(!handle.is_closed());
    /// drop(queue);
    /// assert!(handle.is_closed());
    /// # }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().is_closed
    }

    /// The number of items in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether the queue has no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle::new(&self.shared)
    }
}

impl<T> Drop for Handle<T> {
    /// The last one of an empty queue wakes the task that waits for the queue: it has come to its end.
    fn drop(&mut self) {
        self.shared.lock().one_handle_less();
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The queue of a [`Handle`] was dropped. Holds the value that was not inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the delay queue was dropped, so the item would never come out")
    }
}

impl<T> std::error::Error for Closed<T> {}
