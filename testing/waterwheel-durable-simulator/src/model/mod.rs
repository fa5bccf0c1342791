//! The oracle: checks that the promises are kept.
//!
//! | file | question |
//! |---|---|
//! | `timer` | what is known of a timer? |
//! | `answers` | is an answer correct? |
//! | `deliveries` | is a delivery expected, and as it was inserted? |
//! | `ends` | what is left at an end, of a process and of a life? |

mod answers;
mod deliveries;
mod ends;
mod timer;

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use waterwheel_durable_core::engine::Token;
use waterwheel_durable_core::store::{Due, Handle, Id, Row};

pub use timer::Settled;
use timer::Timer;

/// The observable state of the timers: from answers and from deliveries.
#[derive(Debug)]
pub struct Model {
    timers: HashMap<Id, Timer>,
    in_flight: HashMap<Token, InFlight>,
    /// All inserts, by token: a payload begins with the token of its insert.
    inserts: HashMap<Token, Insert>,
    /// Requests whose handle is wrong. They may find the timer nevertheless.
    forged: HashSet<Token>,
    tokens: Token,
    /// The possible numbers of consecutive processes that have ended uncleanly.
    unclean_ends: RangeInclusive<u32>,
    /// Timers that are said to have fired, but were not delivered: their starts should be noted.
    said_to_have_fired: HashSet<Id>,
    /// The timers that commits should remove, or move to a later attempt, by request to the store.
    leaving: HashMap<u64, Vec<Id>>,
}

#[derive(Debug)]
struct Insert {
    timer: Row,
    /// The timer that was created.
    id: Option<Id>,
    /// Whether the answer was that nothing was done.
    is_undone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    This,
    Earlier,
}

#[derive(Debug)]
enum InFlight {
    Insert,
    Cancel(Id),
    Reschedule(Id, Due),
    Redrive(Id),
}

/// An error is a promise that was broken, in words.
pub type Kept = Result<(), String>;

impl Default for Model {
    fn default() -> Model {
        Model {
            timers: HashMap::new(),
            in_flight: HashMap::new(),
            inserts: HashMap::new(),
            forged: HashSet::new(),
            tokens: 0,
            unclean_ends: 0..=0,
            said_to_have_fired: HashSet::new(),
            leaving: HashMap::new(),
        }
    }
}

/// The number of unclean ends after which starts are noted.
const NOTED_FROM: u32 = 2;

impl Model {
    /// Notes an insert, writes its token before the payload, and returns it.
    pub fn inserts(&mut self, timer: &mut Row) -> Token {
        let token = self.note(InFlight::Insert);
        timer.payload = [&token.to_le_bytes()[..], &timer.payload].concat().into();
        let insert = Insert {
            timer: timer.clone(),
            id: None,
            is_undone: false,
        };
        self.inserts.insert(token, insert);
        token
    }

    /// Notes a cancel, and returns its token.
    pub fn cancels(&mut self, id: Id) -> Token {
        self.note(InFlight::Cancel(id))
    }

    /// Whether a timer was inserted with a key.
    #[must_use]
    pub fn has_key(&self, id: Id) -> bool {
        self.timers.get(&id).is_some_and(|it| it.key.is_some())
    }

    /// Notes a reschedule, and returns its token.
    pub fn reschedules(&mut self, id: Id, due: Due) -> Token {
        if let Some(timer) = self.timers.get_mut(&id) {
            // The timer may be due at the new time from now on.
            timer.dues.push(due);
            timer.may_have_moved();
        }
        self.note(InFlight::Reschedule(id, due))
    }

    /// Whether a redrive of this timer waits for its answer.
    #[must_use]
    pub fn is_redriven(&self, id: Id) -> bool {
        let mut in_flight = self.in_flight.values();
        in_flight.any(|request| matches!(request, InFlight::Redrive(other) if *other == id))
    }

    /// Notes a redrive, and returns its token.
    pub fn redrives(&mut self, id: Id) -> Token {
        if let Some(timer) = self.timers.get_mut(&id) {
            // The timer may be delivered again before the answer.
            timer.has_ended = timer.has_ended.map(|_| Process::Earlier);
            (timer.failures, timer.least_failures, timer.written_failures) = (0, 0, 0);
            timer.not_before = None;
            timer.was_redriven = true;
            timer.may_have_moved();
        }
        self.note(InFlight::Redrive(id))
    }

    /// The timer that a request should remove or move.
    #[must_use]
    pub fn moves(&self, token: Token) -> Option<Id> {
        match self.in_flight.get(&token)? {
            InFlight::Insert => None,
            InFlight::Cancel(id) | InFlight::Reschedule(id, _) | InFlight::Redrive(id) => Some(*id),
        }
    }

    /// Notes that the handle of this request is wrong.
    pub fn forges(&mut self, token: Token) {
        self.forged.insert(token);
    }

    fn note(&mut self, request: InFlight) -> Token {
        self.tokens += 1;
        self.in_flight.insert(self.tokens, request);
        self.tokens
    }

    /// A random timer that was inserted.
    #[must_use]
    pub fn any(&self, rng: &mut fastrand::Rng) -> Option<Handle> {
        let mut ids: Vec<_> = self.timers.keys().copied().collect();
        ids.sort_unstable();
        let id = rng.choice(ids)?;
        Some(self.timers[&id].handle.clone())
    }

    /// One of the timers that are delivered next, at random: most of the engine's work concerns them.
    #[must_use]
    pub fn any_near(&self, rng: &mut fastrand::Rng) -> Option<Handle> {
        let near = self.timers.values().filter(|it| it.is_open());
        let mut near: Vec<_> = near.map(|it| (it.dues.last(), &it.handle)).collect();
        near.sort_unstable_by_key(|(due, handle)| (*due, handle.id));
        near.truncate(4);
        rng.choice(near).map(|(_, handle)| handle.clone())
    }
}
