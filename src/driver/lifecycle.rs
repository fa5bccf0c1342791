//! How far a `Timer` is in its life, what a drain waits for besides pending timers, and who waits until it is drained.

use std::fmt;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Waker;

use tokio::runtime::Handle;

use super::host;
use crate::error::Error;
use crate::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use crate::sync::wake_all;
use crate::sync::{Mutex, OwnLine};

/// Takes nothing new.
const DRAINING: u8 = 1;
/// Its owner stopped it: everything that was pending is ready.
const STOPPED: u8 = 2;
/// Its runtime drops its tasks, the driver among them.
const ENDING: u8 = 4;
/// Its runtime has dropped its tasks.
const OVER: u8 = 8;

/// Whether the owner of any runtime's timer has drained or stopped it. Never cleared.
static ANY_CLOSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Whether the timers of all runtimes take futures. A call that comes after a shutdown sees it.
#[inline]
pub(crate) fn all_are_open() -> bool {
    // Relaxed: no other data depends on it.
    !ANY_CLOSED.load(Ordering::Relaxed)
}

pub(crate) struct Lifecycle {
    /// These bits, each of which is set once and never cleared. Every future that is made reads them.
    state: AtomicU8,
    /// Whether the free functions of a runtime use it.
    is_of_runtime: bool,
    /// The runtime of a timer on a manual clock. It may be without `enable_time`, so no sleep of tokio's tells when it is over.
    home_by_hand: Option<Handle>,
    /// Waits for the end of the runtime's clock, from `ENDING` to `OVER`.
    end_of_clock: OnceLock<Pin<Box<host::TokioSleep>>>,
    /// The wakers for the next `wake_drains`, each by the number of its future. A future that was woken, or has not been polled,
    /// has none here.
    drains: OwnLine<Mutex<Vec<(u64, Waker)>>>,
    callbacks: OwnLine<Callbacks>,
}

/// How a timer has ended for a future that finds its wheel gone.
pub(crate) enum End {
    /// Its owner stopped it.
    Stopped,
    /// Its runtime is ending, and the caller is one of the tasks that it drops next.
    TaskOfEndingRuntime,
    /// Its runtime has ended.
    Over,
}

/// The number of callbacks. A drain waits until those that have begun have ended.
struct Callbacks {
    /// Submitted, or about to be.
    begun: AtomicU64,
    /// Have run, were cancelled or were refused.
    ended: AtomicU64,
}

impl Lifecycle {
    /// `home_by_hand` is the runtime, if the timer is on a manual clock.
    pub(super) fn new(is_of_runtime: bool, home_by_hand: Option<Handle>) -> Lifecycle {
        Lifecycle {
            state: AtomicU8::new(0),
            is_of_runtime,
            home_by_hand,
            end_of_clock: OnceLock::new(),
            drains: OwnLine(Mutex::new(Vec::new())),
            callbacks: OwnLine(Callbacks {
                begun: AtomicU64::new(0),
                ended: AtomicU64::new(0),
            }),
        }
    }

    #[inline]
    fn has(&self, bits: u8) -> bool {
        // Pairs with the change in `set`. A future that sees a stop also sees what its owner did before.
        self.state.load(Ordering::Acquire) & bits != 0
    }

    /// Sets these bits. Returns whether the first of them, `bit`, was clear.
    fn set(&self, bit: u8, others: u8) -> bool {
        // Released to the loads in `has`. Sequentially consistent for the sake of `begin_callback` and `end_callback`.
        self.state.fetch_or(bit | others, Ordering::SeqCst) & bit == 0
    }

    /// Whether the `Timer` takes anything new.
    ///
    /// While its runtime ends it does: tasks run to their next `.await` then, and must neither panic nor get an error.
    #[inline]
    pub(crate) fn is_open(&self) -> Result<(), Error> {
        match self.has(DRAINING | STOPPED | ENDING | OVER) {
            false => Ok(()),
            true => self.is_open_to_ending(),
        }
    }

    #[cold]
    fn is_open_to_ending(&self) -> Result<(), Error> {
        if self.is_closing() || self.has(OVER) && !self.is_polled_at_home_by_hand() {
            return Err(Error::shutdown());
        }
        Ok(())
    }

    /// Whether its owner drains or stopped it.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.has(DRAINING | STOPPED)
    }

    /// Whether its owner stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.has(STOPPED)
    }

    /// Whether its owner stopped it or its runtime has dropped its tasks: then nothing is armed any more.
    pub(crate) fn is_stopped_or_over(&self) -> bool {
        self.has(STOPPED | OVER)
    }

    /// Whether its owner stopped it, or its runtime is ending or has ended: no driver turns it any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has(STOPPED | ENDING)
    }

    /// Whether its runtime has dropped its tasks.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.has(OVER)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.has(DRAINING)
    }

    fn note_closing(&self) {
        if self.is_of_runtime {
            ANY_CLOSED.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn drain(&self) {
        self.note_closing();
        self.set(DRAINING, 0);
    }

    /// Its owner stops it. Returns whether this is the first time.
    pub(super) fn stop(&self) -> bool {
        self.note_closing();
        self.set(STOPPED, DRAINING)
    }

    /// Its runtime begins to drop its tasks.
    pub(super) fn begin_ending(&self) {
        self.set(ENDING, 0);
    }

    /// Its runtime has dropped its tasks. Returns whether this is the first time.
    pub(super) fn end(&self) -> bool {
        self.set(OVER, ENDING)
    }

    /// Keeps the sleep that is woken when the clock of the runtime ends.
    pub(super) fn keep_end_of_clock(&self, sleep: Pin<Box<host::TokioSleep>>) {
        let _ = self.end_of_clock.set(sleep);
    }

    /// Whether the timer is on a manual clock.
    pub(super) fn is_by_hand(&self) -> bool {
        self.home_by_hand.is_some()
    }

    /// How a future that finds its wheel gone ends.
    #[cold]
    pub(crate) fn end_seen_here(&self) -> End {
        if self.is_stopped() {
            End::Stopped
        } else if self.is_polled_at_home_by_hand() {
            End::TaskOfEndingRuntime
        } else {
            End::Over
        }
    }

    /// Whether this thread runs a task of the runtime of a timer on a manual clock.
    ///
    /// Other timers are told by tokio's clock when the last task of their runtime has gone.
    fn is_polled_at_home_by_hand(&self) -> bool {
        self.home_by_hand.as_ref().is_some_and(host::runs_this_task)
    }

    /// Counts a callback that is about to be submitted, and returns its number; an error if the `Timer` takes nothing new.
    ///
    /// All accesses here and in `has_callbacks` are sequentially consistent, as is the change of the state. So a callback that finds the
    /// `Timer` running here is counted when a drain looks, which moves the state first.
    pub(crate) fn begin_callback(&self) -> Result<u64, Error> {
        let number = self.callbacks.begun.fetch_add(1, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        let is_closing = state & (DRAINING | STOPPED) != 0;
        if !is_closing && (state & OVER == 0 || self.is_polled_at_home_by_hand()) {
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
        if is_last && self.state.load(Ordering::SeqCst) != 0 {
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

/// How far it is.
impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match () {
            () if self.is_stopped() => "Stopped",
            () if self.is_over() => "Over",
            () if self.has(ENDING) => "Ending",
            () if self.is_draining() => "Draining",
            () => "Running",
        })
    }
}

/// The permits of a `Timer` with a `max_pending`. A future holds one from when it is made until it completes or is dropped
/// (`time::Phase::holds_permit`).
///
/// Relaxed throughout: the count alone matters, and it orders no other data.
#[derive(Debug)]
pub(crate) struct Permits {
    most: usize,
    taken: AtomicUsize,
}

impl Permits {
    pub(super) fn new(most: usize) -> Permits {
        Permits {
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes a permit if one is left.
    pub(crate) fn try_take(&self) -> Result<(), Error> {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.most).then_some(taken + 1)
            })
            .map_err(|_| Error::at_capacity())?;
        Ok(())
    }

    /// Takes a permit even if none is left: for a future that was done and is reset.
    pub(crate) fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }
}
