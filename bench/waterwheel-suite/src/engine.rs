//! The one loop that all per-operation workloads and contestants run in.
//!
//! A sample takes a fixed time and counts the operations. With two tasks, they start together on different workers
//! (`crew.rs`) and stop together when the time is over. A contended lock need not be fair, so one may have done fewer
//! operations than the other: the figure is the time of both divided by the operations of both. A sample in which they
//! shared a worker, or one of them hardly ran, is taken again.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use waterwheel_suite::Sample;

use crate::contestant::Start;
use crate::crew::Crew;
use crate::entrant::Entrant;
use crate::operation::{METRICS, Operation};
use crate::stage::{BATCH, Stage, WORKERS};
use crate::workload::Workload;

/// The warm-up: the processor takes longer to wake up than the fastest contestant needs for a whole sample.
pub(crate) const WARM_UP: Duration = Duration::from_millis(20);
const MEASURED: Duration = Duration::from_millis(50);
const MEASURED_QUICK: Duration = Duration::from_millis(20);
/// The number of retakes after which the sample counts as it is.
const RETAKES: u64 = 4;

/// The size of a sample.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    /// The number of timers that are pending throughout, which the tasks share.
    pub(crate) held: usize,
    pub(crate) quick: bool,
}

impl Load {
    pub(crate) const fn new(threads: usize, held: usize, quick: bool) -> Self {
        Self {
            threads,
            held,
            quick,
        }
    }

    /// The workload that measures one operation at this size.
    pub(crate) fn workload(self, title: String, entrants: Vec<Entrant>) -> Workload {
        Workload {
            title,
            work: self.work(),
            metrics: METRICS,
            entrants,
            absent: Vec::new(),
        }
    }

    /// The work, in the words of the report.
    pub(crate) fn work(self) -> String {
        format!("{} ms", self.measured().as_millis())
    }

    pub(crate) fn measured(self) -> Duration {
        if self.quick { MEASURED_QUICK } else { MEASURED }
    }
}

/// The number of threads, as the titles write it.
pub(crate) fn threads(threads: usize) -> &'static str {
    if threads == 1 {
        "1 thread"
    } else {
        "2 threads"
    }
}

/// The result of one task.
pub(crate) struct Share {
    pub(crate) operations: usize,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// The cost of one operation to the thread that makes it, in nanoseconds.
pub(crate) fn nanos_each(shares: &[Share]) -> f64 {
    let times = shares.iter().map(|share| share.end - share.start);
    times.sum::<Duration>().as_nanos() as f64 / operations(shares) as f64
}

/// Measures one operation, in nanoseconds. `start` is called on a worker and returns the contestant; `operation` makes
/// each task's operation from a clone of it and the task's number.
pub(crate) fn sample<C, O>(
    load: Load,
    start: impl Start<C>,
    operation: impl Fn(C, u64) -> O,
) -> Sample
where
    C: Clone + Send + 'static,
    O: Operation,
{
    measure(load, start, operation, nanos_each)
}

/// An entrant that measures one operation, like [`sample`].
pub(crate) fn entrant<C, O>(
    name: &'static str,
    load: Load,
    start: impl Start<C>,
    operation: impl Fn(C, u64) -> O + 'static,
) -> Entrant
where
    C: Clone + Send + 'static,
    O: Operation,
{
    Entrant::new(name, move || sample(load, start, operation))
}

/// The throughput of all tasks, in million operations a second: from the first start until the first end, which ends
/// it for all. With more threads than processors, the time in which one of them does not run counts as well.
pub(crate) fn throughput(shares: &[Share]) -> f64 {
    let start = shares.iter().map(|share| share.start).min();
    let end = shares.iter().map(|share| share.end).min();
    let time = start.zip(end).map(|(start, end)| end - start);
    operations(shares) as f64 / 1e6 / time.unwrap_or_default().as_secs_f64()
}

fn operations(shares: &[Share]) -> usize {
    shares.iter().map(|share| share.operations).sum()
}

/// Like [`sample`]; `figure` computes the value from the shares of the tasks.
pub(crate) fn measure<C: Clone + Send + 'static, O: Operation>(
    load: Load,
    start: impl Start<C>,
    operation: impl Fn(C, u64) -> O,
    figure: impl Fn(&[Share]) -> f64,
) -> Sample {
    let task = |contestant, me, crew| member(operation(contestant, me as u64), load, me, crew);
    measure_tasks(load.threads, start, task, figure)
}

/// Like [`measure`], for an operation with its own loop: `task` runs that of the member with this number.
pub(crate) fn measure_tasks<C, T>(
    threads: usize,
    start: impl Start<C>,
    task: impl Fn(C, usize, Arc<Crew>) -> T,
    figure: impl Fn(&[Share]) -> f64,
) -> Sample
where
    C: Clone + Send + 'static,
    T: Future<Output = Share> + Send + 'static,
{
    let mut retaken = 0;
    loop {
        let stage = Stage::with_workers(threads.max(WORKERS));
        let contestant = stage.run(async move { start() });
        let crew = Arc::new(Crew::new(threads));
        let tasks: Vec<_> = (0..threads)
            .map(|me| stage.spawn(task(contestant.clone(), me, crew.clone())))
            .collect();
        let shares: Vec<Share> = tasks.into_iter().map(|task| stage.wait(task)).collect();
        let operations = operations(&shares);
        let all_ran = shares
            .iter()
            .all(|share| share.operations * 20 >= operations / threads);
        if crew.kept_apart() && all_ran || retaken == RETAKES {
            return Sample {
                values: vec![figure(&shares)],
                retaken,
                ..Sample::default()
            };
        }
        retaken += 1;
    }
}

/// One task of the crew: its share of the pending timers, some operations to warm up, then the measured ones.
async fn member<O: Operation>(mut op: O, load: Load, me: usize, crew: Arc<Crew>) -> Share {
    crew.take_a_worker();
    let mut missing = load.held / load.threads;
    while missing > 0 {
        let now = missing.min(BATCH);
        batch(&mut op, now, O::hold_one).await;
        missing -= now;
    }
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        batch(&mut op, O::STEPS, O::once).await;
    }

    crew.gather().await;
    let start = Instant::now();
    let mut operations = 0;
    while crew.goes_on(me, start.elapsed() >= load.measured()) {
        batch(&mut op, O::STEPS, O::once).await;
        operations += O::STEPS;
    }
    Share {
        operations,
        start,
        end: Instant::now(),
    }
}

/// Runs some steps within one poll, then yields.
async fn batch<O: Operation>(
    op: &mut O,
    steps: usize,
    mut step: impl FnMut(&mut O, &mut Context<'_>),
) {
    poll_fn(|context| {
        for _ in 0..steps {
            step(op, context);
        }
        Poll::Ready(())
    })
    .await;
    yield_now().await;
    while !op.is_settled() {
        yield_now().await;
    }
}
