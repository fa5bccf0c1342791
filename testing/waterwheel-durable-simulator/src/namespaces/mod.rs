//! The oracle of namespaces: checks that their promises are kept.
//!
//! | file | question |
//! |---|---|
//! | `terms` | which policy does a namespace have? |
//! | `limits` | may a delivery begin, or a timer be inserted, now? |
//! | `archive` | which timers may expire, and which are certainly kept? |
//! | `allowance` | how many permits does a rate give by now? |
//! | `shares` | does each namespace get its share when places are short? |

mod allowance;
mod archive;
mod limits;
mod shares;
mod terms;

use std::collections::HashMap;

use waterwheel_durable_core::engine::{Answer, Token};
use waterwheel_durable_core::store::Setting;

use crate::model::Kept;
pub use allowance::{Allowance, Limit};
pub use shares::Shares;
pub use terms::{Retries, Terms};

/// The names of all namespaces. The first one always exists.
pub const NAMES: [&str; 3] = ["default", "shop", "bank"];

/// The number of unclean ends that a timer may be with its handler at, and how many of them are not noted.
const STARTS: u32 = 5;
const NOT_NOTED: u32 = 2;

/// How long nothing expires after a start or a jump, in microseconds.
const CALM: u64 = 600_000_000;

const DAY: i64 = 86_400_000_000;

/// Tokens of namespaces, apart from those of timers and of calendars.
const TOKENS: Token = 1 << 39;

/// The observable state of the namespaces.
#[derive(Debug)]
pub struct Namespaces {
    all: [Namespace; NAMES.len()],
    in_flight: HashMap<Token, InFlight>,
    tokens: Token,
    /// The first day that is certainly kept, by handler: earlier ones had to expire.
    kept_from: HashMap<String, i64>,
    cleared: HashMap<String, u64>,
    /// When the clock last jumped, in microseconds since boot.
    calm_since: u64,
    /// The day before which the archive may expire.
    may_expire: [i64; NAMES.len()],
}

#[derive(Debug)]
struct Namespace {
    /// The terms that may hold. The last ones are those of the last answer.
    terms: Vec<Terms>,
    /// Whether it is paused, if that is known.
    is_paused: Option<bool>,
    is_drained: bool,
    /// The allowance for deliveries to begin, and for timers to be inserted.
    begun: Allowance,
    inserted: Allowance,
    /// Whether it has had another policy in this process.
    has_changed: bool,
}

#[derive(Debug)]
enum InFlight {
    Policy(usize, Terms),
    Pause(usize, bool),
}

/// The index of a handler's namespace.
#[must_use]
pub fn of(handler: &str) -> usize {
    let name = handler.split_once('/').map_or(NAMES[0], |(name, _)| name);
    let at = NAMES.iter().position(|it| *it == name);
    at.unwrap_or_default()
}

impl Namespaces {
    /// Namespaces with these terms, before the first process [begins](Namespaces::begins).
    #[must_use]
    pub fn new(terms: [Terms; NAMES.len()], boot: u64) -> Namespaces {
        Namespaces {
            all: terms.map(|terms| Namespace {
                terms: vec![terms],
                is_paused: Some(false),
                is_drained: false,
                begun: Allowance::default(),
                inserted: Allowance::default(),
                has_changed: false,
            }),
            in_flight: HashMap::new(),
            tokens: 0,
            kept_from: HashMap::new(),
            cleared: HashMap::new(),
            calm_since: boot,
            may_expire: [i64::MIN; NAMES.len()],
        }
    }

    /// Whether an answer must be checked here.
    #[must_use]
    pub fn is_in_flight(token: Token) -> bool {
        (TOKENS..2 * TOKENS).contains(&token)
    }

    fn note(&mut self, request: InFlight) -> Token {
        self.tokens += 1;
        let token = TOKENS + self.tokens;
        self.in_flight.insert(token, request);
        token
    }

    /// Notes a request for another policy, and returns its token.
    pub fn asks_for(&mut self, at: usize, terms: Terms) -> Token {
        self.note(InFlight::Policy(at, terms))
    }

    /// Notes a request to pause or to resume, and returns its token.
    pub fn pauses(&mut self, at: usize, is_paused: bool) -> Token {
        self.note(InFlight::Pause(at, is_paused))
    }

    /// Notes whether the namespace is drained, so that nothing begins in this process.
    pub fn drains(&mut self, at: usize, is_drained: bool) {
        self.all[at].is_drained = is_drained;
    }

    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// If the answer contradicts what is known.
    pub fn answered(&mut self, token: Token, answer: &Answer, boot: u64) -> Kept {
        let Some(request) = self.in_flight.remove(&token) else {
            return Err(format!("request {token} was answered twice: {answer:?}"));
        };
        match (request, answer) {
            (InFlight::Policy(at, terms), Answer::Done) => {
                let namespace = &mut self.all[at];
                namespace.begun.change(terms.rate, boot);
                namespace.inserted.renew(terms.quota, boot);
                namespace.has_changed = true;
                namespace.terms = vec![terms];
                Ok(())
            }
            (InFlight::Pause(at, is_paused), Answer::Done) => {
                self.all[at].is_paused = Some(is_paused);
                self.all[at].is_drained &= is_paused;
                Ok(())
            }
            (request, Answer::Unknown(_)) => {
                self.unknown(request);
                Ok(())
            }
            (_, Answer::Refused(_) | Answer::Failed(_) | Answer::ShuttingDown) => Ok(()),
            (request, answer) => Err(format!("{answer:?} is no answer to {request:?}")),
        }
    }

    fn unknown(&mut self, request: InFlight) {
        match request {
            InFlight::Policy(at, terms) => self.all[at].terms.push(terms),
            InFlight::Pause(at, _) => self.all[at].is_paused = None,
        }
    }

    /// Ends the process. Unanswered requests may have been done.
    pub fn crashed(&mut self) {
        for request in std::mem::take(&mut self.in_flight).into_values() {
            self.unknown(request);
        }
    }

    /// Checks that all requests were answered.
    ///
    /// # Errors
    ///
    /// A request was not.
    pub fn is_answered(&self) -> Kept {
        match self.in_flight.iter().next() {
            None => Ok(()),
            Some(request) => Err(format!(
                "a namespace's request was not answered: {request:?}"
            )),
        }
    }

    /// Begins a process with these settings.
    ///
    /// # Errors
    ///
    /// They differ from what was answered.
    pub fn begins(&mut self, settings: &[Setting], boot: u64) -> Kept {
        let value = |prefix: &str, name: &str| {
            let mut settings = settings.iter();
            let is_it = |it: &&Setting| it.name.strip_prefix(prefix) == Some(name);
            settings.find(is_it).map(|it| it.value.to_vec())
        };
        for (namespace, name) in self.all.iter_mut().zip(NAMES) {
            let stored = value("namespace/", name);
            let is_stored = |terms: &mut Terms| match &stored {
                Some(stored) => terms.stored() == *stored,
                None => *terms == Terms::default(),
            };
            let known = namespace.terms.clone();
            namespace.terms.retain_mut(is_stored);
            namespace.terms.truncate(1);
            if namespace.terms.is_empty() {
                return Err(format!("{name} has {stored:?}, and not {known:?}"));
            }
            let is_paused = value("paused/", name).is_some();
            if namespace.is_paused.is_some_and(|known| known != is_paused) {
                return Err(format!(
                    "{name} is paused: {is_paused}, which was not asked"
                ));
            }
            namespace.is_paused = Some(is_paused);
            namespace.is_drained = false;
            namespace.begun = Allowance::of_one(namespace.terms[0].rate, boot);
            namespace.inserted = Allowance::of_burst(namespace.terms[0].quota, boot);
            namespace.has_changed = false;
        }
        self.calm_since = boot;
        self.may_expire = [i64::MIN; NAMES.len()];
        Ok(())
    }

    /// Notes that the clock was set, by more than a second.
    pub fn clock_was_set(&mut self, boot: u64) {
        self.calm_since = boot;
    }

    fn is_changing(&self, at: usize) -> bool {
        self.in_flight
            .values()
            .any(|request| matches!(request, InFlight::Policy(of, _) if *of == at))
    }

    /// The terms that hold for a namespace, if that is certain.
    #[must_use]
    pub fn terms(&self, at: usize) -> Option<&Terms> {
        match &self.all[at].terms[..] {
            [terms] if !self.is_changing(at) => Some(terms),
            _ => None,
        }
    }

    /// Whether deliveries begin, if that is certain.
    #[must_use]
    pub fn is_open(&self, at: usize) -> Option<bool> {
        let namespace = &self.all[at];
        let is_in_flight = |pause| {
            let mut in_flight = self.in_flight.values();
            in_flight.any(|it| matches!(it, InFlight::Pause(of, to) if (*of, *to) == (at, pause)))
        };
        let is_resumed = is_in_flight(false);
        match namespace.is_paused {
            _ if namespace.is_drained && is_resumed => None,
            _ if namespace.is_drained => Some(false),
            Some(true) if !is_resumed => Some(false),
            Some(false) if !is_in_flight(true) => Some(true),
            _ => None,
        }
    }
}
