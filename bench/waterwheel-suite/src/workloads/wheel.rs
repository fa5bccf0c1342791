//! `wheel`: the pure data structure, [`Wheel`], without clock, lock or task, by the number of its timers and how
//! far ahead they are due: at random, evenly distributed, or in the order in which they are inserted, as with one
//! timeout for all. The order decides whether neighbours in a slot are neighbours in memory.
//!
//! The suite's own rounds measure it, not criterion. criterion assumes that each further iteration costs the same; here an
//! insert without a cancel makes the wheel larger and an expiry makes it smaller. So everything would be `iter_custom`
//! around the loops below, with small first samples in which the clock is most of the figure. A sample here is long enough
//! to need no regression, and is in the same file as all others.
//!
//! | metric | timed work |
//! |:--|:--|
//! | insert; cancel, oldest first | half of the timers stay; as many as the whole population come, and go in the order in which they came, as in `churn` |
//! | insert, cancel at random | the same in a random order: each entry is a cache miss, and the next insert takes the free entries in that order |
//! | expire | the hand goes from one turn to the next until no timer is left: all of the advances, divided by the timers. Far ahead they cascade up to two times, and a turn has few timers to share its cost |
//! | `next_expiration` | many calls on a wheel at rest, whose branches the processor then knows |
//!
//! The payload has the size of a waker. Deadlines and the random order are computed beforehand; the figure of the
//! insert includes storing each key.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fastrand::Rng;
use waterwheel::wheel::{Key, Resolution, Tick, Ticks, Verdict, Wheel};
use waterwheel_suite::{Metric, Sample, Target, Want};

use crate::entrant::Entrant;
use crate::workload::Workload;

const METRICS: &[Metric] = &[
    Metric::lower("insert", "ns"),
    Metric::lower("cancel, oldest first", "ns"),
    Metric::lower("insert after cancels at random", "ns"),
    Metric::lower("cancel at random", "ns"),
    Metric::lower("expire", "ns"),
    Metric::lower("next_expiration", "ns"),
];
/// The maximum time until the timers are due, in ticks of a millisecond, and their order.
const ROWS: [(&str, u64, Order); 4] = [
    ("over 1 s", 1_000, Order::Random),
    ("over 1 min", 60_000, Order::Random),
    ("over 1 h", 3_600_000, Order::Random),
    ("over 1 min, in turn", 60_000, Order::InTurn),
];
/// The initial tick. At zero all dials would be at their first slot.
const START: Tick = Tick::new(20_000_123_456);
const PAYLOAD: Payload = [0; 2];
/// The number of states of the wheel in which `next_expiration` is called, each one advance after the previous one.
const STATES: usize = 50;
/// The number of calls in each state.
const ASKED: u32 = 100;

type Payload = [usize; 2];

#[derive(Clone, Copy)]
enum Order {
    Random,
    InTurn,
}

#[derive(Clone, Copy)]
struct Load {
    population: usize,
    spread: u64,
    order: Order,
    /// The minimum number of operations of each kind in a sample.
    operations: usize,
}

fn title(population: usize) -> String {
    format!("wheel, {population} timers")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let (population, operations) = if quick {
        (10_000, 100_000)
    } else {
        (1_000_000, 1_000_000)
    };
    vec![Workload {
        title: title(population),
        work: "the data structure alone, one thread".to_owned(),
        metrics: METRICS,
        entrants: ROWS
            .map(|(name, spread, order)| {
                let load = Load {
                    population,
                    spread,
                    order,
                    operations,
                };
                Entrant::new(name, move || sample(load))
            })
            .into(),
        absent: Vec::new(),
    }]
}

pub(crate) fn targets() -> Vec<Target> {
    // The targets do not name the order in which timers are cancelled: verdicts on both.
    let wanted = [
        ("insert", 15.0),
        ("insert after cancels at random", 15.0),
        ("cancel, oldest first", 12.0),
        ("cancel at random", 12.0),
        ("expire", 12.0),
        ("next_expiration", 20.0),
    ];
    let mut targets = Vec::new();
    for (metric, nanos) in wanted {
        for (of, ..) in ROWS {
            targets.push(Target::new(
                title(1_000_000),
                metric,
                of,
                Want::AtMost(nanos),
            ));
        }
    }
    targets
}

fn sample(load: Load) -> Sample {
    let mut random = Rng::with_seed(0);
    let mut offsets: Vec<Ticks> = (0..load.population)
        .map(|_| Ticks::new(1 + random.u64(0..load.spread)))
        .collect();
    if let Order::InTurn = load.order {
        offsets.sort_unstable();
    }
    let mut subject = Subject::new(offsets);
    let repeats = load.operations.div_ceil(load.population);

    let mut sums = [Duration::ZERO; 5];
    subject.settle();
    for _ in 0..repeats {
        sums[0] += subject.insert();
        sums[1] += subject.cancel();
    }
    subject.leave_none();
    for _ in 0..repeats {
        subject.insert();
        sums[4] += subject.expire();
    }
    // This comes last, since it leaves the free entries in a random order.
    subject.settle();
    for _ in 0..repeats {
        sums[2] += subject.insert();
        subject.shuffle(&mut random);
        sums[3] += subject.cancel();
    }
    subject.leave_none();
    let operations = (repeats * load.population) as f64;
    let mut values: Vec<f64> = sums
        .iter()
        .map(|sum| sum.as_nanos() as f64 / operations)
        .collect();
    subject.insert();
    values.push(subject.next_expiration());
    Sample::of(values)
}

/// A wheel, and the keys of its timers that come and go.
struct Subject {
    wheel: Wheel<Payload>,
    offsets: Vec<Ticks>,
    stay: Vec<Key>,
    keys: Vec<Key>,
}

impl Subject {
    fn new(offsets: Vec<Ticks>) -> Self {
        Self {
            wheel: Wheel::starting_at(Resolution::MILLISECOND, START),
            stay: Vec::new(),
            keys: Vec::with_capacity(offsets.len()),
            offsets,
        }
    }

    /// Inserts the half of the population that stays; and reserves room for the others, so that no insert waits for the slab to grow.
    fn settle(&mut self) {
        self.insert();
        self.cancel();
        for &offset in &self.offsets[..self.offsets.len() / 2] {
            let deadline = self.wheel.now().saturating_add(offset);
            self.stay.push(self.wheel.insert(deadline, PAYLOAD));
        }
        self.insert();
        self.cancel();
    }

    fn leave_none(&mut self) {
        for key in self.stay.drain(..) {
            self.wheel.cancel(key);
        }
    }

    fn insert(&mut self) -> Duration {
        let now = self.wheel.now();
        let start = Instant::now();
        for &offset in &self.offsets {
            self.keys
                .push(self.wheel.insert(now.saturating_add(offset), PAYLOAD));
        }
        start.elapsed()
    }

    /// Cancels the timers in the order of the keys.
    fn cancel(&mut self) -> Duration {
        let start = Instant::now();
        for key in self.keys.drain(..) {
            black_box(self.wheel.cancel(key));
        }
        start.elapsed()
    }

    fn shuffle(&mut self, random: &mut Rng) {
        for last in (1..self.keys.len()).rev() {
            self.keys.swap(last, random.usize(..=last));
        }
    }

    /// Expires the timers like a driver that is never late: each advance goes to the next tick at which there is work.
    fn expire(&mut self) -> Duration {
        let start = Instant::now();
        while !self.wheel.is_empty() {
            self.turn();
        }
        let time = start.elapsed();
        self.keys.clear();
        time
    }

    fn turn(&mut self) {
        let turn = self.wheel.quiet_until();
        self.wheel.advance(
            turn,
            usize::MAX,
            |_key, _deadline, _payload| Verdict::Due,
            |_deadline, payload| {
                black_box(payload);
            },
        );
    }

    /// Returns the nanoseconds of one call.
    fn next_expiration(&mut self) -> f64 {
        let mut sum = Duration::ZERO;
        for _ in 0..STATES {
            self.turn();
            let start = Instant::now();
            for _ in 0..ASKED {
                black_box(black_box(&self.wheel).next_expiration());
            }
            sum += start.elapsed();
        }
        sum.as_nanos() as f64 / (STATES as f64 * f64::from(ASKED))
    }
}
