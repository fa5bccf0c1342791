//! The namespaces: the policy and handlers of each, whether it may begin another delivery, and whether timers may be inserted now.
//!
//! | file | question |
//! |---|---|
//! | `limiter` | has its time come, at this rate? |
//! | `round_robin` | whose delivery begins next? |
//!
//! Policies and pauses are settings in the store. A requested change is written, and takes effect once it is durable.

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
use crate::policy::{LONGEST_DELAY, Policy, Retries};

#[derive(Debug)]
pub struct Namespace {
    pub name: Arc<str>,
    /// Whether it is the default namespace or was created. Otherwise only its name has been seen.
    pub is_known: bool,
    /// Whether it has a policy of its own in the store.
    is_created: bool,
    pub policy: Policy,
    /// Whether the stored policy cannot be read. Then nothing begins or expires until another one is set.
    pub is_unreadable: bool,
    /// Whether it is paused by a setting in the store.
    is_paused: bool,
    /// Whether nothing more begins in this run.
    pub is_drained: bool,
    pub running: usize,
    /// The number of deliveries in processes that have handed the store over. They count against the limits.
    pub(super) remote: usize,
    /// The handlers, as indices of their queues.
    queues: Vec<usize>,
    /// The index in `queues` of the handler that comes next.
    turn: usize,
    rate: Option<Limiter>,
    /// The number of begun deliveries whose starts are being noted. Each takes its turn of the rate when its handler is called, and reserves it until then.
    starting: u64,
    insert_rate: Option<Limiter>,
    /// The rest of its quantum, used when places are short.
    deficit: usize,
    /// Whether something is ready and waits for the rate.
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
            remote: 0,
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

    /// Replaces the policy. A limiter whose rate is unchanged is kept.
    fn set_policy(&mut self, policy: Policy, boot_micros: u64) {
        if policy.rate != self.policy.rate {
            let limiter = |rate| match &self.rate {
                Some(before) => Limiter::after(before, rate, boot_micros),
                None => Limiter::new(rate, boot_micros),
            };
            self.rate = policy.rate.map(limiter);
        }
        if policy.insert_rate != self.policy.insert_rate {
            // An insert rate protects nothing downstream, so a service may insert a whole batch at startup.
            self.insert_rate = policy.insert_rate.map(|it| Limiter::full(it, boot_micros));
        }
        self.policy = policy;
        self.deficit = self.deficit.min(self.priority());
    }

    pub fn has_handlers(&self) -> bool {
        !self.queues.is_empty()
    }

    /// The handlers, as indices of their queues.
    pub(super) fn queues(&self) -> &[usize] {
        &self.queues
    }

    /// Whether it has no limits other than those of its handlers.
    fn is_free(&self) -> bool {
        !self.is_closed() && self.rate.is_none() && self.policy.concurrency.is_none()
    }

    /// Whether nothing of it begins, either in this run or in the next.
    pub fn is_paused(&self) -> bool {
        self.is_paused || self.is_unreadable
    }

    /// Whether nothing of it begins.
    pub(super) fn is_closed(&self) -> bool {
        self.is_paused() || self.is_drained
    }

    /// Whether one more delivery may begin, apart from the rate.
    fn has_place(&self) -> bool {
        !self.is_closed()
            && self
                .policy
                .concurrency
                .is_none_or(|limit| self.running + self.remote < limit)
    }

    /// Whether its rate allows one more to begin now.
    fn has_turn(&self, boot_micros: u64) -> bool {
        let next = self.rate.as_ref().map(|rate| rate.next(1 + self.starting));
        next.is_none_or(|next| next.is_some_and(|at| at <= boot_micros))
    }

    /// Notes that the start of a timer was noted, or no longer needs to be.
    pub(super) fn has_started(&mut self) {
        self.starting -= 1;
    }

    /// Whether the handler may be called for a timer whose start was noted. The rate allows it, unless the policy has changed since then.
    pub(super) fn may_call(&self, boot_micros: u64) -> bool {
        let rate = self.rate.as_ref();
        rate.is_none_or(|rate| rate.has_one(boot_micros)) || planted::is(Planted::RateIgnored)
    }

    /// Counts a call of a handler.
    fn calls(&mut self, boot_micros: u64) {
        self.counts.delivered += 1;
        if let Some(rate) = &mut self.rate {
            rate.take(1, boot_micros);
        }
    }

    fn priority(&self) -> usize {
        self.policy.priority.unwrap_or(1) as usize
    }

    /// When its rate allows the next delivery, if one waits for it.
    fn waits_until(&self) -> Option<u64> {
        let rate = self.rate.as_ref().filter(|_| self.waits)?;
        // `None` if it waits for starts that are being noted.
        rate.next(1 + self.starting)
    }

    /// How long until the quota allows this many inserts at once, or `Duration::MAX` if that exceeds the burst.
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

    /// The delay after a failure, or `None` if it was the last attempt. `own` is the setting of the timer or its handler.
    fn delay(
        &self,
        row: &Row,
        own: Option<&Retries>,
        retry_delays: &[Duration],
    ) -> Option<Duration> {
        match own.or(self.policy.retries.as_ref()) {
            Some(retries) => retries.delay(row.failures, chance(row.id, row.failures)),
            None => retry_delays.get(row.failures as usize).copied(),
        }
    }
}

/// A number that differs between timers and between attempts, but is the same in every run: the finalizer of `SplitMix64`.
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

/// The number of a batch's timers per namespace, in the order in which the namespaces first occur, given the names of their handlers. A batch may be large, so
/// this is computed without an engine.
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

/// The operation that delivers a timer again after the delay that its handler asked for.
pub(super) fn snoozing(row: Row, delay: Duration, now: Now) -> Op {
    let due = now.due().after(delay.min(LONGEST_DELAY));
    Op::Snooze(row, due, Bucket::of(due, now.due()))
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
    /// All namespaces, the default one first.
    all: Vec<Namespace>,
    by_name: HashMap<Arc<str>, usize>,
    /// The namespace whose turn it is, used when places are short or timers are tried one after another.
    turn: usize,
    /// Whether all places were taken at the last check, so that more deliveries may be waiting for one.
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

    /// Takes over the namespaces of an engine that has ended.
    pub(super) fn take_over(&mut self, ended: &mut Namespaces) {
        self.all = std::mem::take(&mut ended.all);
        self.by_name = std::mem::take(&mut ended.by_name);
        for namespace in &mut self.all {
            namespace.queues.clear();
            // Deliveries that were given up no longer count as running.
            namespace.running = 0;
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Namespace> {
        self.all.iter()
    }

    /// Returns the namespace of this name, if the name has been seen.
    pub fn get(&self, name: &str) -> Option<&Namespace> {
        self.index_of(name).and_then(|at| self.all.get(at))
    }

    /// Whether a namespace is the default one or was created.
    pub fn is_known(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.is_known)
    }

    /// Whether a namespace has a policy of its own in the store.
    pub(super) fn is_created(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.is_created)
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        match name {
            DEFAULT => Some(0),
            name => self.by_name.get(name).copied(),
        }
    }

    /// Returns the index of the namespace of this name, and adds it if it has not been seen.
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

    /// Adds the queue of a new handler. Returns the namespace.
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

    /// Undoes the count of a delivery that began at this time and whose handler was not called.
    pub(super) fn was_not_called(&mut self, handler: &str, boot_micros: u64) {
        if let Some(at) = self.index_of(namespace_in(handler)) {
            let namespace = &mut self.all[at];
            namespace.counts.delivered = namespace.counts.delivered.saturating_sub(1);
            if let Some(rate) = &mut namespace.rate {
                rate.give_back(boot_micros);
            }
        }
    }

    /// Counts that a handler was called this many microseconds late.
    pub(super) fn count_lateness(&mut self, handler: &str, micros: u64) {
        if let Some(at) = self.index_of(namespace_in(handler)) {
            self.all[at].lateness.count(micros);
        }
    }

    // Settings.

    /// Applies the value of a setting. Returns the namespace that this closes, if any.
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

    /// Drains a namespace for the rest of this run, or ends that. Returns the namespace, if its name has been seen.
    pub(super) fn drain(&mut self, name: &str, is_drained: bool) -> Option<usize> {
        let at = self.index_of(name)?;
        self.all.get_mut(at)?.is_drained = is_drained;
        Some(at)
    }

    // Inserts.

    /// Charges inserts, given as counts per namespace name, against the quotas of their namespaces: all of them or none.
    pub(super) fn charge(&mut self, counts: &[(&str, u64)], now: Now) -> Result<(), Answer> {
        let known = |(name, count): &(&str, u64)| Ok((self.known(name)?, *count));
        let counts = counts.iter().map(known);
        let counts: Vec<_> = counts.collect::<Result<_, Answer>>()?;
        self.take_quotas(&counts, now)
    }

    /// Charges one insert.
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

    /// The operation after a failure: another attempt, after the delay that the handler requested or the next retry delay, or a dead letter.
    pub(super) fn retrial(
        &self,
        namespace: usize,
        row: Row,
        of_handler: Option<&Retries>,
        error: Arc<str>,
        requested: Option<Duration>,
        now: Now,
    ) -> Op {
        let of_timer = match row.extras.as_ref().and_then(|it| it.retries()) {
            // It may allow no other attempt. A dead letter can be redriven.
            Some(None) => {
                let why =
                    "its own retries cannot be read, because a newer version has written them";
                return burial(row, format!("{error} ({why})").into(), now);
            }
            own => own.flatten(),
        };
        let own = of_timer.as_ref().or(of_handler);
        match self.all[namespace].delay(&row, own, &self.config.retry_delays) {
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
    /// Inserts with a key that another timer already has.
    pub duplicates: u64,
    pub refused_by_quota: u64,
    pub cancelled: u64,
    /// Attempts that have begun.
    pub delivered: u64,
    pub settled: u64,
    pub retried: u64,
    /// Attempts that ended with the request to be called again later.
    pub snoozed: u64,
    pub dead: u64,
    pub redriven: u64,
    /// Attempts that had to wait for the rate before they began, and those that began together with them.
    pub throttled: u64,
}

/// The upper bounds of the buckets, in milliseconds. One more bucket holds everything above the last.
pub const BOUNDS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
    1_800_000, 3_600_000, 86_400_000,
];

/// A histogram of the lateness of deliveries.
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

    /// The sum of all values, in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }
}
