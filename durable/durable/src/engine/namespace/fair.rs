//! Whose delivery begins next?
//!
//! Without a common bound on places, each namespace is served by itself. Where places are short, by deficit round robin, after
//! [Shreedhar and Varghese](https://doi.org/10.1145/217391.217453): a namespace may begin as many deliveries in a round as its priority says, and what it could not
//! begin for want of places it begins first once there are some.

use super::super::Engine;
use super::super::planted::{self, Planted};

impl Engine {
    /// Hands what is ready to handlers that have a place.
    pub(in super::super) fn deliver(&mut self) {
        if self.is_stopping {
            return;
        }
        self.tidy();
        match self.config.concurrency {
            Some(most) => self.serve_fairly(most),
            None => {
                for namespace in 0..self.namespaces.len() {
                    self.serve(namespace, usize::MAX);
                }
            }
        }
    }

    /// A place of this lane is free.
    pub(in super::super) fn deliver_after(&mut self, lane: usize) {
        if self.is_stopping {
            return;
        }
        let namespace = self.lanes[lane].namespace;
        match self.config.concurrency {
            Some(most) => self.serve_fairly(most),
            None if self.namespaces[namespace].is_free() => while self.begin_one(lane) {},
            None => {
                self.serve(namespace, usize::MAX);
            }
        }
    }

    /// When a rate lets the next delivery begin that waits for it, in microseconds since boot.
    pub(in super::super) fn rates_let_at(&self) -> Option<u64> {
        if self
            .config
            .concurrency
            .is_some_and(|most| self.near.running() >= most)
        {
            // The end of a delivery brings it up.
            return None;
        }
        let until = self.namespaces.iter().filter_map(|it| it.waits_until());
        until.min()
    }

    fn serve_fairly(&mut self, most: usize) {
        let count = self.namespaces.len();
        loop {
            let mut begun_in_round = 0;
            for _ in 0..count {
                let free = most.saturating_sub(self.near.running());
                if free == 0 {
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
    fn serve(&mut self, at: usize, most: usize) -> usize {
        let boot = self.now.boot_micros;
        let (mut begun, mut idle) = (0, 0);
        let is_limited = !planted::is(Planted::RateIgnored);
        loop {
            let namespace = &mut self.namespaces[at];
            let lanes = namespace.lanes.len();
            if begun == most || idle == lanes || !namespace.has_place() {
                break;
            }
            let lane = namespace.lanes[namespace.turn % lanes];
            namespace.turn = (namespace.turn + 1) % lanes;
            let waits = namespace.rate.as_ref().is_some_and(|it| !it.has_one(boot));
            if waits && is_limited {
                if !self.is_ready(lane) {
                    idle += 1;
                    continue;
                }
                let namespace = &mut self.namespaces[at];
                namespace.counts.throttled += u64::from(!namespace.waits);
                namespace.waits = true;
                return begun;
            }
            match self.begin_one(lane) {
                true => (begun, idle) = (begun + 1, 0),
                false => idle += 1,
            }
        }
        self.namespaces[at].waits = false;
        begun
    }
}
