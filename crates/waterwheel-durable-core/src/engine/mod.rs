//! What is loaded, delivered and settled, and when? Without a clock, a thread or a file: it is handed the time and the replies, and says what is to be
//! done. So a simulator can run years of it, with every fault, in a millisecond.
//!
//! | file | question |
//! |---|---|
//! | `now` | what time is it? |
//! | `ticks` | which tick of the wheel is a time of the wall clock? |
//! | `input`, `output` | what does the engine learn, and what does it want done? |
//! | `namespace/` | what is there of one namespace, and whose delivery begins next? |
//! | `poison` | which timers may be what ends the process, again and again? |
//! | `retention` | when does what was delivered expire? |
//! | `loaded` | which timers are in memory, and what does each wait for? |
//! | `tombstones` | which timers have left while rows were being loaded? |
//! | `handler_queue` | which timers of one handler are loaded, due and running? |
//! | `memory_budget` | how much may be in memory? |
//! | `buckets` | which bucket cascades next? |
//! | `commit` | what is written next, and what follows from it? |
//! | `in_flight` | which requests to the store are in flight, and was a reply lost? |
//! | `requests` | what becomes of an insert, a cancel, a reschedule? |
//! | `commands` | what becomes of a command from another process? |
//! | `delivery` | what becomes of a timer that is due? |
//! | `calendar` | which occurrence of a calendar becomes a timer, and when? |
//! | `planted` | which fault is planted, to test the simulator? |
//!
//! # What must stay true
//!
//! 1. **The store is right.** A row that is there is a timer to deliver; memory is a cache of the rows of the next seconds. Where the two may differ, the
//!    engine reads again: a cursor may go back at any time, since what is known is not taken twice.
//! 2. **Known from the load until the commit that takes it away is answered.** One table spans the wheel, the queues, the handlers and that commit. So a
//!    load that was read before a commit brings nothing back. What a commit was to take away and did not is read again from where a load left it out.
//! 3. **The bound is published before the read.** A timer that is written while its second is loaded goes into memory by itself.
//! 4. **Memory is asked first.** A cancel that answers "done" has taken the timer out of memory before it asks the store.
//! 5. **One commit at a time**, in the order of the requests; a request for a timer that a commit is about to move waits for the answer.

mod buckets;
pub mod calendar;
mod commands;
mod commit;
mod delivery;
mod handler_queue;
mod in_flight;
mod input;
mod loaded;
mod memory_budget;
mod namespace;
mod next;
mod now;
mod output;
pub mod planted;
mod poison;
mod requests;
mod retention;
#[cfg(test)]
mod tests;
mod ticks;
mod tombstones;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::{Due, Id};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use buckets::Buckets;
use calendar::Calendars;
use commit::Commits;
use handler_queue::HandlerQueue;
use in_flight::InFlight;
pub use input::{Config, Ended, NewTimer, Token};
use loaded::Loaded;
pub use loaded::ROW_BYTES;
use memory_budget::MemoryBudget;
pub use namespace::{BOUNDS, Counts, DEFAULT, Histogram};
pub use namespace::{Namespace, by_namespace, namespace_in};
pub use now::Now;
pub use output::{Answer, Call, Delivery, Output, OverQuota, Reply, Request};
use poison::Poison;
use requests::Deferred;
use retention::{Archive, Expiry};

/// A wall clock that moves so far against the other was set, and not slewed.
const JUMP_MICROS: u64 = 1_000_000;

/// The engine: see the [module](self).
#[derive(Debug)]
pub struct Engine {
    config: Config,
    now: Now,
    /// The clocks as the timers in memory were filed by.
    filed_by: Now,
    /// When it was made, in microseconds since boot.
    begun: u64,
    /// Of the ids: see [`Id::new`].
    epoch: u64,
    inserted: u64,
    queues: Vec<HandlerQueue>,
    queue_of: HashMap<Arc<str>, usize>,
    /// The first is the default one.
    namespaces: Vec<Namespace>,
    namespace_at: HashMap<Arc<str>, usize>,
    /// The namespace whose turn it is, where places are short or timers are tried one after another.
    turn: usize,
    /// All places were taken the last time that something might have begun: more may wait for one.
    is_short: bool,
    poison: Poison,
    /// Since then, in microseconds since boot, the wall clock has not jumped.
    calm_since: u64,
    expiry: Expiry,
    /// Commands from other processes that have not been answered.
    commands: HashSet<u64>,
    /// When more of what is archived expires.
    expires_at: Option<u64>,
    loaded: Loaded,
    memory_budget: MemoryBudget,
    /// When a handler queue is to be checked next.
    loads_at: Option<Due>,
    /// The memory budget left no space for what some handler queue would load.
    waits_for_memory: bool,
    buckets: Buckets,
    calendars: Calendars,
    commits: Commits,
    in_flight: InFlight,
    /// Requests for timers that a commit moves or takes away.
    deferred: HashMap<Id, VecDeque<Deferred>>,
    output: VecDeque<Output>,
    is_stopping: bool,
    /// Handlers that run are not waited for.
    is_abandoned: bool,
    has_failed: bool,
    /// Why it has.
    failure: Option<Arc<str>>,
    /// How often the wall clock has jumped against the time since boot.
    jumps: u64,
    refusals: Refusals,
    /// How many times a handler queue was checked: for what it may load, what of it may begin, or what of it may expire.
    #[cfg(test)]
    checks: usize,
}

/// How often the store has refused.
#[derive(Debug, Default)]
struct Refusals {
    count: u64,
    /// The last commit was refused, and the last read.
    goes_on: [bool; 2],
}

impl Engine {
    /// An engine on a store that was [begun](crate::store::Store::begin), with the names of its handlers.
    #[must_use]
    pub fn new(config: Config, epoch: u64, handlers: Vec<Arc<str>>, now: Now) -> Engine {
        let mut engine = Engine {
            loaded: Loaded::new(now),
            memory_budget: MemoryBudget::default(),
            loads_at: None,
            waits_for_memory: false,
            buckets: Buckets::default(),
            calendars: Calendars::default(),
            commits: Commits::default(),
            in_flight: InFlight::default(),
            config,
            now,
            filed_by: now,
            begun: now.boot_micros,
            epoch,
            inserted: 0,
            queues: Vec::new(),
            queue_of: HashMap::new(),
            namespaces: vec![Namespace::new(DEFAULT.into())],
            namespace_at: HashMap::new(),
            turn: 0,
            is_short: false,
            poison: Poison::default(),
            calm_since: now.boot_micros,
            expiry: Expiry::default(),
            commands: HashSet::new(),
            expires_at: None,
            deferred: HashMap::new(),
            output: VecDeque::new(),
            is_stopping: false,
            is_abandoned: false,
            has_failed: false,
            failure: None,
            jumps: 0,
            refusals: Refusals::default(),
            #[cfg(test)]
            checks: 0,
        };
        for handler in handlers {
            let queue = engine.queue(&handler);
            engine.queues[queue].archive = Archive::new(true);
        }
        engine
    }

    /// Takes over what is known of the namespaces from an engine that has ended.
    pub fn take_namespaces(&mut self, ended: &mut Engine) {
        self.namespaces = std::mem::take(&mut ended.namespaces);
        self.namespace_at = std::mem::take(&mut ended.namespace_at);
        for namespace in &mut self.namespaces {
            namespace.queues.clear();
            // What was given up does not run.
            namespace.running = 0;
        }
    }

    /// The next thing to be done. To be asked until there is none, after each call of another method.
    pub fn output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// There is a handler of this name from now on, for so many deliveries at a time.
    pub fn handle(&mut self, name: &Arc<str>, concurrency: usize) {
        let queue = self.queue(name);
        let queue = &mut self.queues[queue];
        queue.is_handled = true;
        queue.is_reported = false;
        queue.concurrency = concurrency.max(1);
        self.go_on();
    }

    /// Whether there is a handler of this name.
    #[must_use]
    pub fn has_handler(&self, name: &str) -> bool {
        let queue = self.queue_of.get(name);
        queue.is_some_and(|queue| self.queues[*queue].is_handled)
    }

    /// Begins no delivery from now on, and takes nothing new.
    pub fn stop(&mut self) {
        self.is_stopping = true;
        self.give_back_starts();
        self.go_on();
    }

    /// Handlers that run are given up, in order: after a restart, their timers are delivered again.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
        self.go_on();
    }

    /// Whether no delivery goes on and nothing is to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.loaded.running() == 0 && self.commits.is_empty()
    }

    /// Whether nothing is to be written, but for what the store has refused and is asked again later.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.commits.is_empty() || self.commits.tries_again_at().is_some()
    }

    /// How many deliveries have ended whose end is not written, of a store that has not failed. Their timers are delivered again after a restart.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.commits.unsettled()
    }

    /// The time of the last turn.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// How many deliveries are with their handlers.
    #[must_use]
    pub fn running(&self) -> usize {
        self.loaded.running()
    }

    /// Whether the store has failed: nothing goes on.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// A method has panicked: nothing goes on from now on.
    pub fn broke_down(&mut self, why: &Arc<str>) {
        self.has_failed = true;
        self.failure = Some(Arc::clone(why));
        self.output.clear();
    }

    /// How often the wall clock was set, by a second or more.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// How often the store has refused a commit or a read.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals.count
    }

    /// How many timers are in memory.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        self.loaded.len()
    }

    /// How many timers wait for their time in the wheel.
    #[must_use]
    pub fn in_wheel(&self) -> usize {
        self.loaded.filed()
    }

    /// The time goes on.
    pub fn turn(&mut self, now: Now) {
        if self.has_failed {
            return;
        }
        // Since then, and not since the last turn: a clock that is slewed moves a little each time.
        let shift = now.offset() - self.filed_by.offset();
        self.now = now;
        if shift.unsigned_abs() >= self.config.largest_drift_micros {
            if shift.unsigned_abs() >= JUMP_MICROS {
                self.jumps += 1;
                self.calm_since = now.boot_micros;
                self.poison.clock_was_set(now, self.begun);
            }
            self.filed_by = now;
            if !planted::is(planted::Planted::LaterKeepsOutSooner) {
                self.evict_beyond_horizon();
            }
            self.loaded.file_again(now);
            if shift <= -JUMP_MICROS.cast_signed() {
                self.calendars_set_back();
            }
        }
        self.expire();
        self.resend_overdue();
        self.go_on();
    }

    /// How many timers count against [`Config::max_in_memory`], of all handlers.
    #[must_use]
    pub fn held(&self) -> usize {
        self.queues.iter().map(|queue| queue.held).sum()
    }

    /// How many bytes count against [`Config::max_bytes_in_memory`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.memory_budget.held
    }

    /// Whether a namespace has something that would begin if there were a place for it.
    #[must_use]
    pub fn waits_for_place(&self, namespace: &str) -> bool {
        let queues = self.namespace(namespace).into_iter();
        let mut queues = queues.flat_map(|it| it.queues.iter());
        queues.any(|queue| self.has_ready(*queue))
    }

    /// When there is something to do next, in microseconds since boot. `None` if only a call can bring something.
    #[must_use]
    pub fn next_turn(&self) -> Option<u64> {
        if self.has_failed {
            return None;
        }
        let store = [
            self.in_flight.first_deadline(),
            self.commits.tries_again_at(),
        ];
        let store = store.into_iter().flatten().min();
        if self.is_stopping {
            return store;
        }
        let wall = self.buckets.cascades_at().chain(self.loads_at).min();
        let loaded = self.loaded.next(self.now);
        let wall = wall.map(|at| self.now.boot_at(at));
        let calendars = self.calendars_turn();
        let rates = self.rates_let_at();
        let trial = self.tries_at();
        [
            store,
            loaded,
            wall,
            calendars,
            self.expires_at,
            rates,
            trial,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what can be done now.
    fn go_on(&mut self) {
        if self.has_failed {
            return;
        }
        if !self.is_stopping {
            self.run_calendars();
            self.load();
            self.cascade();
            self.expires_at = self.expire_archives();
        }
        self.deliver();
        self.mark_as_clean();
        self.commit();
    }

    /// Counts that a handler queue is checked.
    fn count_check(&mut self) {
        #[cfg(test)]
        {
            self.checks += 1;
        }
    }

    fn queue(&mut self, handler: &Arc<str>) -> usize {
        if let Some(&queue) = self.queue_of.get(handler) {
            return queue;
        }
        let namespace = self.namespace_index(namespace_in(handler));
        self.queues
            .push(HandlerQueue::new(Arc::clone(handler), namespace));
        let queue = self.queues.len() - 1;
        self.namespaces[namespace].queues.push(queue);
        self.queue_of.insert(Arc::clone(handler), queue);
        queue
    }

    fn present(&self) -> Due {
        self.now.due()
    }
}
