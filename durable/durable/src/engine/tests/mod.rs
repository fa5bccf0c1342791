//! What the simulator cannot see from outside, or meets too seldom.
//!
//! | file | question |
//! |---|---|
//! | `commits` | what goes into a commit, and when is the store asked? |
//! | `memory` | what is in memory, and what leaves it? |
//! | `missing` | which names are reported that have no handler? |
//! | `refusals` | what becomes of what the store refuses? |

mod commits;
mod memory;
mod missing;
mod refusals;

use waterwheel_store::{Handle, MemoryStore, Op, Row, Store, StoreError};

use super::*;

const SECOND: u64 = 1_000_000;
const NOW: i64 = 1_800_000_000_000;

/// An engine on a store that does what it is asked when the test says so.
struct Subject {
    engine: Engine,
    store: MemoryStore,
    asked: VecDeque<Request>,
    answers: Vec<Answer>,
    delivered: Vec<Row>,
    /// What was put out of names without a handler.
    reports: Vec<String>,
    refusals: Vec<Arc<str>>,
    handler: Arc<str>,
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
            engine: Engine::new(config, epoch, Vec::new(), now),
            store,
            asked: VecDeque::new(),
            answers: Vec::new(),
            delivered: Vec::new(),
            reports: Vec::new(),
            refusals: Vec::new(),
            handler: Arc::from("mail"),
        }
    }

    fn handles(mut self, concurrency: usize) -> Subject {
        self.engine.handle(&self.handler, concurrency);
        self.settle();
        self
    }

    fn follow(&mut self) {
        while let Some(output) = self.engine.output() {
            match output {
                Output::Store(request) => self.asked.push_back(request),
                Output::Answer(_, answer) => self.answers.push(answer),
                Output::Deliver(delivery) => self.delivered.push(delivery.row),
                Output::Unhandled(name) => self.reports.push(format!("{name} is missed")),
                Output::NoneDue(name) => self.reports.push(format!("{name} is not missed")),
                Output::Refused(why) => self.refusals.push(why),
                Output::Dead(..) | Output::Failed(_) => {}
            }
        }
    }

    /// The store does all that it is asked.
    fn settle(&mut self) {
        self.follow();
        while let Some(Request { number, call }) = self.asked.pop_front() {
            let reply = call.ask(&mut self.store);
            self.engine.replied(number, reply);
            self.follow();
        }
    }

    /// The next request, which is to be of this kind, is replied to like this.
    fn reply(&mut self, reply: Result<Reply, StoreError>) {
        let request = self.asked.pop_front().unwrap();
        self.engine.replied(request.number, reply);
        self.follow();
    }

    /// The store does what it is asked, up to and with the next commit, whose steps these are.
    fn next_commit(&mut self) -> Vec<Op> {
        loop {
            let Request { number, call } = self.asked.pop_front().unwrap();
            let steps = match &call {
                Call::Commit(_, steps) => Some(steps.to_vec()),
                _ => None,
            };
            let reply = call.ask(&mut self.store);
            self.engine.replied(number, reply);
            self.follow();
            if let Some(steps) = steps {
                return steps;
            }
        }
    }

    fn pass(&mut self, micros: u64) {
        let mut now = self.engine.now();
        now.boot_micros += micros;
        now.wall_micros += micros.cast_signed();
        self.engine.turn(now);
        self.follow();
    }

    /// The wall clock is set.
    fn set(&mut self, by: i64) {
        let mut now = self.engine.now();
        now.wall_micros += by;
        self.engine.turn(now);
        self.follow();
    }

    fn insert(&mut self, millis: i64) {
        let timer = NewTimer {
            handler: Arc::clone(&self.handler),
            due: Due::from_millis(NOW + millis),
            key: None,
            payload: Arc::from([7; 64]),
        };
        self.engine.insert(0, timer);
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

fn refused() -> Result<Reply, StoreError> {
    Err(StoreError::definite("the disk is full"))
}
