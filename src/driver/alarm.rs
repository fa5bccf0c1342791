//! The driver's sleep on tokio's clock, where that clock alone wakes it: it can be paused, or there is no bell.
//!
//! Whoever lowers the target sets the alarm as well, as it would tell the bell: then a timer that is armed
//! costs no run of the driver's task. What the alarm wakes takes the turn on the spot, and sets the alarm for
//! the next one ([`FirstBite`](super::task::FirstBite)). So on a paused clock, where each turn is a jump
//! of the clock, the task does not run at all.

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

#[derive(Default)]
pub(super) struct Alarm(Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    sleep: Option<Pin<Box<Sleep>>>,
    tools: Tools,
}

/// What a turn needs room for. Kept from one to the next.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) shards: Vec<Arc<Shard>>,
    pub(super) batch: Batch,
}

impl Alarm {
    /// To be set with [`State::set`]. Whoever sets it reads the target with this lock held, so that of two at once the
    /// later one, and with it the earlier target, wins.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The tools for a turn; `None` while it is being set. Then tokio, asked to wake at a time that has passed,
    /// has done so within that call.
    pub(super) fn try_tools(&self) -> Option<Tools> {
        Some(std::mem::take(&mut self.0.try_lock()?.tools))
    }

    /// The driver's task ends.
    pub(super) fn forget(&self) {
        let state = std::mem::take(&mut *self.0.lock());
        drop(state);
    }
}

impl State {
    /// Wakes `waker` at this time, or never. `false` if that has come already.
    ///
    /// The first time it must be called in the context of the clock's home runtime.
    pub(super) fn set(&mut self, clock: &Clock, at: Option<Instant>, waker: &Waker) -> bool {
        let Some(at) = at else {
            // tokio's clock must not be held up by, or jump to, an old target. One that has fired is kept:
            // tokio does not know of it any more.
            self.sleep = self.sleep.take().filter(|sleep| sleep.is_elapsed());
            return true;
        };
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            none => none.insert(Box::pin(clock.sleep_until(at))),
        };
        // Whatever is left of the budget of the task that this runs in.
        let sleep = pin!(coop::unconstrained(sleep.as_mut()));
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
