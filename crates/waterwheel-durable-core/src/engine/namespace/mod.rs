//! What is there of one namespace: its policy, its handlers, and whether one more delivery of it may begin.
//!
//! | file | question |
//! |---|---|
//! | `limiter` | has its time come, at this rate? |
//! | `fair` | whose delivery begins next? |
//! | `change` | what follows from a request for another policy, or a pause? |
//! | `quota` | may so many timers be inserted now? |
//! | `counts`, `lateness` | what has come of it so far? |

mod change;
mod counts;
mod fair;
mod lateness;
mod limiter;
mod quota;

use std::sync::Arc;
use std::time::Duration;

use crate::store::{Due, Id, Op, Row};

pub use counts::Counts;
pub use lateness::{BOUNDS, Histogram};
use limiter::Limiter;
pub use quota::by_namespace;

use super::Engine;
use super::planted::{self, Planted};
use super::poison::Trial;
pub use crate::limits::DEFAULT;
use crate::policy::{LONGEST_DELAY, Policy};

#[derive(Debug)]
pub struct Namespace {
    pub name: Arc<str>,
    /// It is the default one, or was created. Else only its name has been seen.
    pub is_known: bool,
    /// It has a policy of its own in the store.
    is_created: bool,
    pub policy: Policy,
    /// What the store has of its policy cannot be read: nothing of it begins, or expires, until it has another one.
    pub is_unreadable: bool,
    /// As long as the store says so.
    is_paused: bool,
    /// Nothing more begins in this run.
    pub is_drained: bool,
    pub running: usize,
    /// The handlers, by their queues.
    pub(super) queues: Vec<usize>,
    /// The one that comes next.
    turn: usize,
    rate: Option<Limiter>,
    /// How many have begun whose starts are being noted. Each takes its turn of the rate when its handler is called, and has it until then.
    starting: u64,
    insert_rate: Option<Limiter>,
    /// What is left of its quantum, where places are short.
    deficit: usize,
    /// Something is ready, and waits for the rate.
    waits: bool,
    /// A timer of it that may be what ends the process, and is with its handler.
    pub(super) trial: Option<Trial>,
    pub counts: Counts,
    pub lateness: Histogram,
}

impl Namespace {
    pub(super) fn new(name: Arc<str>) -> Namespace {
        Namespace {
            is_known: &*name == DEFAULT,
            is_created: false,
            name,
            policy: Policy::default(),
            is_unreadable: false,
            is_paused: false,
            is_drained: false,
            running: 0,
            queues: Vec::new(),
            turn: 0,
            rate: None,
            starting: 0,
            insert_rate: None,
            deficit: 0,
            waits: false,
            trial: None,
            counts: Counts::default(),
            lateness: Histogram::default(),
        }
    }

    /// Takes over another policy. A limiter whose rate stays goes on.
    fn set_policy(&mut self, policy: Policy, boot_micros: u64) {
        if policy.rate != self.policy.rate {
            let limiter = |rate| match &self.rate {
                Some(before) => Limiter::after(before, rate, boot_micros),
                None => Limiter::new(rate, boot_micros),
            };
            self.rate = policy.rate.map(limiter);
        }
        if policy.insert_rate != self.policy.insert_rate {
            // Nothing behind it is harmed: a service that inserts a batch as it starts is not refused for that.
            self.insert_rate = policy.insert_rate.map(|it| Limiter::full(it, boot_micros));
        }
        self.policy = policy;
        self.deficit = self.deficit.min(self.priority());
    }

    pub fn has_handlers(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Whether it has no limit but those of its handlers.
    fn is_free(&self) -> bool {
        !self.is_closed() && self.rate.is_none() && self.policy.concurrency.is_none()
    }

    /// Whether nothing of it begins, in this run and in the next.
    pub fn is_paused(&self) -> bool {
        self.is_paused || self.is_unreadable
    }

    /// Whether nothing of it begins.
    pub(super) fn is_closed(&self) -> bool {
        self.is_paused() || self.is_drained
    }

    /// Whether one more delivery may begin, but for the rate.
    fn has_place(&self) -> bool {
        !self.is_closed()
            && self
                .policy
                .concurrency
                .is_none_or(|limit| self.running < limit)
    }

    /// Whether its rate lets one more begin now.
    fn has_turn(&self, boot_micros: u64) -> bool {
        let next = self.rate.as_ref().map(|rate| rate.next(1 + self.starting));
        next.is_none_or(|next| next.is_some_and(|at| at <= boot_micros))
    }

    /// A start of it is to be noted.
    pub(super) fn starts(&mut self) {
        self.starting += 1;
    }

    /// A start of it was noted, or is not noted any more.
    pub(super) fn has_started(&mut self) {
        self.starting -= 1;
    }

    /// Whether a handler may be called whose start was noted. There is a turn for it, unless the policy is another one since then.
    pub(super) fn may_call(&self, boot_micros: u64) -> bool {
        let rate = self.rate.as_ref();
        rate.is_none_or(|rate| rate.has_one(boot_micros)) || planted::is(Planted::RateIgnored)
    }

    /// A handler is called.
    pub(super) fn calls(&mut self, boot_micros: u64) {
        self.counts.delivered += 1;
        if let Some(rate) = &mut self.rate {
            rate.take(1, boot_micros);
        }
    }

    /// A handler was to be called, and was not: its delivery had begun at this time.
    pub(super) fn was_not_called(&mut self, boot_micros: u64) {
        self.counts.delivered = self.counts.delivered.saturating_sub(1);
        if let Some(rate) = &mut self.rate {
            rate.give_back(boot_micros);
        }
    }

    fn priority(&self) -> usize {
        self.policy.priority.unwrap_or(1) as usize
    }

    /// When its rate lets one more delivery begin, if one waits for it.
    fn waits_until(&self) -> Option<u64> {
        let rate = self.rate.as_ref().filter(|_| self.waits)?;
        // None, if it waits for those whose starts are being noted.
        rate.next(1 + self.starting)
    }

    /// The delay after a failure. `None` after the last one.
    fn delay(&self, row: &Row, retry_delays: &[Duration]) -> Option<Duration> {
        match &self.policy.back_off {
            Some(back_off) => back_off.delay(row.failures, chance(row.id, row.failures)),
            None => {
                let retry_delays = self.policy.retry_delays.as_deref().unwrap_or(retry_delays);
                retry_delays.get(row.failures as usize).copied()
            }
        }
    }
}

/// A number that differs from timer to timer and from attempt to attempt, and is the same in each run: the finalizer of `SplitMix64`.
fn chance(id: Id, failures: u32) -> u64 {
    let mut mixed = id
        .get()
        .wrapping_add(u64::from(failures).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The namespace in the full name of a handler.
pub fn namespace_in(handler: &str) -> &str {
    match handler.split_once('/') {
        Some((namespace, _)) => namespace,
        None => DEFAULT,
    }
}

impl Engine {
    /// The namespace of a handler, if it has been seen.
    pub(super) fn namespace_of(&self, handler: &str) -> Option<usize> {
        self.index_of(namespace_in(handler))
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        match name {
            DEFAULT => Some(0),
            name => self.namespace_at.get(name).copied(),
        }
    }

    /// A namespace by its name.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.index_of(name).and_then(|at| self.namespaces.get(at))
    }

    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// A namespace of this name, seen now if not before.
    pub(super) fn namespace_index(&mut self, name: &str) -> usize {
        if name == DEFAULT && !self.namespaces.is_empty() {
            return 0;
        }
        if let Some(&at) = self.namespace_at.get(name) {
            return at;
        }
        let name: Arc<str> = name.into();
        self.namespaces.push(Namespace::new(Arc::clone(&name)));
        let at = self.namespaces.len() - 1;
        self.namespace_at.insert(name, at);
        at
    }

    /// What follows from the end of a delivery that went well.
    pub(super) fn settling(&self, row: Row, namespace: usize) -> Op {
        match self.namespaces[namespace].policy.retention {
            None | Some(0) => Op::Settle(row),
            Some(_) => Op::Archive(row, self.present()),
        }
    }

    /// What follows from a failure: another attempt, after the delay that the handler has asked for or the next retry delay, or the end.
    pub(super) fn retrial(
        &self,
        row: Row,
        error: Arc<str>,
        requested: Option<Duration>,
        namespace: usize,
    ) -> Op {
        match self.namespaces[namespace].delay(&row, &self.config.retry_delays) {
            Some(delay) => {
                let delay = requested.map_or(delay, |requested| requested.min(LONGEST_DELAY));
                let due = self.present().after(delay);
                Op::Retry(row, due, crate::store::Bucket::of(due, self.present()))
            }
            None => self.burial(row, error),
        }
    }

    /// When the first of a namespace's timers was due that is overdue and waits, as far as the engine knows: from what is in memory, and by the second from what
    /// is not. The present is the wall clock's as this is asked: where nothing is to be done, as in a namespace that is paused, no turn brings a new one.
    pub fn oldest_overdue(&self, namespace: &Namespace, present: Due) -> Option<Due> {
        let queues = namespace.queues.iter();
        queues
            .filter_map(|queue| self.oldest_of(*queue, present))
            .min()
    }
}
