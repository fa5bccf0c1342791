//! The operations of a `Timer` on a whole shard: stop, drain, count.

use std::task::Waker;

use super::Shard;
use crate::driver::metrics::Metrics;
use crate::wheel::{Tick, Wheel};

impl Shard {
    /// Ends everything that is pending. Returns the wakers, to be woken with no lock held.
    pub(in crate::driver) fn stop(&self) -> Vec<Waker> {
        let mut locked = self.lock();
        let Some(mut wheel) = locked.wheel.take() else {
            return Vec::new();
        };
        locked.stopped += wheel.len() as u64;
        locked.cascaded = wheel.cascaded();
        self.set_next(&mut locked, Tick::MAX);
        drop(locked);
        wheel.drain().flatten().collect()
    }

    /// From now on, the shard wakes the futures that wait for a drain when it becomes empty.
    pub(in crate::driver) fn start_draining(&self) {
        self.lock().is_draining = true;
    }

    pub(in crate::driver) fn is_empty(&self) -> bool {
        let locked = self.lock();
        locked.wheel.as_ref().is_none_or(Wheel::is_empty)
    }

    /// The tick of the earliest pending timer. Timers that were postponed are filed under their present deadlines, as far as this finds any.
    pub(in crate::driver) fn earliest(&self) -> Option<Tick> {
        let mut locked = self.lock();
        let wheel = locked.wheel.as_mut()?;
        loop {
            let (key, filed, _) = wheel.peek()?;
            let deadline = self.postponed.deadline(key.index(), filed);
            if deadline <= filed {
                return Some(filed);
            }
            wheel.reset(key, deadline);
        }
    }

    /// Adds what this shard has counted.
    pub(super) fn add_to(&self, metrics: &mut Metrics) {
        let locked = self.lock();
        let wheel = locked.wheel.as_ref();
        metrics.armed += locked.armed;
        metrics.fired += locked.fired;
        metrics.cancelled += locked.cancelled;
        metrics.stopped += locked.stopped;
        metrics.pending += wheel.map_or(0, |wheel| wheel.len() as u64);
        metrics.cascaded += wheel.map_or(locked.cascaded, Wheel::cascaded);
        metrics.lateness.add(&locked.lateness);
    }
}
