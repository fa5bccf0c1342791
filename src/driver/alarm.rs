//! The driver's sleep on tokio's clock, where that clock alone wakes the driver: a clock that is or was paused, or
//! any clock if there is no bell.
//!
//! A future that lowers the target also sets the alarm, as it tells the bell elsewhere. So a timer that is armed does not
//! wake the driver's task. What the alarm wakes takes the turn within tokio's clock, and sets the alarm for the
//! next one ([`FirstBite`](super::task::FirstBite)). On a paused clock each turn is a jump of the clock, and the
//! driver's task runs for none of them. `benches/LOG.md` has the figures.
//!
//! tokio's sleep is reset and polled with the alarm's lock held. What it wakes within that is the driver's own. With
//! tokio's unstable tracing a subscriber hears of it too; it must not arm timers there.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};

use tokio::task::coop;
use tokio::time::Instant;

use super::batch::Batch;
use super::clock::Clock;
use super::host::Sleep;
use super::shard::Shard;
use crate::sync::{Mutex, MutexGuard};
use crate::wheel::Tick;

pub(super) struct Alarm(Mutex<State>);

pub(super) struct State {
    /// In one place on the heap, whether there is one or not.
    sleep: Pin<Box<Option<Sleep>>>,
    tools: Tools,
}

/// What a turn works with. Its room is kept from one to the next.
#[derive(Default)]
pub(super) struct Tools {
    /// The shards that are still in use; empty between two turns.
    pub(super) shards: Vec<Arc<Shard>>,
    /// How many shards there had ever been when these were listed.
    pub(super) enlisted: u64,
    pub(super) batch: Batch,
}

impl Tools {
    /// Room for a usual turn, made at once: no turn takes more for good.
    pub(super) fn new() -> Tools {
        Tools {
            shards: Vec::with_capacity(4),
            enlisted: 0,
            batch: Batch::new(),
        }
    }

    /// When the first of the shards must be looked at.
    pub(super) fn next(&self) -> Tick {
        let next = self.shards.iter().map(|shard| shard.next()).min();
        next.unwrap_or(Tick::MAX)
    }
}

impl Alarm {
    pub(super) fn new() -> Alarm {
        Alarm(Mutex::new(State {
            sleep: Box::pin(None),
            tools: Tools::new(),
        }))
    }

    /// To be set with [`State::set`]. Read the target with this lock held: of two threads that set it at once, the
    /// later one then sets it to the earlier target.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The tools for a turn; `None` while a thread sets the alarm. That may be this thread: tokio wakes within
    /// `reset` if the time has passed.
    pub(super) fn try_tools(&self) -> Option<Tools> {
        Some(std::mem::take(&mut self.0.try_lock()?.tools))
    }

    /// The driver's task ends.
    pub(super) fn forget(&self) {
        self.0.lock().sleep.set(None);
    }
}

impl State {
    /// Wakes `waker` at this time, or never. `false` if the time has come already.
    ///
    /// The first time it must be called in the context of the clock's home runtime.
    pub(super) fn set(&mut self, clock: &Clock, at: Option<Instant>, waker: &Waker) -> bool {
        let Some(at) = at else {
            // tokio's clock must not be held up by, or jump to, an old target. One that has fired is kept:
            // tokio does not know of it any more.
            if self
                .sleep
                .as_ref()
                .as_pin_ref()
                .is_some_and(|sleep| !sleep.is_elapsed())
            {
                self.sleep.set(None);
            }
            return true;
        };
        match self.sleep.as_mut().as_pin_mut() {
            Some(sleep) => sleep.reset(at),
            None => self.sleep.set(Some(clock.sleep_until(at))),
        }
        let Some(sleep) = self.sleep.as_mut().as_pin_mut() else {
            unreachable!("it has just been set");
        };
        // Whatever is left of the budget of the task that this runs in.
        let sleep = pin!(coop::unconstrained(sleep));
        sleep.poll(&mut Context::from_waker(waker)).is_pending()
    }

    /// Whether it has been set before, so that it can be from outside of the runtime.
    pub(super) fn is_made(&self) -> bool {
        self.sleep.is_some()
    }

    pub(super) fn put_back(&mut self, tools: Tools) {
        self.tools = tools;
    }
}
