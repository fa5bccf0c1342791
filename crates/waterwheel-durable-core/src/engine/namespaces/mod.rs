//! The namespaces: the policy and the handlers of each, whether one more delivery of it may begin, and whether so many timers may be inserted now.
//!
//! | file | question |
//! |---|---|
//! | `limiter` | has its time come, at this rate? |
//! | `round_robin` | whose delivery begins next? |
//!
//! A policy and a pause are settings in the store. A request for another one is written, and holds once that is durable.

mod limiter;
mod round_robin;

use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Duration;

use crate::store::{Bucket, Id, Op, Row};
use foldhash::{HashMap, HashMapExt as _};

use limiter::Limiter;
pub(super) use round_robin::Deliveries;

use super::clocks::Now;
use super::io::{Answer, Config, Output, OverQuota};
use super::planted::{self, Planted};
use super::store_link::StoreLink;
pub use crate::limits::DEFAULT;
use crate::limits::{PAUSED_SETTING, POLICY_SETTING};
use crate::policy::{LONGEST_DELAY, Policy};

#[derive(Debug)]
pub struct Namespace {
    pub name: Arc<str>,
    /// It is the default one, or was created. Else only its name has been seen.
    pub is_known: bool,
    /// It has a policy of its own in the store.
    is_created: bool,
    pub policy: Policy,
    /// The stored policy cannot be read: nothing begins or expires until another one is set.
    pub is_unreadable: bool,
    /// As long as the store says so.
    is_paused: bool,
    /// Nothing more begins in this run.
    pub is_drained: bool,
    pub running: usize,
    /// The handlers, by their queues.
    queues: Vec<usize>,
    /// The one that comes next.
    turn: usize,
    rate: Option<Limiter>,
    /// How many have begun whose starts are being noted. Each takes its turn of the rate when its handler is called, and has it until then.
    starting: u64,
    insert_rate: Option<Limiter>,
    /// The rest of its quantum, where places are short.
    deficit: usize,
    /// Something is ready, and waits for the rate.
    waits: bool,
    pub counts: Counts,
    pub lateness: Histogram,
}

impl Namespace {
    fn new(name: Arc<str>) -> Namespace {
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

    /// The handlers, by their queues.
    pub(super) fn queues(&self) -> &[usize] {
        &self.queues
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
    fn calls(&mut self, boot_micros: u64) {
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

    /// How long it takes until so many timers may be inserted at once. For ever, if that is more than a burst.
    fn quota_lets_after(&self, count: u64, boot_micros: u64) -> Duration {
        let Some(limiter) = &self.insert_rate else {
            return Duration::ZERO;
        };
        let at = limiter.next(count);
        at.map_or(Duration::MAX, |at| {
            Duration::from_micros(at.saturating_sub(boot_micros))
        })
    }

    /// The operation that settles a successful delivery.
    pub(super) fn settling(&self, row: Row, now: Now) -> Op {
        match self.policy.retention {
            None | Some(0) => Op::Settle(row),
            Some(_) => Op::Archive(row, now.due()),
        }
    }

    /// The delay after a failure. `None` after the last one.
    fn delay(&self, row: &Row, retry_delays: &[Duration]) -> Option<Duration> {
        match &self.policy.backoff {
            Some(backoff) => backoff
                .delay_with_jitter(row.failures.saturating_add(1), chance(row.id, row.failures)),
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

/// How many timers of a batch are of which namespace, in the order in which these come up: the names are those of their handlers. A batch may be large, so that is
/// reckoned without an engine.
#[must_use]
pub fn by_namespace<'a>(handlers: impl Iterator<Item = &'a str>) -> Vec<(&'a str, u64)> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    let mut at: HashMap<&str, usize> = HashMap::new();
    for handler in handlers {
        let name = namespace_in(handler);
        let of = *at.entry(name).or_insert(counts.len());
        match counts.get_mut(of) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

/// The operation that makes a failed timer a dead letter.
pub(super) fn burial(row: Row, error: Arc<str>, now: Now) -> Op {
    let at = now.due();
    Op::Bury { row, at, error }
}

/// The setting with the policy of a namespace.
pub(super) fn policy_setting(name: &str, policy: &Policy) -> Op {
    let value = Some(policy.to_stored().into());
    Op::Set(format!("{POLICY_SETTING}{name}").into(), value)
}

/// The setting that says whether a namespace is paused.
pub(super) fn pause_setting(name: &str, is_paused: bool) -> Op {
    let value = is_paused.then(|| Arc::from([]));
    Op::Set(format!("{PAUSED_SETTING}{name}").into(), value)
}

/// All namespaces, and whose turn it is.
#[derive(Debug)]
pub struct Namespaces {
    config: Arc<Config>,
    /// The first is the default one.
    all: Vec<Namespace>,
    by_name: HashMap<Arc<str>, usize>,
    /// The namespace whose turn it is, where places are short or timers are tried one after another.
    turn: usize,
    /// All places were taken the last time that something might have begun: more may wait for one.
    is_short: bool,
}

impl Index<usize> for Namespaces {
    type Output = Namespace;

    fn index(&self, at: usize) -> &Namespace {
        &self.all[at]
    }
}

impl IndexMut<usize> for Namespaces {
    fn index_mut(&mut self, at: usize) -> &mut Namespace {
        &mut self.all[at]
    }
}

impl Namespaces {
    pub(super) fn new(config: Arc<Config>) -> Namespaces {
        Namespaces {
            config,
            all: vec![Namespace::new(DEFAULT.into())],
            by_name: HashMap::new(),
            turn: 0,
            is_short: false,
        }
    }

    /// Takes over what is known from an engine that has ended.
    pub(super) fn take_over(&mut self, ended: &mut Namespaces) {
        self.all = std::mem::take(&mut ended.all);
        self.by_name = std::mem::take(&mut ended.by_name);
        for namespace in &mut self.all {
            namespace.queues.clear();
            // What was given up does not run.
            namespace.running = 0;
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Namespace> {
        self.all.iter()
    }

    /// A namespace by its name, if that has been seen.
    pub fn get(&self, name: &str) -> Option<&Namespace> {
        self.index_of(name).and_then(|at| self.all.get(at))
    }

    /// Whether it is the default one, or was created.
    pub fn is_known(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.is_known)
    }

    /// Whether it has a policy of its own in the store.
    pub(super) fn is_created(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.is_created)
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        match name {
            DEFAULT => Some(0),
            name => self.by_name.get(name).copied(),
        }
    }

    /// A namespace of this name, seen now if not before.
    fn index_or_new(&mut self, name: &str) -> usize {
        if name == DEFAULT && !self.all.is_empty() {
            return 0;
        }
        if let Some(&at) = self.by_name.get(name) {
            return at;
        }
        let name: Arc<str> = name.into();
        self.all.push(Namespace::new(Arc::clone(&name)));
        let at = self.all.len() - 1;
        self.by_name.insert(name, at);
        at
    }

    /// The queue of a handler is new. Returns the namespace.
    pub(super) fn add_queue(&mut self, handler: &str, queue: usize) -> usize {
        let namespace = self.index_or_new(namespace_in(handler));
        self.all[namespace].queues.push(queue);
        namespace
    }

    // Counting.

    /// Counts something of a handler's namespace.
    pub(super) fn count(&mut self, handler: &str, count: impl FnOnce(&mut Counts)) {
        if let Some(at) = self.index_of(namespace_in(handler)) {
            count(&mut self.all[at].counts);
        }
    }

    /// A handler was called so many microseconds late.
    pub(super) fn count_lateness(&mut self, handler: &str, micros: u64) {
        if let Some(at) = self.index_of(namespace_in(handler)) {
            self.all[at].lateness.count(micros);
        }
    }

    // Settings.

    /// A setting has this value. Returns the namespace of which nothing begins any more, if there is one.
    pub(super) fn was_set(
        &mut self,
        name: &str,
        value: Option<&[u8]>,
        link: &mut StoreLink,
    ) -> Option<usize> {
        if let Some(name) = name.strip_prefix(PAUSED_SETTING) {
            let at = self.index_or_new(name);
            let namespace = &mut self.all[at];
            namespace.is_paused = value.is_some() && !planted::is(Planted::PauseForgotten);
            // A resume lifts a drain, once it is durable.
            namespace.is_drained &= value.is_some();
            return namespace.is_closed().then_some(at);
        }
        if let Some(name) = name.strip_prefix(POLICY_SETTING) {
            let policy = value.map(Policy::from_stored);
            let at = self.index_or_new(name);
            let namespace = &mut self.all[at];
            namespace.is_created |= value.is_some();
            namespace.is_known |= value.is_some();
            namespace.is_unreadable = matches!(policy, Some(None));
            if namespace.is_unreadable {
                link.put_out(Output::UnreadablePolicy(Arc::clone(&namespace.name)));
            }
            let policy = policy.flatten().unwrap_or_default();
            namespace.set_policy(policy, link.now.boot_micros);
        }
        None
    }

    /// Nothing of a namespace begins in this run from now on, or does again. Returns the namespace, if its name has been seen.
    pub(super) fn drain(&mut self, name: &str, is_drained: bool) -> Option<usize> {
        let at = self.index_of(name)?;
        self.all.get_mut(at)?.is_drained = is_drained;
        Some(at)
    }

    // Inserts.

    /// Takes inserts off the quotas of their namespaces, of all or of none: so many of each by its name.
    pub(super) fn charge(&mut self, counts: &[(&str, u64)], now: Now) -> Result<(), Answer> {
        let known = |(name, count): &(&str, u64)| Ok((self.known(name)?, *count));
        let counts = counts.iter().map(known);
        let counts: Vec<_> = counts.collect::<Result<_, Answer>>()?;
        self.take_quotas(&counts, now)
    }

    /// Does that for one insert.
    pub(super) fn charge_one(&mut self, handler: &str, now: Now) -> Result<(), Answer> {
        let at = self.known(namespace_in(handler))?;
        self.take_quotas(&[(at, 1)], now)
    }

    fn known(&self, name: &str) -> Result<usize, Answer> {
        let at = self.index_of(name);
        let known = at.filter(|at| self.all[*at].is_known);
        known.ok_or_else(|| Answer::UnknownNamespace(name.into()))
    }

    fn take_quotas(&mut self, counts: &[(usize, u64)], now: Now) -> Result<(), Answer> {
        let boot = now.boot_micros;
        let mut longest = Duration::ZERO;
        let mut over = None;
        for (at, count) in counts {
            let namespace = &mut self.all[*at];
            let left = namespace.quota_lets_after(*count, boot);
            if !left.is_zero() {
                namespace.counts.refused_by_quota += count;
            }
            if left > longest {
                longest = left;
                over = Some(OverQuota {
                    namespace: Arc::clone(&namespace.name),
                    retry_after: (left < Duration::MAX).then_some(left),
                });
            }
        }
        if let Some(over) = over {
            return Err(Answer::Quota(over));
        }
        for (at, count) in counts {
            if let Some(limiter) = &mut self.all[*at].insert_rate {
                limiter.take(*count, boot);
            }
        }
        Ok(())
    }

    /// The operation that follows a failure: another attempt, after the delay that the handler has asked for or the next retry delay, or the end.
    pub(super) fn retrial(
        &self,
        namespace: usize,
        row: Row,
        error: Arc<str>,
        requested: Option<Duration>,
        now: Now,
    ) -> Op {
        match self.all[namespace].delay(&row, &self.config.retry_delays) {
            Some(delay) => {
                let delay = requested.map_or(delay, |requested| requested.min(LONGEST_DELAY));
                let due = now.due().after(delay);
                Op::Retry(row, due, Bucket::of(due, now.due()))
            }
            None => burial(row, error, now),
        }
    }
}

/// The counters of a namespace since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub inserted: u64,
    /// Inserts with a key that another timer has.
    pub duplicates: u64,
    pub refused_by_quota: u64,
    pub cancelled: u64,
    /// Attempts that have begun.
    pub delivered: u64,
    pub settled: u64,
    pub retried: u64,
    pub dead: u64,
    pub redriven: u64,
    /// Attempts that had to wait for the rate before they began, and those that began together with them.
    pub throttled: u64,
}

/// The upper bounds of the buckets, in milliseconds. What is above the last is in one more bucket.
pub const BOUNDS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
    1_800_000, 3_600_000, 86_400_000,
];

/// How many deliveries were how late.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum_micros: u64,
}

impl Histogram {
    pub fn count(&mut self, micros: u64) {
        let bucket = BOUNDS.partition_point(|bound| bound * 1_000 < micros);
        self.counts[bucket] += 1;
        self.sum_micros = self.sum_micros.saturating_add(micros);
    }

    /// The count of each bucket.
    #[must_use]
    pub fn counts(&self) -> &[u64; BOUNDS.len() + 1] {
        &self.counts
    }

    /// All together, in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }
}
