use std::fmt;
use std::sync::Arc;

use tokio::time::{Duration, Instant};

use super::items::Shared;
use super::{Expired, Key};

/// Inserts items into a [`DelayQueue`](super::DelayQueue) from other tasks and threads. Returned by
/// [`DelayQueue::handle`](super::DelayQueue::handle).
///
/// Clones are cheap, and all clones are handles to the same queue. Each operation is O(1), takes the queue's lock briefly, and
/// can be called outside a runtime.
///
/// The queue may return an item, or be dropped, at any time. For this reason, no operation panics on the key of an item that is
/// gone.
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

    /// Inserts an item that is due `timeout` from now, by the clock of the queue's timer.
    ///
    /// If the item is due before all others, this wakes the task that waits for the queue.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`] with the value if the queue was dropped.
    ///
    /// # Panics
    ///
    /// Panics if the queue already holds about 2³² items.
    pub fn insert(&self, value: T, timeout: Duration) -> Result<Key, Closed<T>> {
        self.insert_at(value, self.shared.deadline_after(timeout))
    }

    /// Inserts an item that is due at `when`. Otherwise the same as [`insert`](Handle::insert).
    ///
    /// # Errors
    ///
    /// Returns [`Closed`] with the value if the queue was dropped.
    ///
    /// # Panics
    ///
    /// Panics if the queue already holds about 2³² items.
    pub fn insert_at(&self, value: T, when: Instant) -> Result<Key, Closed<T>> {
        let tick = self.shared.clock.tick_after(when);
        let items = self.shared.lock();
        match items.is_closed {
            false => Ok(items.insert(tick, value)),
            true => Err(Closed(value)),
        }
    }

    /// Removes an item and returns it, or returns `None` if it is already gone.
    pub fn try_remove(&self, key: &Key) -> Option<Expired<T>> {
        self.shared.lock().remove(key, self.shared.ticks)
    }

    /// Moves an item's deadline to `timeout` from now. Returns `false` if the item is already gone.
    pub fn try_reset(&self, key: &Key, timeout: Duration) -> bool {
        self.try_reset_at(key, self.shared.deadline_after(timeout))
    }

    /// Moves an item's deadline to `when`. Returns `false` if the item is already gone.
    pub fn try_reset_at(&self, key: &Key, when: Instant) -> bool {
        let tick = self.shared.clock.tick_after(when);
        self.shared.lock().reset(key, tick)
    }

    /// Returns the deadline of an item, rounded up to a tick, or `None` if the item is already gone.
    #[must_use]
    pub fn try_deadline(&self, key: &Key) -> Option<Instant> {
        self.shared.deadline(key)
    }

    /// Returns whether the queue was dropped, so that an insertion returns the value as an error. This is like
    /// `tokio::sync::mpsc::Sender::is_closed`.
    ///
    /// Once it returns `true`, it always does. If it returns `false`, the queue may still be dropped right after: only
    /// [`insert`](Handle::insert) knows for sure.
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

    /// Returns the number of items in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether the queue has no items.
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
    /// Wakes the task that waits for the queue if this is the last handle of an empty queue, which ends it.
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

/// The error of an insertion into a queue that was dropped. It holds the value that was not inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the delay queue was dropped: the item was not inserted, since it would never come out",
        )
    }
}

impl<T> std::error::Error for Closed<T> {}
