//! The state that the queue and its handles share, behind one lock.
//!
//! Values are dropped, and wakers are cloned, woken and dropped, after the lock is given back.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::task::Waker;

use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::sync::{Mutex, MutexGuard};
use crate::wheel::{self, Removed, Tick, Wheel};

pub(super) struct Shared<T> {
    pub(super) clock: Clock,
    pub(super) ticks: Ticking,
    items: Mutex<Items<T>>,
}

pub(super) struct Items<T> {
    pub(super) wheel: Wheel<T>,
    /// The latest time that was read. What is due by then is handed out without another look at the clock.
    pub(super) now: Tick,
    /// The waker of the last poll that handed out nothing.
    pub(super) waker: Option<Waker>,
    /// The tick that this poll waits for; `None` if there was no item. What is filed for an earlier tick wakes the task, and
    /// makes this zero until a poll waits again. So no item is due before it, if it is after `now`.
    pub(super) waits_for: Option<Tick>,
    pub(super) handles: usize,
    /// The queue is gone: no item would ever come out.
    pub(super) is_closed: bool,
}

impl<T> Shared<T> {
    pub(super) fn new(clock: Clock, capacity: usize) -> Shared<T> {
        let now = clock.now_tick();
        let mut wheel = Wheel::starting_at(clock.resolution(), now);
        wheel.reserve(capacity);
        Shared {
            ticks: Ticking::of(&clock),
            clock,
            items: Mutex::new(Items {
                wheel,
                now,
                waker: None,
                waits_for: None,
                handles: 0,
                is_closed: false,
            }),
        }
    }

    pub(super) fn lock(&self) -> Guard<'_, T> {
        Guard::Locked(self.items.lock())
    }

    pub(super) fn deadline(&self, key: &Key) -> Option<Instant> {
        let tick = self.lock().wheel.deadline(key.0)?;
        Some(self.ticks.instant_of(tick))
    }

    pub(super) fn len(&self) -> usize {
        self.lock().wheel.len()
    }

    /// The deadline `timeout` from now. Beyond the range of `Instant` it is the last instant.
    #[inline]
    pub(super) fn deadline_after(&self, timeout: Duration) -> Instant {
        let now = self.clock.now();
        match now.checked_add(timeout) {
            Some(deadline) => deadline,
            None => end_of_time(now),
        }
    }
}

/// Where the owner has the items.
pub(super) enum Place<T> {
    /// No handle was ever made: nothing is locked.
    Own(Box<Shared<T>>),
    Shared(Owner<T>),
}

/// The owner's half of what is shared with handles.
pub(super) struct Owner<T>(Arc<Shared<T>>);

impl<T> Drop for Owner<T> {
    /// No item is taken from now on: it would never come out.
    fn drop(&mut self) {
        let mut items = self.0.lock();
        items.is_closed = true;
        let waker = items.waker.take();
        let removed = items.wheel.take_all();
        drop(items);
        drop(waker);
        drop(removed);
    }
}

/// Access to the items: the owner's, which locks them only if there was a handle, or a handle's.
pub(super) enum Guard<'a, T> {
    Own(&'a mut Items<T>),
    Locked(MutexGuard<'a, Items<T>>),
}

impl<T> Place<T> {
    #[inline]
    pub(super) fn items(&mut self) -> Guard<'_, T> {
        self.clock_and_items().1
    }

    #[inline]
    pub(super) fn clock_and_items(&mut self) -> (&Clock, Guard<'_, T>) {
        match self {
            Place::Own(own) => (&own.clock, Guard::Own(own.items.get_mut())),
            Place::Shared(owner) => (&owner.0.clock, Guard::Locked(owner.0.items.lock())),
        }
    }

    /// The items with the lock that handles need.
    pub(super) fn share(self) -> Owner<T> {
        match self {
            Place::Own(own) => Owner(Arc::new(*own)),
            Place::Shared(owner) => owner,
        }
    }
}

impl<T> Owner<T> {
    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
        &self.0
    }
}

impl<T> Deref for Place<T> {
    type Target = Shared<T>;

    #[inline]
    fn deref(&self) -> &Shared<T> {
        match self {
            Place::Own(own) => own,
            Place::Shared(owner) => &owner.0,
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = Items<T>;

    #[inline]
    fn deref(&self) -> &Items<T> {
        match self {
            Guard::Own(items) => items,
            Guard::Locked(items) => items,
        }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Items<T> {
        match self {
            Guard::Own(items) => items,
            Guard::Locked(items) => items,
        }
    }
}

// The operations of a queue and its handles. They unlock, and wake the task that must be told.
impl<T> Guard<'_, T> {
    #[inline(always)]
    pub(super) fn insert(mut self, tick: Tick, value: T) -> Key {
        let items = &mut *self;
        let key = items.wheel.insert(tick, value);
        let waker = items.waker_of_wait_beyond(tick);
        self.unlock_and_wake(waker);
        Key(key)
    }

    #[inline(always)]
    pub(super) fn remove(mut self, key: &Key, ticks: Ticking) -> Option<Expired<T>> {
        let items = &mut *self;
        let tick = items.wheel.deadline(key.0)?;
        let value = items.wheel.cancel(key.0)?;
        let waker = items.waker_if_over();
        self.unlock_and_wake(waker);
        Some(Expired::new((key.0, tick, value), ticks))
    }

    /// Returns whether the item was there.
    #[inline(always)]
    pub(super) fn reset(mut self, key: &Key, tick: Tick) -> bool {
        let items = &mut *self;
        if !items.wheel.reset(key.0, tick) {
            return false;
        }
        let waker = items.waker_of_wait_beyond(tick);
        self.unlock_and_wake(waker);
        true
    }

    /// Empties the queue. The caller drops what it gets, without the lock.
    pub(super) fn take_all(mut self) -> Removed<T> {
        let removed = self.wheel.take_all();
        let waker = match removed.len() {
            0 => None,
            _ => self.waker_if_over(),
        };
        self.unlock_and_wake(waker);
        removed
    }

    pub(super) fn one_handle_less(mut self) {
        self.handles -= 1;
        let waker = self.waker_if_over();
        self.unlock_and_wake(waker);
    }

    #[inline(always)]
    fn unlock_and_wake(self, waker: Option<Waker>) {
        drop(self);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Items<T> {
    /// The waker of the task that waits for a later tick than this one, or for any item at all.
    #[inline]
    fn waker_of_wait_beyond(&mut self, tick: Tick) -> Option<Waker> {
        match self.waits_for {
            Some(waits_for) if waits_for <= tick => None,
            _ => {
                self.waits_for = Some(Tick::ZERO);
                self.waker.take()
            }
        }
    }

    /// The waker, if a poll gives `None` now.
    #[inline]
    fn waker_if_over(&mut self) -> Option<Waker> {
        match self.wheel.is_empty() && self.handles == 0 {
            true => self.waker.take(),
            false => None,
        }
    }

    #[inline]
    pub(super) fn read(&mut self, clock: &Clock) {
        self.now = self.now.max(clock.now_tick());
    }

    /// The next step of a poll that has found nothing due. `is_stored` says that this poll has stored its waker: two clones of a waker
    /// need not say that they wake the same task.
    pub(super) fn next_step(&mut self, clock: &Clock, waker: &Waker, is_stored: bool) -> Step {
        let stored = self.waker.as_ref();
        if self.wheel.has_backlog() {
            Step::Again
        } else if !stored.is_some_and(|stored| is_stored || stored.will_wake(waker)) {
            Step::StoreWaker
        } else {
            // From here on, what is filed for an earlier tick wakes the task.
            self.waits_for = match clock.was_paused() {
                false => self.wheel.next_expiration(),
                true => self.earliest(),
            };
            match self.waits_for {
                Some(next) => Step::Wait(next),
                None if self.handles > 0 => Step::WaitForHandles,
                None => Step::Over,
            }
        }
    }

    /// The tick before which no item is due, on a clock that is moved to where its timers wait: it must not stop at a cascade.
    ///
    /// A look at the items may be a look at many. So it is taken again only when what it has found is over or gone for sure, or an item is
    /// filed before that, and not at each poll or removal. So the clock may stop at the tick of an item that is gone, once.
    #[cold]
    fn earliest(&self) -> Option<Tick> {
        let next = self.wheel.next_expiration()?;
        let may_be_there = |tick: &Tick| *tick > self.now && *tick >= next;
        self.waits_for
            .filter(may_be_there)
            .or_else(|| Some(self.wheel.peek()?.1))
    }
}

/// The next step of a poll.
pub(super) enum Step {
    /// More is to cascade than a batch. Handles get the lock in between.
    Again,
    StoreWaker,
    Wait(Tick),
    WaitForHandles,
    Over,
}

/// Identifies an item of a [`DelayQueue`](super::DelayQueue), from its insertion until it is returned, removed or cleared.
///
/// A key has a generation: no two of the queue's last 2³² − 1 insertions have the same one. So the key of an item that is gone
/// never names a later item. Use a key only with its own queue: in another queue it may name an item of that one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub(super) wheel::Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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

/// Converts a queue's ticks into instants without its clock. An item that was handed out takes it along.
#[derive(Clone, Copy)]
pub(super) struct Ticking {
    epoch: Instant,
    tick_nanos: u32,
}

impl Ticking {
    pub(super) fn of(clock: &Clock) -> Ticking {
        Ticking {
            epoch: clock.epoch(),
            tick_nanos: clock.resolution().nanos(),
        }
    }

    /// The start of a tick. Beyond the range of `Instant` it is the last instant.
    pub(super) fn instant_of(self, tick: Tick) -> Instant {
        let nanos = u128::from(tick.get()) * u128::from(self.tick_nanos);
        let second = u128::from(NANOS_A_SECOND);
        // 2⁶⁴ ticks of a second are as many seconds.
        let since = Duration::new((nanos / second) as u64, (nanos % second) as u32);
        let instant = self.epoch.checked_add(since);
        instant.unwrap_or_else(|| end_of_time(self.epoch))
    }
}

const NANOS_A_SECOND: u32 = 1_000_000_000;

/// The last instant. std has no name for it.
#[cold]
pub(super) fn end_of_time(now: Instant) -> Instant {
    let (mut end, mut step) = (now, Duration::from_secs(1 << 63));
    while step > Duration::ZERO {
        match end.checked_add(step) {
            Some(later) => end = later,
            None => step /= 2,
        }
    }
    end
}
