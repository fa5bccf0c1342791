//! `delay_queue`: our delay queue, compared to tokio-util's of the same name and to the bare [`Wheel`].
//!
//! The bare wheel is the floor: the caller turns it, and it wakes no task and ends no stream. In *drain one*, `delay queue` takes
//! one item per poll, like tokio-util, and `delay queue, many` up to 128 at a time.
//!
//! *Insert + remove* is the ring of `churn`: the oldest of N items is removed, and a new one inserted, due 30 s later. *Insert at +
//! remove* is the same with a given deadline (`insert_at`), so that no clock is read. *Drain one* takes out one item of N that were due
//! over a twentieth of a second and are all overdue, in a task that yields every 128 items.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tokio_util::time as tokio_util;
use waterwheel::wheel::{self, Resolution, Tick, Verdict, Wheel};
use waterwheel::{DelayQueue, delay_queue};
use waterwheel_suite::{Metric, Sample, Target, Want};

use crate::entrant::Entrant;
use crate::stage::{BATCH, Stage};
use crate::workload::Workload;

const INSERT_REMOVE: &str = "insert + remove";
const INSERT_AT_REMOVE: &str = "insert at + remove";
const METRICS: &[Metric] = &[
    Metric::lower(INSERT_REMOVE, "ns"),
    Metric::lower(INSERT_AT_REMOVE, "ns"),
    Metric::lower("drain one", "ns"),
];
const DELAY: Duration = Duration::from_secs(30);
/// The time over which the items to be drained are due.
const DUE_OVER: Duration = Duration::from_millis(50);
/// The time per item from the first insertion to the first deadline: none may be due when it is inserted.
const MADE_IN: Duration = Duration::from_nanos(500);
const NANOS_A_TICK: u64 = 1_000_000;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let (populations, operations): (&[usize], _) = if quick {
        (&[1_000], 100_000)
    } else {
        (&[1_000, 100_000, 1_000_000], 1_000_000)
    };
    let workload = |&population| Workload {
        title: title(population),
        work: format!("{operations} operations a round"),
        metrics: METRICS,
        entrants: vec![
            entrant::<TokioUtil>(population, operations),
            entrant::<Ours<false>>(population, operations),
            entrant::<Ours<true>>(population, operations),
            entrant::<PureWheel>(population, operations),
        ],
        absent: Vec::new(),
    };
    populations.iter().map(workload).collect()
}

fn title(population: usize) -> String {
    format!("delay_queue, {population} items")
}

pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    let mut beats = |population, metric, of, at_least| {
        let want = Want::times(TokioUtil::NAME, at_least);
        targets.push(Target::new(title(population), metric, of, want));
    };
    for population in [1_000, 100_000, 1_000_000] {
        // The clock and the bare wheel alone take more than half of our time.
        beats(population, INSERT_REMOVE, Ours::<false>::NAME, 1.5);
        beats(population, INSERT_AT_REMOVE, Ours::<false>::NAME, 1.5);
        beats(population, "drain one", Ours::<false>::NAME, 3.0);
        if population >= 100_000 {
            beats(population, "drain one", Ours::<true>::NAME, 5.0);
        }
    }
    targets
}

fn entrant<Q: Queue>(population: usize, operations: usize) -> Entrant {
    Entrant::new(Q::NAME, move || {
        let stage = Stage::new();
        let insert = |queue: &mut Q, _: Instant| queue.insert(DELAY);
        let ring = stage.run(insert_and_remove(population, operations, insert));
        let ring_at = stage.run(insert_and_remove(population, operations, Q::insert_at));
        let drain = stage.run(drain::<Q>(population, operations));
        let (drained, lost) = drain;
        Sample {
            values: vec![ring, ring_at, drained],
            lost,
            ..Sample::default()
        }
    })
}

/// The operations that all contestants have.
trait Queue: Send + 'static {
    const NAME: &'static str;
    type Key: Send;

    fn new() -> Self;
    fn insert(&mut self, delay: Duration) -> Self::Key;
    fn insert_at(&mut self, due: Instant) -> Self::Key;
    fn remove(&mut self, key: Self::Key);
    /// Takes out this many items, all of them overdue; fewer if there are no more. Yields at times.
    fn drain(&mut self, items: usize) -> impl Future<Output = usize> + Send;
}

/// Nanoseconds of one operation.
async fn insert_and_remove<Q: Queue>(
    population: usize,
    operations: usize,
    insert: impl Fn(&mut Q, Instant) -> Q::Key,
) -> f64 {
    let mut queue = Q::new();
    let mut due = Instant::now() + DELAY;
    let mut next_due = || {
        // Two thousand per millisecond.
        due += Duration::from_nanos(500);
        due
    };
    let mut ring: VecDeque<_> = (0..population)
        .map(|_| insert(&mut queue, next_due()))
        .collect();
    let start = Instant::now();
    for operation in 0..operations {
        if operation % BATCH == 0 {
            yield_now().await;
        }
        queue.remove(ring.pop_front().expect("the ring has its population"));
        ring.push_back(insert(&mut queue, next_due()));
    }
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// Nanoseconds per item, and the number of items that never came out.
async fn drain<Q: Queue>(population: usize, operations: usize) -> (f64, u64) {
    // A thousand items are drained before the processor is awake; repeated, but only a few times, since each time includes a wait.
    let repeats = (operations / population).clamp(1, 5);
    let (mut time, mut drained) = (Duration::ZERO, 0);
    for _ in 0..repeats {
        let mut queue = Q::new();
        let first = Instant::now() + Duration::from_millis(2) + MADE_IN * population as u32;
        let step = DUE_OVER / population as u32;
        for item in 0..population {
            queue.insert_at(first + step * item as u32);
        }
        let all_due = first + DUE_OVER + Duration::from_millis(2);
        sleep_until(all_due).await;
        let start = Instant::now();
        drained += queue.drain(population).await;
        time += start.elapsed();
    }
    let lost = repeats * population - drained;
    (time.as_nanos() as f64 / drained as f64, lost as u64)
}

struct TokioUtil(tokio_util::DelayQueue<u64>);

impl Queue for TokioUtil {
    const NAME: &'static str = "tokio-util";
    type Key = tokio_util::delay_queue::Key;

    fn new() -> Self {
        Self(tokio_util::DelayQueue::new())
    }

    fn insert(&mut self, delay: Duration) -> Self::Key {
        self.0.insert(0, delay)
    }

    fn insert_at(&mut self, due: Instant) -> Self::Key {
        self.0.insert_at(0, due)
    }

    fn remove(&mut self, key: Self::Key) {
        black_box(self.0.remove(&key));
    }

    async fn drain(&mut self, items: usize) -> usize {
        drain_each(items, |context| self.0.poll_expired(context)).await
    }
}

/// Takes one item per poll, or many.
struct Ours<const MANY: bool>(DelayQueue<u64>);

impl<const MANY: bool> Queue for Ours<MANY> {
    const NAME: &'static str = if MANY {
        "delay queue, many"
    } else {
        "delay queue"
    };
    type Key = delay_queue::Key;

    fn new() -> Self {
        Self(DelayQueue::new())
    }

    fn insert(&mut self, delay: Duration) -> Self::Key {
        self.0.insert(0, delay)
    }

    fn insert_at(&mut self, due: Instant) -> Self::Key {
        self.0.insert_at(0, due)
    }

    fn remove(&mut self, key: Self::Key) {
        black_box(self.0.remove(&key));
    }

    async fn drain(&mut self, items: usize) -> usize {
        if MANY {
            drain_many(&mut self.0, items).await
        } else {
            drain_each(items, |context| self.0.poll_expired(context)).await
        }
    }
}

async fn drain_many(queue: &mut DelayQueue<u64>, items: usize) -> usize {
    let (mut batch, mut drained) = (Vec::with_capacity(BATCH), 0);
    while drained < items {
        match queue.expired_many(&mut batch, BATCH).await {
            0 => break,
            count => drained += count,
        }
        black_box(&mut batch).clear();
        yield_now().await;
    }
    drained
}

/// The draining task yields automatically: an item takes a unit of the task's budget, and tokio's sleep uses it up.
async fn drain_each<T>(
    items: usize,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<Option<T>>,
) -> usize {
    for drained in 0..items {
        if black_box(poll_fn(&mut poll).await).is_none() {
            return drained;
        }
    }
    items
}

/// The wheel, and the instant of its tick zero.
struct PureWheel(Wheel<u64>, Instant);

impl PureWheel {
    fn nanos(&self, instant: Instant) -> u64 {
        (instant - self.1).as_nanos() as u64
    }
}

impl Queue for PureWheel {
    const NAME: &'static str = "pure wheel";
    type Key = wheel::Key;

    fn new() -> Self {
        Self(Wheel::new(Resolution::MILLISECOND), Instant::now())
    }

    fn insert(&mut self, delay: Duration) -> Self::Key {
        self.insert_at(Instant::now() + delay)
    }

    fn insert_at(&mut self, due: Instant) -> Self::Key {
        let tick = self.nanos(due).div_ceil(NANOS_A_TICK);
        self.0.insert(Tick::new(tick), 0)
    }

    fn remove(&mut self, key: Self::Key) {
        black_box(self.0.cancel(key));
    }

    async fn drain(&mut self, items: usize) -> usize {
        let now = Tick::new(self.nanos(Instant::now()) / NANOS_A_TICK);
        let mut drained = 0;
        while drained < items && !self.0.is_empty() {
            let progress = self.0.advance(
                now,
                BATCH,
                |_key, _deadline, _item| Verdict::Due,
                |_deadline, item| {
                    black_box(item);
                },
            );
            drained += progress.expired;
            yield_now().await;
            if !progress.backlog {
                break;
            }
        }
        drained
    }
}
