//! Decides which delivery begins next.
//!
//! Without a common bound on places, each namespace is served independently. With one, deficit round robin is used, after
//! [Shreedhar and Varghese](https://doi.org/10.1145/217391.217453): in each round, a namespace may begin as many deliveries as its priority says, and those that it
//! could not begin for lack of places begin first once places are free.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::{Op, Row};

use super::{Namespaces, burial};
use crate::engine::io::{Delivery, Output};
use crate::engine::memory::Memory;
use crate::engine::planted::{self, Planted};
use crate::engine::poison::Poison;
use crate::engine::store_link::StoreLink;

/// The parts of the engine that are needed to begin a delivery.
#[derive(Debug)]
pub(in crate::engine) struct Deliveries<'a> {
    pub(in crate::engine) namespaces: &'a mut Namespaces,
    pub(in crate::engine) memory: &'a mut Memory,
    pub(in crate::engine) poison: &'a mut Poison,
    pub(in crate::engine) link: &'a mut StoreLink,
}

impl Namespaces {
    /// When a rate allows the next delivery that waits for it, in microseconds since boot, given the number of running deliveries.
    pub(in crate::engine) fn rates_let_at(&self, running: usize) -> Option<u64> {
        // Without a free place, it waits for a delivery to end instead.
        let limit = self.config.concurrency;
        if limit.is_some_and(|limit| running >= limit) {
            return None;
        }
        let until = self.all.iter().filter_map(|it| it.waits_until());
        until.min()
    }
}

impl Deliveries<'_> {
    /// Hands ready timers to handlers that have a free place.
    pub(in crate::engine) fn deliver(&mut self) {
        self.memory.tidy();
        self.poison.continue_trials();
        match self.namespaces.config.concurrency {
            Some(limit) => self.serve_fairly(limit),
            None => {
                // The order only matters when namespaces wait for each other's trials.
                let (count, first) = (self.namespaces.all.len(), self.namespaces.turn);
                for at in 0..count {
                    self.serve((first + at) % count, usize::MAX);
                }
            }
        }
    }

    /// Fills a place that has become free in this handler queue.
    pub(in crate::engine) fn deliver_after(&mut self, queue: usize) {
        let limit = self.namespaces.config.concurrency.unwrap_or(usize::MAX);
        if self.namespaces.is_short {
            return self.serve_fairly(limit);
        }
        // No other namespace waits for the place.
        let namespace = self.memory.queues[queue].namespace;
        match self.namespaces[namespace].is_free() {
            true => while self.memory.loaded.running() < limit && self.begin_one(queue) {},
            false => {
                let free = limit.saturating_sub(self.memory.loaded.running());
                self.serve(namespace, free);
            }
        }
        self.namespaces.is_short = self.memory.loaded.running() >= limit;
    }

    fn serve_fairly(&mut self, limit: usize) {
        let count = self.namespaces.all.len();
        self.namespaces.is_short = false;
        loop {
            let mut begun_in_round = 0;
            for _ in 0..count {
                let free = limit.saturating_sub(self.memory.loaded.running());
                if free == 0 {
                    self.namespaces.is_short = true;
                    return;
                }
                let at = self.namespaces.turn % count;
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
                    // Continues from here when a place is free.
                    self.namespaces.is_short = true;
                    return;
                }
                // A namespace with nothing more to begin carries nothing over.
                namespace.deficit = 0;
                self.namespaces.turn = at + 1;
            }
            if begun_in_round == 0 {
                return;
            }
        }
    }

    /// Begins at most `limit` deliveries of a namespace, alternating between its handlers. Returns how many began.
    ///
    /// Each handler is checked once, and those that begin something are checked again, so a few busy handlers do not cost a check of all of them for each delivery.
    fn serve(&mut self, at: usize, limit: usize) -> usize {
        let now = self.link.now;
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
            if is_limited && !namespace.has_turn(now.boot_micros) {
                if self.memory.is_ready(queue, now, self.poison) {
                    // The handler keeps its turn, however often this is called until the rate allows it to begin.
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

    /// Begins the next delivery of a handler queue, if it has a place and something is ready.
    fn begin_one(&mut self, index: usize) -> bool {
        self.memory.count_check();
        let now = self.link.now;
        let namespace = self.memory.queues[index].namespace;
        if self.memory.queues[index].running >= self.memory.queues[index].concurrency {
            return false;
        }
        while let Some(up) = self.memory.next_up(index, now, self.poison) {
            let Some(row) = self.memory.loaded.run(&up, now) else {
                continue;
            };
            let limit = self.namespaces[namespace].policy.starts;
            if let Some(error) = self.poison.verdict(&row, limit) {
                // A timer that repeatedly ends the process is given up.
                if let Some(it) = self.memory.loaded.end(row.id) {
                    self.link.push(burial(it.row, Arc::from(error), now));
                }
                continue;
            }
            self.memory.queues[index].running += 1;
            self.namespaces[namespace].running += 1;
            if self.poison.is_suspect(&row) {
                // Its start is noted first.
                self.note_trial(&row, namespace, None);
                self.namespaces[namespace].starting += 1;
                self.link.push(Op::Start(self.poison.noted(row)));
            } else {
                self.hand_out(row, namespace);
            }
            return true;
        }
        false
    }

    /// Hands a timer whose start was noted to its handler.
    pub(in crate::engine) fn call(&mut self, row: &Row, namespace: usize) {
        self.note_trial(row, namespace, Some(self.link.now.boot_micros));
        let row = Row {
            starts: row.starts.saturating_add(1),
            ..row.clone()
        };
        self.hand_out(row, namespace);
    }

    /// Hands a timer to its handler.
    fn hand_out(&mut self, row: Row, namespace: usize) {
        let at = self.link.now.boot_micros;
        self.namespaces[namespace].calls(at);
        self.link.put_out(Output::Deliver(Delivery { row, at }));
    }

    /// Records the trial of an accused timer, before and after its start is noted. Then it is the next namespace's turn.
    fn note_trial(&mut self, row: &Row, namespace: usize, begun: Option<u64>) {
        if self.poison.tries(row, namespace, begun) && self.namespaces.config.concurrency.is_none()
        {
            self.namespaces.turn = namespace + 1;
        }
    }
}
