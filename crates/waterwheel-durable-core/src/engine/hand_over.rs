//! Hands the store over to another process while handlers still run, and takes over from such a process.
//!
//! An engine that is stopping hands over once everything else is written. From then on it only reports how its deliveries end. Those that end while the
//! commit that hands over is in flight wait for its outcome, since a report of a timer that was not handed over would be lost.
//!
//! The engine that takes over counts these deliveries against its limits, and settles or moves their timers once their ends are reported.

use crate::store::{Ended, Id, Op};
use foldhash::{HashMap, HashSet};

use super::loaded::Loaded;
use super::planted::{self, Planted};
use super::poison::Poison;
use super::store_link::StoreLink;

/// The end of a delivery. `None`: its handler was not called.
pub(super) type End = Option<Ended>;

#[derive(Debug)]
pub(super) struct HandOver {
    is_possible: bool,
    state: State,
    /// The deliveries of other processes whose ends are not known.
    elsewhere: HashSet<Id>,
}

#[derive(Debug)]
enum State {
    /// The store belongs to this engine.
    Own,
    /// The commit that hands over is in flight. These deliveries have ended since.
    InFlight(Vec<(Id, End)>),
    HandedOver,
}

impl HandOver {
    pub(super) fn new(is_possible: bool) -> HandOver {
        HandOver {
            is_possible,
            state: State::Own,
            elsewhere: HashSet::default(),
        }
    }

    /// Writes the last steps of a clean shutdown. If handlers of this process run and were not abandoned, it either hands the store over or waits for them.
    pub(super) fn end_cleanly(
        &mut self,
        loaded: &Loaded,
        is_abandoned: bool,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) {
        let goes_on = self.of_this_process(loaded.running()) > 0 && !is_abandoned;
        if goes_on && (!self.is_possible || self.has_begun()) {
            return;
        }
        if let Some(clean_end) = poison.clean_end() {
            link.push(clean_end);
        }
        if goes_on {
            let mut running = loaded.with_handlers();
            running.retain(|id| !self.elsewhere.contains(id));
            self.state = State::InFlight(Vec::new());
            link.push(Op::HandOver(running));
        }
    }

    /// Whether it was begun, and not refused.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Own)
    }

    /// The step that reports the end of a delivery, if it was handed over.
    pub(super) fn report(&self, id: Id, end: &End) -> Option<Op> {
        let is_done = matches!(self.state, State::HandedOver);
        is_done.then(|| Op::Report(id, end.clone()))
    }

    /// Keeps the end of a delivery while the commit that hands over is in flight, or returns it.
    pub(super) fn keep(&mut self, id: Id, end: End) -> Option<End> {
        if let State::InFlight(ends) = &mut self.state {
            ends.push((id, end));
            return None;
        }
        Some(end)
    }

    /// The commit is durable, or was refused. Returns the deliveries that have ended meanwhile.
    pub(super) fn completed(&mut self, is_done: bool) -> Vec<(Id, End)> {
        let next = match is_done {
            true => State::HandedOver,
            false => State::Own,
        };
        match std::mem::replace(&mut self.state, next) {
            State::InFlight(ends) => ends,
            State::Own | State::HandedOver => Vec::new(),
        }
    }

    /// Adds a delivery of another process.
    pub(super) fn add(&mut self, id: Id) {
        self.elsewhere.insert(id);
    }

    pub(super) fn is_any_elsewhere(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// How many of the deliveries that are with handlers are with those of this process.
    pub(super) fn of_this_process(&self, running: usize) -> usize {
        running - self.elsewhere.len()
    }

    /// Removes the deliveries of other processes that have ended, given the ids of those that have not and the ends of the others. Those in neither are over
    /// as well, without an end.
    pub(super) fn take_ended(&mut self, mut ends: Vec<(Id, End)>) -> Vec<(Id, End)> {
        if planted::is(Planted::EndsNotRead) {
            ends.iter_mut().for_each(|(_, end)| *end = None);
        }
        let mut ends: HashMap<Id, End> = ends.into_iter().collect();
        let mut ended = Vec::new();
        self.elsewhere.retain(|id| match ends.remove(id) {
            Some(None) => true,
            end => {
                ended.push((*id, end.flatten()));
                false
            }
        });
        // So that they end in the same order each time.
        ended.sort_unstable_by_key(|(id, _)| *id);
        ended
    }
}
