//! Cases that the simulator cannot see from outside, or meets too seldom.
//!
//! | file | question |
//! |---|---|
//! | `calendars` | which occurrences become timers, and when? |
//! | `commits` | what goes into a commit, and when is the store asked? |
//! | `round_robin` | whose delivery begins next, where places are short? |
//! | `many` | what does a handler cost beside many others? |
//! | `memory` | what is in memory, and what leaves it? |
//! | `missing` | which names are reported that have no handler? |
//! | `pauses` | what goes on in a namespace that is paused or drained? |
//! | `phases` | how late does a timer come up, whatever the phase of the clocks? |
//! | `poison` | which timer is given up, after how many ends of the process? |
//! | `quotas` | which inserts are refused, and for how long? |
//! | `rates` | when does a delivery begin that waits for a rate? |
//! | `refusals` | what becomes of what the store refuses? |
//! | `retention` | what is archived, and when does it expire? |
//! | `retries` | when is a timer tried again? |
//! | `settings` | what becomes of a policy? |
//! | `starts` | what becomes of a timer whose start is noted first? |
//! | `trials` | which accused timer is tried next? |
//! | `withdrawals` | what becomes of a delivery on its way while the clock is set back? |

mod calendars;
mod commits;
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

/// An engine on a store that does what it is asked when the test says so.
struct Subject {
    engine: Engine,
    store: MemoryStore,
    /// The commits and reads that are not done yet.
    requests: VecDeque<Output>,
    answers: Vec<Answer>,
    delivered: Vec<Row>,
    /// The deliveries of all that was delivered, as they were handed out.
    on_their_way: Vec<Delivery>,
    /// How many commits were asked for.
    commits: usize,
    /// The outputs about names without a handler, policies and space.
    reports: Vec<String>,
    refusals: Vec<Arc<str>>,
    /// Those that were given up, and why.
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

    /// With what is set.
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
        self.engine.add_handler(&name, concurrency);
        self.handled.push((name, concurrency));
        self.settle();
    }

    /// Creates a namespace, or gives it another policy, and has a handler `mail` in it.
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

    /// The process ends as it is, and the next one begins a second later.
    fn start_again(&mut self) {
        self.begin(self.later(SECOND));
    }

    /// The process ends in order, and whatever it was about is given up.
    fn end_in_order(&mut self) {
        self.engine.handle_stop();
        self.engine.handle_abandon();
        self.settle();
    }

    /// So many processes end as they are, each a moment after it has begun its deliveries.
    fn end_processes(&mut self, count: usize) {
        for _ in 0..count {
            self.advance(1_000);
            self.start_again();
        }
        self.advance(1_000);
    }

    /// A process begins at this time.
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
            self.engine.add_handler(name, *concurrency);
        }
        self.follow();
    }

    /// Time goes on to the next turn that the engine asks for, but not beyond this. It asks for one in the past no more than once.
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

    /// Ends what is with a handler, and returns the rows.
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
                Output::Failed(_) => {}
            }
        }
    }

    /// The store does all that it is asked.
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

    /// The store does what it is asked, and its reply is on its way.
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

    /// The next request, which is a commit if the store does not refuse or fail, is replied to like this.
    fn reply(&mut self, outcomes: Result<Vec<Outcome>, StoreError>) {
        let replied = match (self.requests.pop_front().unwrap(), outcomes) {
            (Output::Commit { number, .. }, outcomes) => Replied::Commit(number, outcomes),
            (Output::Read(number, _), Err(error)) => Replied::Read(number, Err(error)),
            (other, outcomes) => panic!("{other:?}: {outcomes:?}"),
        };
        self.hand_in(replied);
    }

    /// The store does what it is asked, up to and with the next commit, whose steps these are.
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

    /// Time goes on, and the store does all that it is asked.
    fn advance(&mut self, micros: u64) {
        self.pass(micros);
        self.settle();
    }

    /// The wall clock is set, and the store does all that it is asked.
    fn jump(&mut self, by: i64) {
        self.set(by);
        self.settle();
    }

    /// The present, so much later.
    fn later(&self, micros: u64) -> Now {
        let mut now = self.engine.now();
        now.boot_micros += micros;
        now.wall_micros += micros.cast_signed();
        now
    }

    /// A namespace that is there.
    fn of(&self, name: &str) -> &Namespace {
        self.engine.namespaces().get(name).unwrap()
    }

    /// The wall clock is set.
    fn set(&mut self, by: i64) {
        let mut now = self.engine.now();
        now.wall_micros += by;
        self.engine.handle_time(now);
        self.follow();
    }

    fn insert(&mut self, millis: i64) {
        self.insert_to("mail", millis);
    }

    /// Inserts so many, and the store does all that it is asked.
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

    /// The handles of what was inserted and answered.
    fn created(&mut self) -> Vec<Handle> {
        let answers = std::mem::take(&mut self.answers).into_iter();
        let handles = answers.map(|answer| match answer {
            Answer::Created(handle) => handle,
            other => panic!("{other:?}"),
        });
        handles.collect()
    }
}

/// A reply of the store, with the number of the request.
enum Replied {
    Commit(u64, Result<Vec<Outcome>, StoreError>),
    Read(u64, Result<Reply, StoreError>),
}

/// The operations of a commit. `None` of anything else.
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
