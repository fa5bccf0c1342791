//! Which delivery begins next?
//!
//! Without a common bound on places, each namespace is served by itself. Where places are short, by deficit round robin, after
//! [Shreedhar and Varghese](https://doi.org/10.1145/217391.217453): a namespace may begin as many deliveries in a round as its priority says, and what it could not
//! begin for want of places it begins first once there are some.

use std::collections::VecDeque;

use super::super::Engine;
use super::super::planted::{self, Planted};

impl Engine {
    /// Hands what is ready to handlers that have a place.
    pub(in super::super) fn deliver(&mut self) {
        if self.is_stopping {
            return;
        }
        self.tidy();
        self.goes_on_with_trials();
        match self.config.concurrency {
            Some(limit) => self.serve_fairly(limit),
            None => {
                // It matters only where they wait for one another's trials.
                let (count, first) = (self.namespaces.len(), self.turn);
                for at in 0..count {
                    self.serve((first + at) % count, usize::MAX);
                }
            }
        }
    }

    /// A place of this handler queue is free.
    pub(in super::super) fn deliver_after(&mut self, queue: usize) {
        if self.is_stopping {
            return;
        }
        let limit = self.config.concurrency.unwrap_or(usize::MAX);
        if self.is_short {
            return self.serve_fairly(limit);
        }
        // No other namespace waits for the place.
        let namespace = self.queues[queue].namespace;
        match self.namespaces[namespace].is_free() {
            true => while self.loaded.running() < limit && self.begin_one(queue) {},
            false => {
                self.serve(namespace, limit.saturating_sub(self.loaded.running()));
            }
        }
        self.is_short = self.loaded.running() >= limit;
    }

    /// When a rate lets the next delivery begin that waits for it, in microseconds since boot.
    pub(in super::super) fn rates_let_at(&self) -> Option<u64> {
        // Without a place, it waits for the end of a delivery, and not for this.
        let limit = self.config.concurrency;
        if limit.is_some_and(|limit| self.loaded.running() >= limit) {
            return None;
        }
        let until = self.namespaces.iter().filter_map(|it| it.waits_until());
        until.min()
    }

    fn serve_fairly(&mut self, limit: usize) {
        let count = self.namespaces.len();
        self.is_short = false;
        loop {
            let mut begun_in_round = 0;
            for _ in 0..count {
                let free = limit.saturating_sub(self.loaded.running());
                if free == 0 {
                    self.is_short = true;
                    return;
                }
                let at = self.turn % count;
                let namespace = &mut self.namespaces[at];
                if namespace.deficit == 0 {
                    namespace.deficit = namespace.priority();
                }
                let quantum = namespace.deficit;
                let begun = self.serve(at, quantum.min(free));
                begun_in_round += begun;
                let namespace = &mut self.namespaces[at];
                namespace.deficit -= begun;
                if begun < quantum && begun == free && !planted::is(Planted::QuantumForgotten) {
                    // It goes on from here when there is a place.
                    self.is_short = true;
                    return;
                }
                // One that has no more to begin keeps nothing for later.
                namespace.deficit = 0;
                self.turn = at + 1;
            }
            if begun_in_round == 0 {
                return;
            }
        }
    }

    /// Begins deliveries of a namespace, of its handlers by turns, at most so many. Returns how many.
    ///
    /// Each handler is looked at once, and those that begin something are looked at again: a few that have much ready do not take a look at all of them for each delivery.
    fn serve(&mut self, at: usize, limit: usize) -> usize {
        let boot = self.now.boot_micros;
        let mut begun = 0;
        let has_waited = self.namespaces[at].waits;
        let is_limited = !planted::is(Planted::RateIgnored);
        let count = self.namespaces[at].queues.len();
        let first = self.namespaces[at].turn;
        let mut turns = (0..count).map(|turn| (first + turn) % count);
        let mut again = VecDeque::new();
        while begun < limit && self.namespaces[at].has_place() {
            let Some(turn) = turns.next().or_else(|| again.pop_front()) else {
                break;
            };
            let namespace = &self.namespaces[at];
            let queue = namespace.queues[turn];
            if is_limited && !namespace.has_turn(boot) {
                if self.is_ready(queue) {
                    // The handler keeps its turn, however often this is asked until the rate lets it begin.
                    let namespace = &mut self.namespaces[at];
                    (namespace.turn, namespace.waits) = (turn, true);
                    return begun;
                }
            } else if self.begin_one(queue) {
                let namespace = &mut self.namespaces[at];
                namespace.turn = (turn + 1) % count;
                namespace.counts.throttled += u64::from(has_waited);
                begun += 1;
                again.push_back(turn);
            }
        }
        self.namespaces[at].waits = false;
        begun
    }
}
