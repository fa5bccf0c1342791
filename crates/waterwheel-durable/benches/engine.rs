//! The cost of the engine of durable timers alone: nanoseconds per timer, without threads, a disk, or the callers' side.
//!
//! `cargo bench -p waterwheel-durable --bench engine [-- --rounds N]`. A shell holds a lock while it calls the engine, takes its outputs and asks for the
//! next turn, so that is timed, and the work of the store, the handlers and the callers in between is not. The rounds of all cells are interleaved.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use waterwheel_durable_core::engine::{Answer, Config, Engine, Now, Output, new_row};
use waterwheel_durable_core::store::Ended;
use waterwheel_durable_core::store::{Due, Handle, Id, Level, MemoryStore, Op, Row, Store};

const NOW: i64 = 1_800_000_000_000;
const IN_COMMIT: usize = 1_024;
const REQUESTS: usize = 16 * IN_COMMIT;
const BURST: usize = 200_000;
/// The number of concurrent deliveries, of all handlers.
const CONCURRENCY: usize = 1_000;

type Cell = fn(&mut Bench);

const CELLS: [(&str, usize, Cell); 5] = [
    ("insert, due in 1.5 s", REQUESTS, insert_near),
    ("insert, due over 30 days", REQUESTS, insert_far),
    ("cancel in memory", REQUESTS, cancel_near),
    ("cancel in the store", REQUESTS, cancel_far),
    ("load, expire, deliver, end, settle", BURST, burst),
];

/// The number of handlers, and how many of them have timers.
const HANDLERS: [(usize, usize); 2] = [(1, 1), (200, 10)];

fn main() {
    let rounds = rounds();
    let mut samples = vec![Vec::new(); CELLS.len() * HANDLERS.len()];
    for _ in 0..rounds {
        let cells = HANDLERS.iter().flat_map(|of| CELLS.map(|cell| (of, cell)));
        for (samples, ((handlers, busy), (_, timers, run))) in samples.iter_mut().zip(cells) {
            let mut bench = Bench::new(*handlers, *busy);
            run(&mut bench);
            samples.push(bench.spent.as_nanos() as f64 / timers as f64);
        }
    }
    println!("ns a timer in the engine, {rounds} rounds: median (min to max)");
    for (at, samples) in samples.iter_mut().enumerate() {
        samples.sort_by(f64::total_cmp);
        let ((handlers, busy), (name, ..)) = (HANDLERS[at / CELLS.len()], CELLS[at % CELLS.len()]);
        let (min, middle, max) = (samples[0], samples[rounds / 2], samples[rounds - 1]);
        println!(
            "{handlers:>3} handlers, {busy:>2} busy: {name:<34} {middle:>5.0} ({min:.0} to {max:.0})"
        );
    }
}

fn rounds() -> usize {
    let mut arguments = std::env::args().skip_while(|it| it != "--rounds");
    let rounds = arguments.nth(1).and_then(|it| it.parse().ok());
    rounds.unwrap_or(11).max(1)
}

fn insert_near(bench: &mut Bench) {
    bench.begin();
    bench.insert(|_| 1_500);
    assert_eq!(bench.engine.stats().in_memory, REQUESTS);
}

fn insert_far(bench: &mut Bench) {
    bench.begin();
    bench.insert(|at| 60_000 + at as i64 * 1_000_003 % 2_592_000_000);
    assert_eq!(bench.engine.stats().in_memory, 0);
}

fn cancel_near(bench: &mut Bench) {
    insert_near(bench);
    bench.cancel();
}

fn cancel_far(bench: &mut Bench) {
    insert_far(bench);
    bench.cancel();
}

/// All timers are overdue when the engine begins.
fn burst(bench: &mut Bench) {
    let second = |row: &Row| Level::Second.bucket(row.due);
    for at in 0..BURST / IN_COMMIT + 1 {
        let rows = at * IN_COMMIT..BURST.min((at + 1) * IN_COMMIT);
        let rows = rows.map(|at| bench.row(at));
        let steps: Vec<_> = rows
            .map(|row| Op::Insert(row.clone(), second(&row)))
            .collect();
        bench.store.commit(at as u64 + 1, &steps).expect(REFUSES);
    }
    bench.begin();
    while !bench.store.is_empty() {
        let rows = std::mem::take(&mut bench.delivered);
        bench.call(rows.iter(), |engine, row| {
            engine.handle_ended(row.id, Ended::Well);
        });
        bench.reply();
        bench.call([bench.now], Engine::handle_time);
    }
    assert!(bench.engine.is_idle() && bench.engine.stats().in_memory == 0);
}

const REFUSES: &str = "a store in memory refuses nothing";

struct Bench {
    engine: Engine,
    store: MemoryStore,
    handlers: Vec<Arc<str>>,
    busy: usize,
    now: Now,
    /// The time spent in the engine.
    spent: Duration,
    outputs: Vec<Output>,
    /// The pending commits and reads.
    requests: VecDeque<Output>,
    delivered: Vec<Row>,
    created: Vec<Handle>,
    done: usize,
}

impl Bench {
    fn new(handlers: usize, busy: usize) -> Bench {
        let now = Now {
            boot_micros: 1_000_000,
            wall_micros: NOW * 1_000,
        };
        Bench {
            engine: Engine::new(Config::default(), 1, Vec::new(), now),
            store: MemoryStore::new(),
            handlers: (0..handlers)
                .map(|at| format!("handler {at}").into())
                .collect(),
            busy,
            now,
            spent: Duration::ZERO,
            outputs: Vec::new(),
            requests: VecDeque::new(),
            delivered: Vec::new(),
            created: Vec::new(),
            done: 0,
        }
    }

    /// Opens the store, and adds a handler for each name.
    fn begin(&mut self) {
        let epoch = self.store.begin().expect(REFUSES);
        self.engine = Engine::new(Config::default(), epoch, self.handlers.clone(), self.now);
        let each = CONCURRENCY / self.busy;
        self.call(self.handlers.clone(), |engine, name| {
            engine.add_handler(&name, each, None);
        });
        self.reply();
        self.spent = Duration::ZERO;
    }

    /// Calls the engine, and does what a shell does under its lock.
    fn call<T>(&mut self, each: impl IntoIterator<Item = T>, call: impl Fn(&mut Engine, T)) {
        let (engine, outputs) = (&mut self.engine, &mut self.outputs);
        let start = Instant::now();
        for it in each {
            call(engine, it);
            while let Some(output) = engine.poll_output() {
                outputs.push(output);
            }
            black_box(engine.poll_timeout());
        }
        self.spent += start.elapsed();
        for output in self.outputs.drain(..) {
            match output {
                Output::Commit { .. } | Output::Read(..) => self.requests.push_back(output),
                Output::Deliver(delivery) => self.delivered.push(delivery.row),
                Output::Answer(_, Answer::Created(handle)) => self.created.push(handle),
                Output::Answer(_, Answer::Done) => self.done += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Lets the store reply until no requests are left.
    fn reply(&mut self) {
        while let Some(request) = self.requests.pop_front() {
            match request {
                Output::Commit {
                    number,
                    commit,
                    ops,
                } => {
                    let outcomes = self.store.commit(commit, &ops);
                    self.call([outcomes], |engine, outcomes| {
                        engine.handle_committed(number, outcomes);
                    });
                }
                Output::Read(number, query) => {
                    let reply = query.execute(&mut self.store);
                    self.call([reply], |engine, reply| engine.handle_reply(number, reply));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Makes a number of requests per commit, timed from the call to the answer.
    fn insert(&mut self, distance: fn(usize) -> i64) {
        for at in (0..REQUESTS).step_by(IN_COMMIT) {
            let timers: Vec<_> = (at..at + IN_COMMIT)
                .map(|at| {
                    let row = self.row(at);
                    let due = Due::from_millis(NOW + distance(at));
                    new_row(row.handler, due, None, row.payload)
                })
                .collect();
            self.call(timers, |engine, timer| engine.handle_insert(0, timer));
            self.reply();
        }
        assert_eq!(self.created.len(), REQUESTS);
    }

    fn cancel(&mut self) {
        self.spent = Duration::ZERO;
        let handles = std::mem::take(&mut self.created);
        for handles in handles.chunks(IN_COMMIT) {
            self.call(handles.to_vec(), |engine, handle| {
                engine.handle_cancel(0, handle);
            });
            self.reply();
        }
        assert_eq!(self.done, REQUESTS);
        assert_eq!(self.engine.stats().in_memory, 0);
    }

    /// The `at`th timer, which was due a while ago.
    fn row(&self, at: usize) -> Row {
        let id = Id::new(1, at as u64).expect("there are ids enough");
        let due = Due::from_millis(NOW - 10_000 + at as i64 * 8_000 / BURST as i64);
        let handler = Arc::clone(&self.handlers[at % self.busy]);
        Row::new(id, due, handler, [at as u8; 64])
    }
}
