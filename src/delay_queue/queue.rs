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
/// The [module](super) says how it works, what it costs, and what it does that tokio-util's does not. In short:
///
/// - [`insert`](DelayQueue::insert) gives a [`Key`], by which an item is [removed](DelayQueue::remove) or
///   [reset](DelayQueue::reset) until it is handed out.
/// - [`poll_expired`](DelayQueue::poll_expired) hands items out in [order](crate::delay_queue#order) of their ticks. The queue is a `Stream` of them.
///   [`expired_many`](DelayQueue::expired_many) hands out many at a time.
/// - [`handle`](DelayQueue::handle) gives a handle by which other tasks insert.
///
/// Dropping the queue drops its items.
pub struct DelayQueue<T> {
    /// `None` until the first call that needs a timer. So `new` works outside of a runtime, as tokio-util's does.
    bound: Option<Bound<T>>,
    /// What `with_capacity` and `reserve` asked for before that.
    capacity: usize,
}

/// What a queue has from its first call on that needs a timer.
pub(super) struct Bound<T> {
    pub(super) place: Place<T>,
    /// Towards the next expiration.
    pub(super) sleep: Sleep,
    /// The tick that the sleep is set to; `None` if it has to be set before it is polled again.
    pub(super) target: Option<Tick>,
}

impl<T> DelayQueue<T> {
    /// An empty queue on the timer of the current runtime, [`Timer::current`].
    ///
    /// That is looked up at the first call that needs it: the first insertion, poll or handle. So the queue can be made outside of a runtime.
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

    /// As [`new`](DelayQueue::new), with room for `capacity` items. The memory is allocated with the timer, at the first call that
    /// needs it.
    ///
    /// # Panics
    ///
    /// As [`reserve`](DelayQueue::reserve).
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

    /// An empty queue on this timer. Needs no runtime around it.
    ///
    /// Its ticks are the timer's. Whatever number of items it holds, it counts as one of the timer's futures: at first from when it is
    /// made, and then while it waits for an item, also for one of a handle. A poll that gives `None` gives its place back. The next poll that waits for an item
    /// takes a place again, even if that exceeds the [bound](crate::Builder::max_pending).
    ///
    /// # Panics
    ///
    /// If the timer was stopped or has reached its `max_pending`; see [`try_on`](DelayQueue::try_on).
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

    /// [`on`](DelayQueue::on), or an error.
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

    /// Adds an item that is due `timeout` from now. O(1).
    ///
    /// There is no longest timeout: beyond the range of `Instant`, the item is due at the last instant. If the item is
    /// due before all others, the task that waits for the queue is woken.
    ///
    /// # Panics
    ///
    /// - The first time, if the queue was made by [`new`](DelayQueue::new): outside of a tokio runtime, in one without `enable_time`, or
    ///   if the runtime's timer was shut down.
    /// - If the queue already holds about 2³² items.
    #[track_caller]
    pub fn insert(&mut self, value: T, timeout: Duration) -> Key {
        let place = &mut self.bind().place;
        let deadline = place.deadline_after(timeout);
        let tick = place.clock.tick_after(deadline);
        place.items().insert(tick, value)
    }

    /// Adds an item that is due at `when`. O(1), and reads no clock.
    ///
    /// One whose tick has passed is due at once. Otherwise as [`insert`](DelayQueue::insert).
    ///
    /// # Panics
    ///
    /// As [`insert`](DelayQueue::insert).
    #[track_caller]
    pub fn insert_at(&mut self, value: T, when: Instant) -> Key {
        let place = &mut self.bind().place;
        let tick = place.clock.tick_after(when);
        place.items().insert(tick, value)
    }

    /// Takes an item out before it is handed out, whether it is due or not. O(1).
    ///
    /// If it was the last one, the task that waits for the queue is woken, and gets `None`.
    ///
    /// # Panics
    ///
    /// If the item is gone already; see [`try_remove`](DelayQueue::try_remove).
    #[track_caller]
    pub fn remove(&mut self, key: &Key) -> Expired<T> {
        found(self.try_remove(key), key, "`try_remove` returns `None`")
    }

    /// [`remove`](DelayQueue::remove), or `None` if the item is gone already.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let stale = queue.insert("first", Duration::from_secs(1));
    /// queue.remove(&stale);
    /// // Never the item that has come to the same place.
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
    /// Among items of the same tick, it comes after those that are there. A reset to later wakes no task: at the old deadline
    /// the task that waits is woken once for nothing, if it was not polled since.
    ///
    /// # Panics
    ///
    /// If the item is gone already; see [`try_reset`](DelayQueue::try_reset).
    #[track_caller]
    pub fn reset(&mut self, key: &Key, timeout: Duration) {
        if !self.try_reset(key, timeout) {
            stale(key, "`try_reset` returns `false`");
        }
    }

    /// Moves an item's deadline to `when`. Otherwise as [`reset`](DelayQueue::reset).
    ///
    /// # Panics
    ///
    /// If the item is gone already; see [`try_reset_at`](DelayQueue::try_reset_at).
    #[track_caller]
    pub fn reset_at(&mut self, key: &Key, when: Instant) {
        if !self.try_reset_at(key, when) {
            stale(key, "`try_reset_at` returns `false`");
        }
    }

    /// [`reset`](DelayQueue::reset). `false` if the item is gone already.
    pub fn try_reset(&mut self, key: &Key, timeout: Duration) -> bool {
        let Some(shared) = self.shared() else {
            return false;
        };
        let deadline = shared.deadline_after(timeout);
        self.try_reset_at(key, deadline)
    }

    /// [`reset_at`](DelayQueue::reset_at). `false` if the item is gone already.
    pub fn try_reset_at(&mut self, key: &Key, when: Instant) -> bool {
        let Some(place) = self.place() else {
            return false;
        };
        let tick = place.clock.tick_after(when);
        place.items().reset(key, tick)
    }

    /// The deadline of an item, rounded up to a tick of the queue's timer.
    ///
    /// # Panics
    ///
    /// If the item is gone already; see [`try_deadline`](DelayQueue::try_deadline).
    #[must_use]
    #[track_caller]
    pub fn deadline(&self, key: &Key) -> Instant {
        found(self.try_deadline(key), key, "`try_deadline` returns `None`")
    }

    /// [`deadline`](DelayQueue::deadline), or `None` if the item is gone already.
    #[must_use]
    pub fn try_deadline(&self, key: &Key) -> Option<Instant> {
        self.shared()?.deadline(key)
    }

    /// The key of the item that is handed out next, due or not.
    ///
    /// It costs what [`Wheel::peek`](crate::wheel::Wheel::peek) does: O(1) for most queues, and more if the next items are far away.
    #[must_use]
    pub fn peek(&self) -> Option<Key> {
        let items = self.shared()?.lock();
        items.wheel.peek().map(|(key, ..)| Key(key))
    }

    /// Drops all items and keeps the memory. A key from before names no item from after.
    ///
    /// If there were items, the task that waits for the queue is woken. It costs what [`Wheel::clear`](crate::wheel::Wheel::clear) does: O(1) if
    /// there are none.
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
    /// The queue is empty at once. If there were items, the task that waits for the queue is woken. The iterator frees the memory.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        let removed = self.place().map(|place| place.items().take_all());
        removed.into_iter().flat_map(Removed::into_payloads)
    }

    /// Gives memory back: the places behind the last item. The same as [`shrink_to_fit`](DelayQueue::shrink_to_fit).
    ///
    /// tokio-util's moves the items together, and keeps a map of the keys from then on. Here a key names a place, so that each operation
    /// finds it at once, and no item moves.
    pub fn compact(&mut self) {
        self.shrink_to_fit();
    }

    /// Gives memory back: the places behind the last item ([`Wheel::shrink_to_fit`](crate::wheel::Wheel::shrink_to_fit)).
    pub fn shrink_to_fit(&mut self) {
        self.capacity = 0;
        if let Some(shared) = self.shared() {
            shared.lock().wheel.shrink_to_fit();
        }
    }

    /// How many items the queue holds before it allocates again.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared()
            .map_or(self.capacity, |shared| shared.lock().wheel.capacity())
    }

    /// Makes room for at least `additional` more items ([`Wheel::reserve`](crate::wheel::Wheel::reserve)).
    ///
    /// # Panics
    ///
    /// If that would be room for about 2³² items, or more bytes than `isize::MAX`.
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

    /// The number of items, those included that are due and were not handed out yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared().map_or(0, Shared::len)
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the queue waits for items no more because its timer was stopped, so that polls give `None` until one is due. The items are still there.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.bound
            .as_ref()
            .is_some_and(|bound| bound.sleep.has_no_timer())
    }

    /// A handle by which other tasks and threads insert, remove and reset.
    ///
    /// While there is one, an empty queue is not at its end: a poll waits for the next item ([the module](crate::delay_queue#handles) has
    /// an example).
    ///
    /// # Panics
    ///
    /// As the first [`insert`](DelayQueue::insert).
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
        "no item of this queue has the key {key:?}: it was handed out, removed or cleared before, or is another queue's; \
         {instead} then"
    )
}
