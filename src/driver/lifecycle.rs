//! What state a `Timer` is in, and who waits until it is drained.

use std::task::Waker;

use super::wake_all::wake_all;
use crate::error::Error;
use crate::sync::atomic::{AtomicU8, Ordering};
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
}

impl Lifecycle {
    pub(super) fn new() -> Lifecycle {
        Lifecycle {
            state: AtomicU8::new(State::Running as u8),
            drains: OwnLine(Mutex::new(Vec::new())),
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
        // Released to the loads in `state`.
        match self.state.fetch_max(to as u8, Ordering::AcqRel) {
            0 => State::Running,
            1 => State::Draining,
            2 => State::Stopped,
            _ => State::Abandoned,
        }
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
