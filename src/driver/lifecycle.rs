//! What state a `Timer` is in, what a drain waits for beside pending timers, and who waits until it is drained.

use std::task::Waker;

use super::wake_all::wake_all;
use crate::error::Error;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::sync::{Mutex, OwnLine};

/// A `Timer` goes through these from top to bottom, and may leave some out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum State {
    Running,
    /// Takes nothing new.
    Draining,
    /// Stopped by its owner.
    Stopped,
    /// Stopped because its runtime is gone.
    Abandoned,
}

pub(crate) struct Lifecycle {
    /// Every future that is made reads it. It is written at most three times.
    state: AtomicU8,
    /// The wakers for the next `wake_drains`, each by the number of its future. A future that was woken, or has not been polled,
    /// has none here.
    drains: OwnLine<Mutex<Vec<(u64, Waker)>>>,
    callbacks: OwnLine<Callbacks>,
}

/// How many callbacks there were. A drain waits until those that have begun have ended.
struct Callbacks {
    /// Submitted, or about to be.
    begun: AtomicU64,
    /// Have run, were cancelled or were refused.
    ended: AtomicU64,
}

impl Lifecycle {
    pub(super) fn new() -> Lifecycle {
        Lifecycle {
            state: AtomicU8::new(State::Running as u8),
            drains: OwnLine(Mutex::new(Vec::new())),
            callbacks: OwnLine(Callbacks {
                begun: AtomicU64::new(0),
                ended: AtomicU64::new(0),
            }),
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        // Pairs with the change in `advance`. A future that sees `Stopped` also sees what its owner did before.
        match self.state.load(Ordering::Acquire) {
            0 => State::Running,
            1 => State::Draining,
            2 => State::Stopped,
            _ => State::Abandoned,
        }
    }

    /// Whether the `Timer` takes anything new.
    #[inline]
    pub(crate) fn is_open(&self) -> Result<(), Error> {
        match self.state() {
            State::Running => Ok(()),
            _ => Err(Error::shutdown()),
        }
    }

    /// Moves the `Timer` on to a state, unless it is further. Returns the state from before.
    pub(super) fn advance(&self, to: State) -> State {
        // Released to the loads in `state`. Sequentially consistent for the sake of `begin_callback` and `end_callback`.
        match self.state.fetch_max(to as u8, Ordering::SeqCst) {
            0 => State::Running,
            1 => State::Draining,
            2 => State::Stopped,
            _ => State::Abandoned,
        }
    }

    /// Counts a callback that is about to be submitted, and returns its number; an error if the `Timer` takes nothing new.
    ///
    /// All accesses here and in `has_callbacks` are sequentially consistent, as is the change of the state. So a callback that finds the
    /// `Timer` running here is counted when a drain looks, which moves the state first.
    pub(crate) fn begin_callback(&self) -> Result<u64, Error> {
        let number = self.callbacks.begun.fetch_add(1, Ordering::SeqCst);
        if self.state.load(Ordering::SeqCst) == State::Running as u8 {
            return Ok(number);
        }
        self.end_callback();
        Err(Error::shutdown())
    }

    /// Counts the end of a callback. The last one wakes the futures that wait for a drain.
    ///
    /// If this finds the `Timer` running, a drain that moves the state afterwards finds the end counted.
    pub(crate) fn end_callback(&self) {
        let ended = self.callbacks.ended.fetch_add(1, Ordering::SeqCst) + 1;
        let is_last = ended == self.callbacks.begun.load(Ordering::SeqCst);
        if is_last && self.state.load(Ordering::SeqCst) != State::Running as u8 {
            self.wake_drains();
        }
    }

    /// Whether a callback has begun and not ended.
    pub(super) fn has_callbacks(&self) -> bool {
        // In this order: one that begins and ends in between does not hide another.
        let ended = self.callbacks.ended.load(Ordering::SeqCst);
        ended != self.callbacks.begun.load(Ordering::SeqCst)
    }

    /// Keeps a waker until [`wake_drains`](Lifecycle::wake_drains). Of the wakers under one `number`, it keeps the last.
    pub(super) fn await_drain(&self, number: u64, waker: Waker) {
        let mut drains = self.drains.lock();
        let replaced = match drains.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                drains.push((number, waker));
                None
            }
        };
        drop(drains);
        drop(replaced);
    }

    /// Lets go of the waker under this number.
    pub(super) fn forget_drain(&self, number: u64) {
        let mut drains = self.drains.lock();
        let at = drains.iter().position(|(known, _)| *known == number);
        let waker = at.map(|at| drains.swap_remove(at));
        drop(drains);
        drop(waker);
    }

    /// Wakes the futures that wait for a drain. They look again.
    pub(super) fn wake_drains(&self) {
        let drains = std::mem::take(&mut *self.drains.lock());
        wake_all(drains.into_iter().map(|(_, waker)| waker));
    }
}
