//! What the driver does with a shard: turn it, stop it, drain it, count it.

use std::task::Waker;

use super::{Shard, State};
use crate::driver::batch::Batch;
use crate::driver::metrics::Metrics;
use crate::sync::atomic::Ordering;
use crate::wheel::{CASCADES_PER_FIRE, Key, Met, Tick, Verdict, Walk, Wheel};
use tokio::time::Instant;

/// How many timers are served with a shard's lock held; and by a turn of a shard, before it gives
/// way to the tasks that it woke, unless it came late.
pub(in crate::driver) const BITE: usize = 128;

/// Who turns a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Driver,
    /// The last part of the driver's turn. If it leaves a backlog, the driver gives way.
    DriverLastly,
    Help,
}

impl Shard {
    /// Serves at most `bite` timers that are due by `now`, which is in `tick`, and wakes their tasks.
    ///
    /// # Order
    ///
    /// The first turn after a sleep serves in order of deadline, equal ticks first in, first out. If it does not
    /// reach the end, the turns after it are fair instead: they serve the oldest and the freshest alternately, so that a
    /// herd does not hold up its neighbours. On a clock that is or was paused every turn serves in
    /// order: there, time waits for the driver.
    ///
    /// Wakers are woken without the lock, so two turns at once would mix the order. A shard that another thread turns is left to
    /// that thread.
    pub(in crate::driver) fn turn(&self, now: Instant, tick: Tick, bite: usize, batch: &mut Batch) {
        if self.is_turned.swap(true, Ordering::Acquire) {
            return;
        }
        let mut left = bite;
        while left > 0 && self.next() <= tick {
            let part = left.min(BITE);
            left -= part;
            let by = if left > 0 {
                By::Driver
            } else {
                By::DriverLastly
            };
            self.turn_part(now, tick, part, by, batch);
            batch.wake();
        }
        batch.finish();
        self.is_turned.store(false, Ordering::Release);
    }

    /// Serves one part of a turn for a driver that is late.
    pub(in crate::driver) fn help(&self, now: Instant) {
        if self.is_turned.swap(true, Ordering::Acquire) {
            return;
        }
        let mut batch = Batch::default();
        self.turn_part(now, self.clock.tick_before(now), BITE, By::Help, &mut batch);
        batch.finish();
        self.is_turned.store(false, Ordering::Release);
    }

    /// Moves the hand and puts the wakers of at most `budget` timers that are due by `now` into `batch`.
    fn turn_part(&self, now: Instant, tick: Tick, budget: usize, by: By, batch: &mut Batch) {
        let clock = &self.clock;
        let is_warped = self.shared.is_warped();
        let mut state = self.state.lock();
        let State {
            wheel: Some(wheel),
            fired,
            lateness,
            gave_way,
            ..
        } = &mut *state
        else {
            return;
        };
        let until = tick.max(wheel.now());
        let nanos = clock.nanos(now);
        let mut last = (Tick::MAX, 0);
        let mut judge = |met: Met, key: Key, filed: Tick, waker: &mut Option<Waker>| {
            let deadline = self.postponed.get(key.index()).unwrap_or(filed);
            if deadline > met.hand {
                return Verdict::Refile(deadline);
            }
            *fired += 1;
            // Most come up with others of their tick.
            if deadline != last.0 {
                last = (deadline, clock.nanos_since(nanos, deadline));
            }
            lateness.record(last.1);
            self.postponed.park_unless_moved(key.index());
            if let Some(waker) = waker.take() {
                batch.push(met, waker);
            }
            Verdict::Park
        };
        let progress = if is_warped || !*gave_way {
            let (cascades, walk) = match by {
                // However far a clock that can be paused has jumped, that is one turn.
                _ if is_warped => (usize::MAX, Walk::Front),
                By::Help => (budget * CASCADES_PER_FIRE, Walk::Front),
                // Two misses of the cache at once. For what keeps the order see `batch`.
                By::Driver | By::DriverLastly => (budget * CASCADES_PER_FIRE, Walk::FrontAndBack),
            };
            wheel.advance_slot_by_slot(until, budget, cascades, walk, judge, |_, _| ())
        } else {
            let fair = |key, filed, waker: &mut Option<Waker>| {
                let met = Met {
                    hand: until,
                    at_back: false,
                };
                judge(met, key, filed, waker)
            };
            wheel.advance(until, budget, fair, |_, _| ())
        };
        *gave_way = progress.backlog && (*gave_way || by == By::DriverLastly);
        let next = wheel.quiet_until();
        state.published = next;
        self.next.store(next.get(), Ordering::SeqCst);
        self.unlock(state);
    }

    /// Ends everything that is pending and gives its wakers.
    pub(in crate::driver) fn stop(&self) -> Vec<Waker> {
        let mut state = self.state.lock();
        let Some(mut wheel) = state.wheel.take() else {
            return Vec::new();
        };
        state.stopped += wheel.len() as u64;
        state.cascaded = wheel.cascaded();
        state.published = Tick::MAX;
        self.next.store(Tick::MAX.get(), Ordering::SeqCst);
        drop(state);
        wheel.drain().flatten().collect()
    }

    /// From now on, tells when nothing is pending any more.
    pub(in crate::driver) fn start_draining(&self) {
        self.state.lock().draining = true;
    }

    pub(in crate::driver) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.wheel.as_ref().is_none_or(Wheel::is_empty)
    }

    pub(in crate::driver) fn add_to(&self, metrics: &mut Metrics) {
        let state = self.state.lock();
        let wheel = state.wheel.as_ref();
        metrics.armed += state.armed;
        metrics.fired += state.fired;
        metrics.cancelled += state.cancelled;
        metrics.stopped += state.stopped;
        metrics.pending += wheel.map_or(0, |wheel| wheel.len() as u64);
        metrics.cascaded += wheel.map_or(state.cascaded, Wheel::cascaded);
        metrics.lateness.add(&state.lateness);
    }
}
