//! What the driver does with a shard: turn it, stop it, drain it, count it.

use std::task::Waker;

use super::{Shard, State};
use crate::driver::metrics::Metrics;
use crate::sync::atomic::Ordering;
use crate::wheel::{Key, Tick, Verdict, Wheel};
use tokio::time::Instant;

impl Shard {
    /// Moves the hand to `now` and puts the wakers of at most `budget` due timers into `batch`.
    pub(in crate::driver) fn turn(&self, now: Instant, budget: usize, batch: &mut Vec<Waker>) {
        let clock = &self.clock;
        let mut state = self.state.lock();
        let State {
            wheel: Some(wheel),
            fired,
            lateness,
            ..
        } = &mut *state
        else {
            return;
        };
        let hand = clock.tick_before(now).max(wheel.now());
        let nanos = clock.nanos(now);
        let mut last = (Tick::MAX, 0);
        let judge = |key: Key, filed: Tick, waker: &mut Option<Waker>| {
            let deadline = self.postponed.get(key.index()).unwrap_or(filed);
            if deadline > hand {
                return Verdict::Refile(deadline);
            }
            *fired += 1;
            // Most come up with others of their tick.
            if deadline != last.0 {
                last = (deadline, clock.nanos_since(nanos, deadline));
            }
            lateness.record(last.1);
            self.postponed.park(key.index());
            batch.extend(waker.take());
            Verdict::Park
        };
        wheel.advance(hand, budget, judge, |_, _| ());
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
