//! The timers in memory.

use std::collections::HashMap;

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};
use waterwheel_store::{Due, Id, Row};

use super::Now;

/// How many timers are taken from the wheel in a turn.
const BATCH: usize = 4_096;

/// A row in memory.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) row: Row,
    pub(super) lane: usize,
}

/// What a timer in memory waits for.
#[derive(Debug)]
pub(super) enum Known {
    /// Its time. It is in the wheel.
    Waiting(Key),
    /// Its handler. It was due then.
    Ready(Due),
    /// The end of its delivery.
    Running(Held),
    /// The answer to a commit.
    Leaving(Leaves),
}

/// Why a timer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// It was delivered for the last time.
    Delivered,
    /// It is cancelled, or comes back with another due time.
    Moved,
}

#[derive(Debug)]
pub(super) struct Near {
    wheel: Wheel<Held>,
    known: HashMap<Id, Known>,
    /// What left while rows were being loaded, and the last request by then: what was asked for up to there may have been read before.
    gone: HashMap<Id, u64>,
    running: usize,
    has_backlog: bool,
}

impl Near {
    pub(super) fn new(now: Now) -> Near {
        Near {
            wheel: Wheel::starting_at(Resolution::MILLISECOND, now.tick()),
            known: HashMap::new(),
            gone: HashMap::new(),
            running: 0,
            has_backlog: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// Microseconds since boot at which the wheel is to be turned.
    pub(super) fn next(&self) -> Option<u64> {
        let next = self.wheel.next_expiration()?;
        Some(next.get().saturating_mul(1_000))
    }

    pub(super) fn get(&self, id: Id) -> Option<&Known> {
        self.known.get(&id)
    }

    /// In which second a timer in the wheel is due.
    pub(super) fn second(&self, id: Id) -> Option<i64> {
        match self.known.get(&id)? {
            Known::Waiting(key) => Some(self.wheel.get(*key)?.row.due.second()),
            _ => None,
        }
    }

    /// Puts a timer into the wheel, whatever is known of it.
    pub(super) fn hold(&mut self, held: Held, now: Now) {
        let id = held.row.id;
        let key = self.wheel.insert(now.tick_of(held.row.due), held);
        self.known.insert(id, Known::Waiting(key));
    }

    /// A timer leaves: what is still in the wheel is taken out.
    pub(super) fn leave(&mut self, id: Id, why: Leaves) -> Option<Held> {
        match self.known.insert(id, Known::Leaving(why)) {
            Some(Known::Waiting(key)) => self.wheel.cancel(key),
            Some(Known::Running(held)) => {
                self.running -= 1;
                Some(held)
            }
            _ => None,
        }
    }

    /// A timer is not in memory from now on. Whether anything was known of it.
    pub(super) fn forget(&mut self, id: Id, loading: Option<u64>) -> bool {
        if let Some(last) = loading {
            self.gone.insert(id, last);
        }
        self.known.remove(&id).is_some()
    }

    /// Whether the load of this number may bring a timer: nothing is known of it, and it did not leave since the load was asked for.
    pub(super) fn is_new(&self, id: Id, load: u64) -> bool {
        !self.known.contains_key(&id) && self.gone.get(&id).is_none_or(|last| *last < load)
    }

    /// No load goes on.
    pub(super) fn all_are_loaded(&mut self) {
        self.gone.clear();
    }

    /// A timer that is ready goes to its handler, unless it has left, or went there already.
    pub(super) fn run(&mut self, held: &Held) -> bool {
        let id = held.row.id;
        match self.known.get(&id) {
            Some(Known::Ready(due)) if *due == held.row.due => {
                self.known.insert(id, Known::Running(held.clone()));
                self.running += 1;
                true
            }
            _ => false,
        }
    }

    /// A timer that is ready goes back into the wheel, unless it has left, or went to its handler.
    pub(super) fn wait_again(&mut self, held: Held, now: Now) {
        let is_ready = |known: &Known| matches!(known, Known::Ready(due) if *due == held.row.due);
        if self.known.get(&held.row.id).is_some_and(is_ready) {
            self.hold(held, now);
        }
    }

    /// Takes the timers out of the wheel that are due. The wheel files a timer again whose time the wall clock does not show yet.
    pub(super) fn expire(&mut self, now: Now) -> Vec<Held> {
        let mut ready = Vec::new();
        let tick = now.tick().max(self.wheel.now());
        let known = &mut self.known;
        let progress = self.wheel.advance_in_order(
            tick,
            BATCH,
            |_, _, held| match now.is_past(held.row.due) {
                true => Verdict::Due,
                false => {
                    let later = now.tick_of(held.row.due);
                    Verdict::Postpone(later.max(Tick::new(tick.get() + 1)))
                }
            },
            |_, held| ready.push(held),
        );
        for held in &ready {
            known.insert(held.row.id, Known::Ready(held.row.due));
        }
        self.has_backlog = progress.backlog;
        ready
    }

    /// The clocks have moved against each other.
    pub(super) fn file_again(&mut self, now: Now) {
        let keys: Vec<_> = self
            .wheel
            .iter()
            .map(|(key, _, held)| (key, now.tick_of(held.row.due)))
            .collect();
        for (key, tick) in keys {
            self.wheel.reset(key, tick);
        }
    }
}
