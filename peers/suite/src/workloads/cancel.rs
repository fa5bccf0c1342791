//! `cancel`: make a 30 s sleep, poll it once to `Pending` with the task's own context, drop it.
//!
//! With 1 or 2 tasks at it, and with 0 or 100 k other timers pending, which the tasks hold between them. Those are due evenly
//! at random 10 to 70 s from now: a third of them before the sleep that is measured, so with them the sleep is never
//! the earliest, and without them it always is.
//!
//! Two tasks start together on different workers, and stop together when one has done its operations (`crew.rs`). The
//! other has then done fewer, since a contended lock need not be fair, so the figure is their time together over their
//! operations together. A sample in which they shared a worker, or one of them hardly ran, is taken again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::yield_now;

use crate::contestant::{Ambient, Contestant, Own, Tokio};
use crate::crew::Crew;
use crate::floor::Floor;
use crate::random::SplitMix64;
use crate::report::{Metric, Table};
use crate::rounds::{Entrant, Sample, interleave};
use crate::stage::{BATCH, Stage};
use crate::workloads::Workload;

const METRICS: &[Metric] = &[Metric {
    name: "one operation, per thread",
    unit: "ns",
}];
const SLEEP: Duration = Duration::from_secs(30);
const OTHERS_FROM: Duration = Duration::from_secs(10);
const OTHERS_SPREAD: Duration = Duration::from_secs(60);
/// The fastest contestant's whole sample is shorter than the processor's waking up.
const WARM_UP: Duration = Duration::from_millis(20);
/// Then a sample stands as it is.
const RETAKES: u64 = 4;

/// One step of the measured loop.
pub(crate) trait Operation: Send + 'static {
    fn once(&mut self, context: &mut Context<'_>);

    /// Puts one more of the other timers beside the measured one.
    fn hold_another(&mut self, context: &mut Context<'_>);
}

#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    pub(crate) others: usize,
    pub(crate) operations: usize,
}

impl Load {
    pub(crate) fn title(self) -> String {
        let threads = if self.threads == 1 {
            "1 thread"
        } else {
            "2 threads"
        };
        format!("cancel, {threads}, {} pending", self.others)
    }
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let operations = if quick { 100_000 } else { 400_000 };
    let mut all = Vec::new();
    for threads in [1, 2] {
        for others in [0, 100_000] {
            let load = Load {
                threads,
                others,
                operations,
            };
            all.push(Workload::new(load.title(), move |title, rounds| {
                run(title, load, rounds)
            }));
        }
    }
    all
}

fn run(title: String, load: Load, rounds: usize) -> Table {
    let work = format!("{} operations a thread and round", load.operations);
    let entrants = vec![
        entrant::<Tokio>(load),
        entrant::<Own<true>>(load),
        entrant::<Ambient>(load),
        floor_entrant::<false>(load),
        floor_entrant::<true>(load),
    ];
    Table {
        title,
        work,
        metrics: METRICS,
        series: interleave(rounds, entrants),
    }
}

fn entrant<C: Contestant>(load: Load) -> Entrant<'static> {
    Entrant::new(C::NAME, move || {
        sample(load, |stage| {
            let contestant = stage.run(async { C::start() });
            (0..load.threads)
                .map(|me| Cancel::new(contestant.clone(), me as u64))
                .collect()
        })
    })
}

fn floor_entrant<const AMBIENT: bool>(load: Load) -> Entrant<'static> {
    Entrant::new(Floor::<AMBIENT>::NAME, move || {
        sample(load, |_| {
            (0..load.threads)
                .map(|_| Floor::<AMBIENT>::default())
                .collect()
        })
    })
}

struct Cancel<C: Contestant> {
    contestant: C,
    others: Vec<Pin<Box<C::Sleep>>>,
    random: SplitMix64,
}

impl<C: Contestant> Cancel<C> {
    fn new(contestant: C, seed: u64) -> Self {
        Self {
            contestant,
            others: Vec::new(),
            random: SplitMix64(seed),
        }
    }
}

impl<C: Contestant> Operation for Cancel<C> {
    fn once(&mut self, context: &mut Context<'_>) {
        let sleep = pin!(self.contestant.sleep(SLEEP));
        assert!(
            sleep.poll(context).is_pending(),
            "a sleep of 30 s is not over at once"
        );
    }

    fn hold_another(&mut self, context: &mut Context<'_>) {
        let later = self.random.below(OTHERS_SPREAD.as_nanos() as u64);
        let duration = OTHERS_FROM + Duration::from_nanos(later);
        let mut sleep = Box::pin(self.contestant.sleep(duration));
        assert!(
            sleep.as_mut().poll(context).is_pending(),
            "a sleep of 10 s is not over at once"
        );
        self.others.push(sleep);
    }
}

fn sample<O: Operation>(load: Load, prepare: impl Fn(&Stage) -> Vec<O>) -> Sample {
    let mut retaken = 0;
    loop {
        let stage = Stage::new();
        let operations = prepare(&stage);
        let crew = Arc::new(Crew::new(load.threads));
        let members = operations.into_iter().enumerate();
        let tasks: Vec<_> = members
            .map(|(me, op)| stage.spawn(member(op, load, me, crew.clone())))
            .collect();
        let shares: Vec<Share> = tasks.into_iter().map(|task| stage.wait(task)).collect();
        let both_ran = shares
            .iter()
            .all(|share| share.operations >= load.operations / 20);
        if crew.kept_apart() && both_ran || retaken == RETAKES {
            let nanos: u128 = shares.iter().map(|share| share.time.as_nanos()).sum();
            let operations: usize = shares.iter().map(|share| share.operations).sum();
            return Sample {
                values: vec![nanos as f64 / operations as f64],
                retaken,
                ..Sample::default()
            };
        }
        retaken += 1;
    }
}

/// What one task did.
struct Share {
    operations: usize,
    time: Duration,
}

/// One task of the crew: its share of the other timers, some operations to warm up, then the measured ones.
async fn member<O: Operation>(mut op: O, load: Load, me: usize, crew: Arc<Crew>) -> Share {
    crew.take_a_worker();
    for _ in 0..(load.others / load.threads).div_ceil(BATCH) {
        batch(&mut op, O::hold_another).await;
    }
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        batch(&mut op, O::once).await;
    }

    crew.gather().await;
    let start = Instant::now();
    let mut operations = 0;
    while crew.goes_on(me, operations >= load.operations) {
        batch(&mut op, O::once).await;
        operations += BATCH;
    }
    Share {
        operations,
        time: start.elapsed(),
    }
}

/// A batch within one poll, then the way is given.
async fn batch<O: Operation>(op: &mut O, mut step: impl FnMut(&mut O, &mut Context<'_>)) {
    poll_fn(|context| {
        for _ in 0..BATCH {
            step(op, context);
        }
        Poll::Ready(())
    })
    .await;
    yield_now().await;
}
