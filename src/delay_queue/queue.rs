use std::fmt;

use tokio::time::{Duration, Instant};

use super::items::{Place, Shared};
use super::{Expired, Handle, Key};
use crate::Timer;
use crate::error::Error;
use crate::time::{Sleep, sleep_until};
use crate::wheel::{Removed, Tick, Wheel};

/// A queue of items that come out when their deadlines have passed.
///
/// See the [module](super) for how it works, what it costs, and how it differs from tokio-util's. In short:
///
/// - [`insert`](DelayQueue::insert) returns a [`Key`], with which an item can be [removed](DelayQueue::remove) or
///   [reset](DelayQueue::reset) until it comes out.
/// - [`poll_expired`](DelayQueue::poll_expired) returns items in [order](crate::delay_queue#order) of their ticks, and the queue
///   is a `Stream` of them. [`expired_many`](DelayQueue::expired_many) returns many at a time.
/// - [`handle`](DelayQueue::handle) returns a handle with which other tasks insert items.
///
/// Dropping the queue drops its items.
pub struct DelayQueue<T> {
    /// `None` until the first call that needs a timer. So `new` works outside of a runtime, as tokio-util's does.
    bound: Option<Bound<T>>,
    /// The capacity that `with_capacity` and `reserve` asked for before that.
    capacity: usize,
}

/// The timer and the items of a queue, from its first call on that needs them.
pub(super) struct Bound<T> {
    pub(super) place: Place<T>,
    /// Towards the next expiration.
    pub(super) sleep: Sleep,
    /// The tick that the sleep is set to; `None` if it has to be set before it is polled again.
    pub(super) target: Option<Tick>,
}

impl<T> DelayQueue<T> {
    /// Creates an empty queue on the timer of the current runtime, [`Timer::current`].
    ///
    /// The timer is looked up by the first call that needs it: the first insertion, poll or handle. So the queue can be created
    /// outside a runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use futures::StreamExt;
    /// use waterwheel::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let tea = queue.insert("tea", Duration::from_millis(20));
    /// queue.insert("egg", Duration::from_millis(10));
    /// assert_eq!(queue.next().await.unwrap().into_inner(), "egg");
    /// assert_eq!(queue.remove(&tea).into_inner(), "tea");
    /// assert!(queue.next().await.is_none());
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> DelayQueue<T> {
        DelayQueue::with_capacity(0)
    }

    /// Creates an empty queue as [`new`](DelayQueue::new) does, with room for `capacity` items.
    ///
    /// The memory is allocated when the timer is looked up, by the first call that needs it.
    ///
    /// # Panics
    ///
    /// Panics as [`reserve`](DelayQueue::reserve) does.
    #[must_use]
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> DelayQueue<T> {
        let mut queue = DelayQueue {
            bound: None,
            capacity: 0,
        };
        queue.reserve(capacity);
        queue
    }

    /// Creates an empty queue on this timer. This can be called outside a runtime.
    ///
    /// The queue uses the timer's ticks. However many items it holds, it counts as one of the timer's futures: from its creation
    /// on, and later while it waits for an item, including one from a handle. A poll that returns `None` gives its place back.
    /// The next poll that waits for an item takes a place again, even if that exceeds
    /// [`max_pending`](crate::Builder::max_pending).
    ///
    /// # Panics
    ///
    /// Panics if the timer was stopped or has reached its `max_pending`; see [`try_on`](DelayQueue::try_on).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use waterwheel::{DelayQueue, Duration, Timer};
    ///
    /// let timer = Timer::builder().resolution(Duration::from_millis(10)).start()?;
    /// let mut sessions = DelayQueue::on(&timer);
    /// sessions.insert("session 1", Duration::from_secs(1800));
    /// assert_eq!(sessions.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn on(timer: &Timer) -> DelayQueue<T> {
        match DelayQueue::try_on(timer) {
            Ok(queue) => queue,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates an empty queue as [`on`](DelayQueue::on) does, or returns an error.
    ///
    /// # Errors
    ///
    /// [`Error::is_shutdown`] if the timer was stopped, [`Error::is_at_capacity`] if it has reached its `max_pending`.
    pub fn try_on(timer: &Timer) -> Result<DelayQueue<T>, Error> {
        let sleep = timer.try_sleep_until(timer.now())?;
        Ok(DelayQueue {
            bound: Some(Bound::new(sleep, 0)),
            capacity: 0,
        })
    }

    /// Inserts an item that is due `timeout` from now. O(1).
    ///
    /// There is no longest timeout: beyond the range of `Instant`, the item is due at the last instant. If the item is due before
    /// all others, this wakes the task that waits for the queue.
    ///
    /// # Panics
    ///
    /// - If the queue was created by [`new`](DelayQueue::new) and this is the first call that needs the timer: panics outside a
    ///   tokio runtime, in one without `enable_time`, or if the runtime's timer was shut down or drained.
    /// - Panics if the queue already holds about 2³² items.
    #[track_caller]
    pub fn insert(&mut self, value: T, timeout: Duration) -> Key {
        let place = &mut self.bind().place;
        let deadline = place.deadline_after(timeout);
        let tick = place.clock.tick_after(deadline);
        place.items().insert(tick, value)
    }

    /// Inserts an item that is due at `when`. O(1), and does not read the clock.
    ///
    /// An item whose tick has passed is due at once. Otherwise the same as [`insert`](DelayQueue::insert).
    ///
    /// # Panics
    ///
    /// Panics as [`insert`](DelayQueue::insert) does.
    #[track_caller]
    pub fn insert_at(&mut self, value: T, when: Instant) -> Key {
        let place = &mut self.bind().place;
        let tick = place.clock.tick_after(when);
        place.items().insert(tick, value)
    }

    /// Removes an item before it comes out, whether it is due or not. O(1).
    ///
    /// If it was the last one, this wakes the task that waits for the queue, which gets `None`.
    ///
    /// # Panics
    ///
    /// Panics if the item is already gone; see [`try_remove`](DelayQueue::try_remove).
    #[track_caller]
    pub fn remove(&mut self, key: &Key) -> Expired<T> {
        found(self.try_remove(key), key, "`try_remove` returns `None`")
    }

    /// Removes an item as [`remove`](DelayQueue::remove) does, or returns `None` if it is already gone.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let stale = queue.insert("first", Duration::from_secs(1));
    /// queue.remove(&stale);
    /// // It never names the later item at the same place.
    /// queue.insert("second", Duration::from_secs(1));
    /// assert!(queue.try_remove(&stale).is_none());
    /// # }
    /// ```
    #[inline(always)]
    pub fn try_remove(&mut self, key: &Key) -> Option<Expired<T>> {
        let place = self.place()?;
        let ticks = place.ticks;
        place.items().remove(key, ticks)
    }

    /// Moves an item's deadline to `timeout` from now, earlier or later, whether the item is due or not. O(1).
    ///
    /// The item comes after the items that are already at its new tick. A reset to later wakes no task: at the old deadline, the
    /// waiting task is woken once for nothing, unless it was polled in between.
    ///
    /// # Panics
    ///
    /// Panics if the item is already gone; see [`try_reset`](DelayQueue::try_reset).
    #[track_caller]
    pub fn reset(&mut self, key: &Key, timeout: Duration) {
        if !self.try_reset(key, timeout) {
            stale(key, "`try_reset` returns `false`");
        }
    }

    /// Moves an item's deadline to `when`. Otherwise the same as [`reset`](DelayQueue::reset).
    ///
    /// # Panics
    ///
    /// Panics if the item is already gone; see [`try_reset_at`](DelayQueue::try_reset_at).
    #[track_caller]
    pub fn reset_at(&mut self, key: &Key, when: Instant) {
        if !self.try_reset_at(key, when) {
            stale(key, "`try_reset_at` returns `false`");
        }
    }

    /// Moves an item's deadline as [`reset`](DelayQueue::reset) does, or returns `false` if the item is already gone.
    pub fn try_reset(&mut self, key: &Key, timeout: Duration) -> bool {
        let Some(shared) = self.shared() else {
            return false;
        };
        let deadline = shared.deadline_after(timeout);
        self.try_reset_at(key, deadline)
    }

    /// Moves an item's deadline as [`reset_at`](DelayQueue::reset_at) does, or returns `false` if the item is already gone.
    pub fn try_reset_at(&mut self, key: &Key, when: Instant) -> bool {
        let Some(place) = self.place() else {
            return false;
        };
        let tick = place.clock.tick_after(when);
        place.items().reset(key, tick)
    }

    /// Returns the deadline of an item, rounded up to a tick of the queue's timer.
    ///
    /// # Panics
    ///
    /// Panics if the item is already gone; see [`try_deadline`](DelayQueue::try_deadline).
    #[must_use]
    #[track_caller]
    pub fn deadline(&self, key: &Key) -> Instant {
        found(self.try_deadline(key), key, "`try_deadline` returns `None`")
    }

    /// Returns the deadline of an item as [`deadline`](DelayQueue::deadline) does, or `None` if the item is already gone.
    #[must_use]
    pub fn try_deadline(&self, key: &Key) -> Option<Instant> {
        self.shared()?.deadline(key)
    }

    /// Returns the key of the item that comes out next, due or not.
    ///
    /// The cost is that of [`Wheel::peek`](crate::wheel::Wheel::peek): O(1) for most queues, and more if the next items are far
    /// away.
    #[must_use]
    pub fn peek(&self) -> Option<Key> {
        let items = self.shared()?.lock();
        items.wheel.peek().map(|(key, ..)| Key(key))
    }

    /// Drops all items and keeps the memory. A key from before never names an item from after.
    ///
    /// If there were items, this wakes the task that waits for the queue. The cost is that of
    /// [`Wheel::clear`](crate::wheel::Wheel::clear): O(1) if there are no items.
    pub fn clear(&mut self) {
        let Some(place) = self.place() else {
            return;
        };
        let mut removed = place.items().take_all();
        removed.clear();
        // A handle may have inserted meanwhile. Then the queue keeps what it has.
        let spare = place.items().wheel.give_room(removed);
        drop(spare);
    }

    /// Removes all items, and returns their values in no particular order.
    ///
    /// The queue is empty at once. If there were items, this wakes the task that waits for the queue. The iterator frees the
    /// memory.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        let removed = self.place().map(|place| place.items().take_all());
        removed.into_iter().flat_map(Removed::into_payloads)
    }

    /// Frees the memory behind the last item. The same as [`shrink_to_fit`](DelayQueue::shrink_to_fit).
    ///
    /// tokio-util's queue moves its items together and maps keys from then on. Here a key names a place in memory, so that each
    /// operation finds it directly, and no item moves.
    pub fn compact(&mut self) {
        self.shrink_to_fit();
    }

    /// Frees the memory behind the last item. See [`Wheel::shrink_to_fit`](crate::wheel::Wheel::shrink_to_fit).
    pub fn shrink_to_fit(&mut self) {
        self.capacity = 0;
        if let Some(shared) = self.shared() {
            shared.lock().wheel.shrink_to_fit();
        }
    }

    /// Returns how many items the queue can hold without allocating.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared()
            .map_or(self.capacity, |shared| shared.lock().wheel.capacity())
    }

    /// Makes room for at least `additional` more items. See [`Wheel::reserve`](crate::wheel::Wheel::reserve).
    ///
    /// # Panics
    ///
    /// Panics if that would be room for about 2³² items, or for more than `isize::MAX` bytes.
    #[track_caller]
    pub fn reserve(&mut self, additional: usize) {
        match self.shared() {
            Some(shared) => shared.lock().wheel.reserve(additional),
            None => {
                Wheel::<T>::assert_room(additional);
                self.capacity = self.capacity.max(additional);
            }
        }
    }

    /// Returns the number of items, including those that are due and have not come out yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared().map_or(0, Shared::len)
    }

    /// Returns whether the queue has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the queue no longer waits for its items because its timer was stopped. Polls return `None` then until an
    /// item is due. The items are still in the queue.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.bound
            .as_ref()
            .is_some_and(|bound| bound.sleep.has_no_timer())
    }

    /// Returns a handle with which other tasks and threads insert, remove and reset items.
    ///
    /// While there is a handle, an empty queue does not end: a poll waits for the next item. The
    /// [module](crate::delay_queue#handles) has an example.
    ///
    /// # Panics
    ///
    /// Panics as the first [`insert`](DelayQueue::insert) does.
    #[must_use]
    #[track_caller]
    pub fn handle(&mut self) -> Handle<T> {
        self.bind();
        // `bind` has set it.
        let bound = self.bound.take().expect("a queue on a timer");
        let owner = bound.place.share();
        let handle = Handle::new(owner.shared());
        self.bound = Some(Bound {
            place: Place::Shared(owner),
            ..bound
        });
        handle
    }

    /// The queue on its timer, which is the current runtime's if it has none yet.
    #[inline(always)]
    #[track_caller]
    pub(super) fn bind(&mut self) -> &mut Bound<T> {
        if self.bound.is_none() {
            self.bind_to_current();
        }
        self.bound.as_mut().expect("it was bound above")
    }

    #[cold]
    #[track_caller]
    fn bind_to_current(&mut self) {
        // The instant does not matter: each poll sets its own.
        let sleep = sleep_until(Instant::now());
        self.bound = Some(Bound::new(sleep, self.capacity));
    }

    #[inline(always)]
    fn place(&mut self) -> Option<&mut Place<T>> {
        self.bound.as_mut().map(|bound| &mut bound.place)
    }

    fn shared(&self) -> Option<&Shared<T>> {
        self.bound.as_ref().map(|bound| &*bound.place)
    }
}

impl<T> Bound<T> {
    fn new(sleep: Sleep, capacity: usize) -> Bound<T> {
        let shared = Shared::new(sleep.clock().clone(), capacity);
        Bound {
            place: Place::Own(Box::new(shared)),
            sleep,
            target: None,
        }
    }
}

impl<T> Default for DelayQueue<T> {
    fn default() -> DelayQueue<T> {
        DelayQueue::new()
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

#[inline(always)]
#[track_caller]
fn found<R>(found: Option<R>, key: &Key, instead: &str) -> R {
    match found {
        Some(found) => found,
        None => stale(key, instead),
    }
}

#[cold]
#[track_caller]
fn stale(key: &Key, instead: &str) -> ! {
    panic!(
        "no item of this queue has the key {key:?}: it was handed out, removed or cleared, or the key belongs to another \
         queue; {instead} instead of panicking"
    )
}
