//! Which delivery begins next?
//!
//! Without a common bound on places, each namespace is served by itself. Where places are short, by deficit round robin, after
//! [Shreedhar and Varghese](https://doi.org/10.1145/217391.217453): a namespace may begin as many deliveries in a round as its priority says, and what it could not
//! begin for want of places it begins first once there are some.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::{Op, Row};

use super::{Namespaces, burial};
use crate::engine::clocks::Now;
use crate::engine::io::{Delivery, Output};
use crate::engine::memory::Memory;
use crate::engine::planted::{self, Planted};
use crate::engine::poison::Poison;
use crate::engine::store_link::StoreLink;

impl Namespaces {
    /// Hands what is ready to handlers that have a place.
    pub(in crate::engine) fn deliver(
        &mut self,
        now: Now,
        memory: &mut Memory,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) {
        memory.tidy();
        poison.continue_trials();
        match self.config.concurrency {
            Some(limit) => self.serve_fairly(limit, now, memory, poison, link),
            None => {
                // It matters only where they wait for one another's trials.
                let (count, first) = (self.all.len(), self.turn);
                for at in 0..count {
                    self.serve((first + at) % count, usize::MAX, now, memory, poison, link);
                }
            }
        }
    }

    /// A place of this handler queue is free.
    pub(in crate::engine) fn deliver_after(
        &mut self,
        queue: usize,
        now: Now,
        memory: &mut Memory,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) {
        let limit = self.config.concurrency.unwrap_or(usize::MAX);
        if self.is_short {
            return self.serve_fairly(limit, now, memory, poison, link);
        }
        // No other namespace waits for the place.
        let namespace = memory.queues[queue].namespace;
        match self.all[namespace].is_free() {
            true => {
                while memory.loaded.running() < limit
                    && self.begin_one(queue, now, memory, poison, link)
                {}
            }
            false => {
                let free = limit.saturating_sub(memory.loaded.running());
                self.serve(namespace, free, now, memory, poison, link);
            }
        }
        self.is_short = memory.loaded.running() >= limit;
    }

    /// When a rate lets the next delivery begin that waits for it, in microseconds since boot, if so many run.
    pub(in crate::engine) fn rates_let_at(&self, running: usize) -> Option<u64> {
        // Without a place, it waits for the end of a delivery, and not for this.
        let limit = self.config.concurrency;
        if limit.is_some_and(|limit| running >= limit) {
            return None;
        }
        let until = self.all.iter().filter_map(|it| it.waits_until());
        until.min()
    }

    fn serve_fairly(
        &mut self,
        limit: usize,
        now: Now,
        memory: &mut Memory,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) {
        let count = self.all.len();
        self.is_short = false;
        loop {
            let mut begun_in_round = 0;
            for _ in 0..count {
                let free = limit.saturating_sub(memory.loaded.running());
                if free == 0 {
                    self.is_short = true;
                    return;
                }
                let at = self.turn % count;
                let namespace = &mut self.all[at];
                if namespace.deficit == 0 {
                    namespace.deficit = namespace.priority();
                }
                let quantum = namespace.deficit;
                let begun = self.serve(at, quantum.min(free), now, memory, poison, link);
                begun_in_round += begun;
                let namespace = &mut self.all[at];
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
    /// Each handler is checked once, and those that begin something are checked again: a few that have much ready do not cost a check of all of them for each delivery.
    fn serve(
        &mut self,
        at: usize,
        limit: usize,
        now: Now,
        memory: &mut Memory,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) -> usize {
        let mut begun = 0;
        let has_waited = self.all[at].waits;
        let is_limited = !planted::is(Planted::RateIgnored);
        let count = self.all[at].queues.len();
        let first = self.all[at].turn;
        let mut turns = (0..count).map(|turn| (first + turn) % count);
        let mut again = VecDeque::new();
        while begun < limit && self.all[at].has_place() {
            let Some(turn) = turns.next().or_else(|| again.pop_front()) else {
                break;
            };
            let namespace = &self.all[at];
            let queue = namespace.queues[turn];
            if is_limited && !namespace.has_turn(now.boot_micros) {
                if memory.is_ready(queue, now, poison) {
                    // The handler keeps its turn, however often this is asked until the rate lets it begin.
                    let namespace = &mut self.all[at];
                    (namespace.turn, namespace.waits) = (turn, true);
                    return begun;
                }
            } else if self.begin_one(queue, now, memory, poison, link) {
                let namespace = &mut self.all[at];
                namespace.turn = (turn + 1) % count;
                namespace.counts.throttled += u64::from(has_waited);
                begun += 1;
                again.push_back(turn);
            }
        }
        self.all[at].waits = false;
        begun
    }

    /// Begins the next delivery of a handler queue, if it has a place and something is ready.
    fn begin_one(
        &mut self,
        index: usize,
        now: Now,
        memory: &mut Memory,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) -> bool {
        memory.count_check();
        let namespace = memory.queues[index].namespace;
        if memory.queues[index].running >= memory.queues[index].concurrency {
            return false;
        }
        while let Some(up) = memory.next_up(index, now, poison) {
            let Some(row) = memory.loaded.run(&up, now) else {
                continue;
            };
            if let Some(error) = poison.verdict(&row, self.all[namespace].policy.starts) {
                // A timer that ends the process is given up.
                if let Some((row, _)) = memory.loaded.end(row.id) {
                    link.push(burial(row, Arc::from(error), now));
                }
                continue;
            }
            memory.queues[index].running += 1;
            self.all[namespace].running += 1;
            if poison.is_suspect(&row) {
                // Its start is noted first.
                self.note_trial(&row, namespace, None, poison);
                self.all[namespace].starting += 1;
                link.push(Op::Start(poison.noted(row)));
            } else {
                self.hand_out(row, namespace, now, link);
            }
            return true;
        }
        false
    }

    /// The start of a timer was noted: it goes to its handler.
    pub(in crate::engine) fn call(
        &mut self,
        row: &Row,
        namespace: usize,
        now: Now,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) {
        self.note_trial(row, namespace, Some(now.boot_micros), poison);
        let row = Row {
            starts: row.starts.saturating_add(1),
            ..row.clone()
        };
        self.hand_out(row, namespace, now, link);
    }

    /// A timer goes to its handler.
    fn hand_out(&mut self, row: Row, namespace: usize, now: Now, link: &mut StoreLink) {
        let at = now.boot_micros;
        self.all[namespace].calls(at);
        link.put_out(Output::Deliver(Delivery { row, at }));
    }

    /// The trial of an accused timer begins, or goes on to its handler. Then it is the turn of the next namespace.
    fn note_trial(&mut self, row: &Row, namespace: usize, begun: Option<u64>, poison: &mut Poison) {
        if poison.tries(row, namespace, begun) && self.config.concurrency.is_none() {
            self.turn = namespace + 1;
        }
    }
}
