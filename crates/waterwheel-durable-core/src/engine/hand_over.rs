//! Hands the store over to another process while handlers are running, and takes over from such a process.
//!
//! An engine that is stopping hands over with its next commit. From then on, it only reports how its deliveries end. Those that end while that commit is in flight wait
//! for its outcome, since a report of a timer that was not handed over would be lost.
//!
//! The engine that takes over counts these deliveries against the limits of handlers and namespaces, and settles or moves their timers once their ends are
//! reported. The limit of the process does not include them.

use crate::store::{Ended, Id, Op};
use foldhash::{HashMap, HashSet};

use super::loaded::Loaded;
use super::memory::Memory;
use super::planted::{self, Planted};
use super::poison::Poison;
use super::store_link::StoreLink;

/// The end of a delivery. `None`: its handler was not called.
pub(super) type End = Option<Ended>;

#[derive(Debug)]
pub(super) struct HandOver {
    is_possible: bool,
    state: State,
    /// The timers whose handlers are running in other processes, as far as is known.
    remote: HashSet<Id>,
}

#[derive(Debug)]
enum State {
    /// The store belongs to this engine.
    Own,
    /// The step that hands over is in a commit that is in flight, or in the next one. These deliveries have ended since.
    InProgress(Vec<(Id, End)>),
    Done,
}

impl HandOver {
    pub(super) fn new(is_possible: bool) -> HandOver {
        HandOver {
            is_possible,
            state: State::Own,
            remote: HashSet::default(),
        }
    }

    /// Does not hand over, because the handlers end together with this engine.
    pub(super) fn disable(&mut self) {
        self.is_possible = false;
    }

    /// Writes the last steps of a clean shutdown, if no commit is in flight. With running handlers that were not abandoned, it hands the store over, or waits for
    /// them.
    pub(super) fn end_cleanly(
        &mut self,
        is_abandoned: bool,
        loaded: &Loaded,
        poison: &mut Poison,
        link: &mut StoreLink,
    ) {
        let has_running = loaded.running() > 0 && !is_abandoned;
        let is_ready = match has_running {
            true => self.is_possible && !self.is_begun() && link.has_only_own_steps(),
            false => link.is_clear(),
        };
        if !is_ready {
            return;
        }
        if let Some(clean_end) = poison.clean_end() {
            link.push(clean_end);
        }
        if has_running {
            self.state = State::InProgress(Vec::new());
            link.push(Op::HandOver(loaded.with_handlers()));
        }
    }

    /// Whether a hand-over is in progress or done.
    pub(super) fn is_begun(&self) -> bool {
        !matches!(self.state, State::Own)
    }

    /// The step that reports the end of a delivery that was handed over.
    pub(super) fn report(&self, id: Id, end: &End) -> Option<Op> {
        let is_done = matches!(self.state, State::Done);
        is_done.then(|| Op::Report(id, end.clone()))
    }

    /// Defers the end of a delivery while a hand-over is in progress. Otherwise returns it.
    pub(super) fn defer(&mut self, id: Id, end: End) -> Option<End> {
        if let State::InProgress(ends) = &mut self.state {
            ends.push((id, end));
            return None;
        }
        Some(end)
    }

    /// The number of deliveries whose ends are deferred.
    pub(super) fn deferred(&self) -> usize {
        match &self.state {
            State::InProgress(ends) => ends.len(),
            State::Own | State::Done => 0,
        }
    }

    /// The commit is durable, or was refused. Returns the ends that were deferred.
    pub(super) fn finished(&mut self, is_done: bool) -> Vec<(Id, End)> {
        let next = match is_done {
            true => State::Done,
            false => State::Own,
        };
        match std::mem::replace(&mut self.state, next) {
            State::InProgress(ends) => ends,
            State::Own | State::Done => Vec::new(),
        }
    }

    /// Adds a timer whose handler is running in another process.
    pub(super) fn add_remote(&mut self, id: Id) {
        self.remote.insert(id);
    }

    pub(super) fn has_remote(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Removes and returns the remote deliveries that have ended, given what the store returns. If it does not return one, its handler was not called, or its
    /// process has ended.
    pub(super) fn take_ended(&mut self, stored: Vec<(Id, End)>, memory: &Memory) -> Vec<(Id, End)> {
        let mut stored: HashMap<Id, End> = stored.into_iter().collect();
        let mut ended = Vec::new();
        self.remote.retain(|id| {
            let end = match stored.remove(id) {
                None => None,
                Some(Some(end))
                    if memory.can_apply(*id, &end) && !planted::is(Planted::EndsNotRead) =>
                {
                    Some(end)
                }
                Some(_) => return true,
            };
            ended.push((*id, end));
            false
        });
        // In the same order in each run of the simulator.
        ended.sort_unstable_by_key(|(id, _)| *id);
        ended
    }
}
