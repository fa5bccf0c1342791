//! Cases that the simulator cannot see from outside, or encounters too rarely.
//!
//! | file | question |
//! |---|---|
//! | `calendars` | which occurrences become timers, and when? |
//! | `commands` | what do commands from other processes do, and how are they answered? |
//! | `commits` | what goes into a commit, and when is the store asked? |
//! | `round_robin` | which delivery begins next when places are short? |
//! | `hand_overs` | what happens to deliveries while a store changes hands? |
//! | `leases` | what begins while the lease is not held? |
//! | `many` | what does a handler cost among many others? |
//! | `memory` | which timers are in memory, and which leave it? |
//! | `missing` | which names without a handler are reported? |
//! | `pauses` | what continues in a namespace that is paused or drained? |
//! | `phases` | how late does a timer come up, depending on the phase of the clocks? |
//! | `poison` | which timer is given up, and after how many ends of the process? |
//! | `quotas` | which inserts are refused, and for how long? |
//! | `rates` | when does a delivery that waits for a rate begin? |
//! | `refusals` | what happens after the store refuses a request? |
//! | `retention` | what is archived, and when does it expire? |
//! | `retries` | when is a timer retried? |
//! | `settings` | how are policies set, read and refused? |
//! | `starts` | how is a timer delivered whose start is noted first? |
//! | `trials` | which accused timer is tried next? |
//! | `withdrawals` | what happens to a delivery on its way while the clock is set back? |

mod calendars;
mod commands;
mod commits;
mod hand_overs;
mod leases;
mod many;
mod memory;
mod missing;
mod pauses;
mod phases;
mod poison;
mod quotas;
mod rates;
mod refusals;
mod retention;
mod retries;
mod round_robin;
mod settings;
mod starts;
mod trials;
mod withdrawals;

use std::collections::VecDeque;
use std::time::Duration;

use crate::store::{Handle, MemoryStore, Op, Row, Store, StoreError};

use super::*;
use crate::policy::{Backoff, Policy, Rate};

const SECOND: u64 = 1_000_000;
const NOW: i64 = 1_800_000_000_000;

/// An engine with a store that carries out requests when the test says so.
struct Subject {
    engine: Engine,
    store: MemoryStore,
    /// The commits and reads that are not carried out yet.
    requests: VecDeque<Output>,
    answers: Vec<Answer>,
    delivered: Vec<Row>,
    /// The deliveries behind `delivered`, as they were handed out.
    on_their_way: Vec<Delivery>,
    /// The number of commits requested.
    commits: usize,
    /// The outputs about missing handlers, policies and space.
    reports: Vec<String>,
    refusals: Vec<Arc<str>>,
    /// The timers that were given up, and why.
    dead: Vec<(Row, Arc<str>)>,
    config: Config,
    handled: Vec<(Arc<str>, usize)>,
}

impl Subject {
    fn new(config: Config) -> Subject {
        let now = Now {
            boot_micros: 5 * SECOND,
            wall_micros: NOW * 1_000,
        };
        let mut store = MemoryStore::new();
        let epoch = store.begin().unwrap();
        Subject {
            engine: Engine::new(config.clone(), epoch, Vec::new(), now),
            store,
            requests: VecDeque::new(),
            answers: Vec::new(),
            delivered: Vec::new(),
            on_their_way: Vec::new(),
            commits: 0,
            reports: Vec::new(),
            refusals: Vec::new(),
            dead: Vec::new(),
            config,
            handled: Vec::new(),
        }
    }

    /// Creates a subject with a modified configuration.
    fn with(set: impl FnOnce(&mut Config)) -> Subject {
        let mut config = Config::default();
        set(&mut config);
        Subject::new(config)
    }

    fn handles(mut self, concurrency: usize) -> Subject {
        self.handle("mail", concurrency);
        self
    }

    fn handle(&mut self, name: &str, concurrency: usize) {
        let name = Arc::from(name);
        self.engine.add_handler(&name, concurrency, None);
        self.handled.push((name, concurrency));
        self.settle();
    }

    /// Creates a namespace, or sets its policy, and adds a handler `mail` to it.
    fn namespace(&mut self, name: &str, policy: &Policy) {
        self.set_policy(name, policy);
        self.handle(&format!("{name}/mail"), 1_000);
    }

    fn set_policy(&mut self, name: &str, policy: &Policy) {
        self.engine.handle_policy(7, &name.into(), policy, false);
        self.settle();
        assert_eq!(self.answers.pop(), Some(Answer::Done));
    }

    fn pause(&mut self, name: &str, is_paused: bool) {
        self.engine.handle_pause(7, &name.into(), is_paused);
        self.settle();
        assert_eq!(self.answers.pop(), Some(Answer::Done));
    }

    /// Ends the process uncleanly, and starts the next one a second later.
    fn start_again(&mut self) {
        self.begin(self.later(SECOND));
    }

    /// Ends the process cleanly, giving up running deliveries.
    fn end_in_order(&mut self) {
        self.engine.handle_stop();
        self.engine.handle_abandon();
        self.settle();
    }

    /// Ends this many processes uncleanly, each a moment after it has begun its deliveries.
    fn end_processes(&mut self, count: usize) {
        for _ in 0..count {
            self.advance(1_000);
            self.start_again();
        }
        self.advance(1_000);
    }

    /// Starts a process at this time.
    fn begin(&mut self, now: Now) {
        self.begin_without_turn(now);
        self.settle();
        self.run_until(now.boot_micros);
    }

    fn begin_without_turn(&mut self, now: Now) {
        self.requests.clear();
        self.delivered.clear();
        self.on_their_way.clear();
        let epoch = self.store.begin().unwrap();
        let names = self.store.handlers().unwrap();
        self.engine = Engine::new(self.config.clone(), epoch, names, now);
        let settings = self.store.settings().unwrap();
        self.engine.restore_settings(&settings);
        for (name, concurrency) in &self.handled {
            self.engine.add_handler(name, *concurrency, None);
        }
        self.follow();
    }

    /// Moves time on through all turns that the engine asks for, up to this time. The engine may ask for a turn at the present only once in a row.
    fn run_until(&mut self, boot: u64) {
        let mut turns_at_once = 0;
        loop {
            let now = self.engine.now().boot_micros;
            let next = self.engine.poll_timeout().unwrap_or(u64::MAX).max(now);
            if next > boot {
                return self.go_on_until(boot);
            }
            turns_at_once = if next == now { turns_at_once + 1 } else { 0 };
            assert!(turns_at_once < 2, "it turns again and again at {now}");
            self.go_on_until(next);
        }
    }

    fn go_on_until(&mut self, boot: u64) {
        self.pass(boot - self.engine.now().boot_micros);
        self.settle();
    }

    /// Ends all running deliveries, and returns their rows.
    fn end_all(&mut self, ended: &Ended) -> Vec<Row> {
        let rows = std::mem::take(&mut self.delivered);
        for row in &rows {
            self.engine.handle_ended(row.id, ended.clone());
        }
        self.settle();
        rows
    }

    /// Ends the delivery that began first, and returns its row.
    fn end_first(&mut self, ended: &Ended) -> Row {
        let row = self.delivered.remove(0);
        self.engine.handle_ended(row.id, ended.clone());
        self.settle();
        row
    }

    fn cancel(&mut self, handle: Handle) {
        self.engine.handle_cancel(1, handle);
        self.settle();
    }

    fn follow(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Commit { .. } | Output::Read(..) => {
                    self.commits += usize::from(ops_of(&output).is_some());
                    self.requests.push_back(output);
                }
                Output::Answer(_, answer) => self.answers.push(answer),
                Output::Deliver(delivery) => {
                    self.delivered.push(delivery.row.clone());
                    self.on_their_way.push(delivery);
                }
                Output::Unhandled(name) => self.reports.push(format!("{name} is missed")),
                Output::NoneDue(name) => self.reports.push(format!("{name} is not missed")),
                Output::Refused(why) => self.refusals.push(why),
                Output::Dead(row, why) => self.dead.push((row, why)),
                Output::UnreadablePolicy(name) => {
                    self.reports.push(format!("{name} is unreadable"));
                }
                Output::UnreadableCalendar(name, why) => {
                    self.reports.push(format!("the calendar {name}: {why}"));
                }
                Output::Full => self.reports.push("full".to_owned()),
                Output::HasSpace => self.reports.push("not full".to_owned()),
                Output::LeaseLost => self.reports.push("the lease is lost".to_owned()),
                Output::LeaseHeld => self.reports.push("the lease is held".to_owned()),
                Output::Failed(_) => {}
            }
        }
    }

    /// Lets the store carry out all requests.
    fn settle(&mut self) {
        self.follow();
        while let Some(request) = self.requests.pop_front() {
            self.carry_out(request);
        }
    }

    fn carry_out_next(&mut self) {
        let request = self.requests.pop_front().unwrap();
        self.carry_out(request);
    }

    fn carry_out(&mut self, request: Output) {
        let reply = self.execute(request);
        self.hand_in(reply);
    }

    /// Lets the store carry out a request, but does not deliver the reply yet.
    fn execute(&mut self, request: Output) -> Replied {
        match request {
            Output::Commit {
                number,
                commit,
                ops,
            } => Replied::Commit(number, self.store.commit(commit, &ops)),
            Output::Read(number, query) => Replied::Read(number, query.execute(&mut self.store)),
            other => panic!("{other:?}"),
        }
    }

    fn hand_in(&mut self, replied: Replied) {
        match replied {
            Replied::Commit(number, outcomes) => self.engine.handle_committed(number, outcomes),
            Replied::Read(number, reply) => self.engine.handle_reply(number, reply),
        }
        self.follow();
    }

    /// Replies to the next request, which must be a commit unless the reply is an error.
    fn reply(&mut self, outcomes: Result<Vec<Outcome>, StoreError>) {
        let replied = match (self.requests.pop_front().unwrap(), outcomes) {
            (Output::Commit { number, .. }, outcomes) => Replied::Commit(number, outcomes),
            (Output::Read(number, _), Err(error)) => Replied::Read(number, Err(error)),
            (other, outcomes) => panic!("{other:?}: {outcomes:?}"),
        };
        self.hand_in(replied);
    }

    /// Lets the store carry out everything up to and including the next commit, and returns its steps.
    fn next_commit(&mut self) -> Vec<Op> {
        loop {
            let request = self.requests.pop_front().unwrap();
            let steps = ops_of(&request).map(<[Op]>::to_vec);
            self.carry_out(request);
            if let Some(steps) = steps {
                return steps;
            }
        }
    }

    fn pass(&mut self, micros: u64) {
        self.engine.handle_time(self.later(micros));
        self.follow();
    }

    /// Moves time on, and lets the store carry out all requests.
    fn advance(&mut self, micros: u64) {
        self.pass(micros);
        self.settle();
    }

    /// Sets the wall clock, and lets the store carry out all requests.
    fn jump(&mut self, by: i64) {
        self.set(by);
        self.settle();
    }

    /// The present plus this many microseconds.
    fn later(&self, micros: u64) -> Now {
        let mut now = self.engine.now();
        now.boot_micros += micros;
        now.wall_micros += micros.cast_signed();
        now
    }

    /// Returns an existing namespace.
    fn of(&self, name: &str) -> &Namespace {
        self.engine.namespaces().get(name).unwrap()
    }

    /// Sets the wall clock.
    fn set(&mut self, by: i64) {
        let mut now = self.engine.now();
        now.wall_micros += by;
        self.engine.handle_time(now);
        self.follow();
    }

    fn insert(&mut self, millis: i64) {
        self.insert_to("mail", millis);
    }

    /// Inserts this many timers, and lets the store carry out all requests.
    fn insert_many(&mut self, handler: &str, count: usize, millis: i64) {
        for _ in 0..count {
            self.insert_to(handler, millis);
        }
        self.settle();
    }

    fn insert_to(&mut self, handler: &str, millis: i64) {
        let timer = new_row(
            handler.into(),
            Due::from_millis(NOW + millis),
            None,
            Arc::from([7; 64]),
        );
        self.engine.handle_insert(0, timer);
        self.follow();
    }

    /// The handles of the timers that were inserted and answered.
    fn created(&mut self) -> Vec<Handle> {
        let answers = std::mem::take(&mut self.answers).into_iter();
        let handles = answers.map(|answer| match answer {
            Answer::Created(handle) => handle,
            other => panic!("{other:?}"),
        });
        handles.collect()
    }
}

/// A reply of the store, with the number of its request.
enum Replied {
    Commit(u64, Result<Vec<Outcome>, StoreError>),
    Read(u64, Result<Reply, StoreError>),
}

/// The operations of a commit. `None` for other requests.
fn ops_of(request: &Output) -> Option<&[Op]> {
    match request {
        Output::Commit { ops, .. } => Some(ops),
        _ => None,
    }
}

fn failed() -> Ended {
    Ended::Failed(Arc::from("no"))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn refused() -> Result<Vec<Outcome>, StoreError> {
    Err(StoreError::definite("the disk is full"))
}
