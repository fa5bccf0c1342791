//! `interval`: ten thousand tasks, each with an interval of 100 ms, like a service with one per connection.
//!
//! Their first ticks are at random times, evenly distributed over one period; from then on each ticks a given number
//! of times and ends. The CPU time is that of all threads over all ticks: the timer's work, waking and running the
//! task, and one clock read of ours, which detects early ticks.
//!
//! A tick is lost if it does not come, or if the next one comes instead: each tick must be followed by the one a period
//! later, since missed ticks are made up for by default (`MissedTickBehavior::Burst`).
//!
//! One more table has one interval alone (`lone.rs`).

mod lone;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tokio::task::yield_now;
use tokio::time::Instant;
use waterwheel_suite::{Absent, Metric, Sample, Target, Want};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Own, PINGORA, Sleeps, Start, Tokio, TokioOnly, Watched, Way,
};
use crate::cpu;
use crate::entrant::Entrant;
use crate::lead;
use crate::patience;
use crate::stage::{BATCH, Stage};
use crate::targets::of_both;
use crate::workload::Workload;

pub(crate) use lone::{NAME as LONE, ROUNDS as LONE_ROUNDS};

const NAME: &str = "interval";

const CPU: &str = "CPU a tick";
const LOST: &str = "ticks lost";
const METRICS: &[Metric] = &[Metric::lower(CPU, "ns"), Metric::lower(LOST, "count")];
const INTERVALS: usize = 10_000;
const PERIOD: Duration = Duration::from_millis(100);
/// The time between the last task's start and the first tick.
const CALM: Duration = Duration::from_millis(50);

fn title() -> String {
    format!("{NAME}, {INTERVALS} of {} ms", PERIOD.as_millis())
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let ticks = if quick { 5 } else { 50 };
    let many = Workload {
        title: title(),
        work: format!("{ticks} ticks each, one task an interval"),
        metrics: METRICS,
        entrants: vec![
            entrant(|| Tokio, ticks),
            entrant(Own::<Watched>::start, ticks),
            entrant(|| Current, ticks),
            entrant(Own::<TokioOnly>::start, ticks),
            entrant(|| AsyncIo, ticks),
        ],
        absent: absent(),
    };
    vec![many, lone::workload(quick)]
}

fn absent() -> Vec<Absent> {
    [PINGORA, FuturesTimer::NAME]
        .map(|name| Absent::new(name, "has no interval"))
        .into()
}

pub(crate) fn targets() -> Vec<Target> {
    let cpu = Want::share(Tokio::NAME, 0.8);
    [(CPU, cpu), (LOST, Want::Zero)]
        .into_iter()
        .flat_map(|(metric, want)| of_both(&title(), metric, want))
        .chain(lone::targets())
        .collect()
}

/// A maker of intervals.
trait Ticks: Sleeps {
    type Interval: Send + 'static;

    fn interval_at(&self, start: Instant, period: Duration) -> Self::Interval;
    /// When the tick was due.
    fn tick(interval: &mut Self::Interval) -> impl Future<Output = Instant> + Send;
}

impl Ticks for Tokio {
    type Interval = tokio::time::Interval;

    fn interval_at(&self, start: Instant, period: Duration) -> Self::Interval {
        tokio::time::interval_at(start, period)
    }

    fn tick(interval: &mut Self::Interval) -> impl Future<Output = Instant> + Send {
        interval.tick()
    }
}

impl Ticks for Current {
    type Interval = waterwheel::Interval;

    fn interval_at(&self, start: Instant, period: Duration) -> Self::Interval {
        waterwheel::interval_at(start, period)
    }

    fn tick(interval: &mut Self::Interval) -> impl Future<Output = Instant> + Send {
        interval.tick()
    }
}

impl<W: Way> Ticks for Own<W> {
    type Interval = waterwheel::Interval;

    fn interval_at(&self, start: Instant, period: Duration) -> Self::Interval {
        self.timer.interval_at(start, period)
    }

    fn tick(interval: &mut Self::Interval) -> impl Future<Output = Instant> + Send {
        interval.tick()
    }
}

/// Its timer is a future that returns when the tick was due, each time it is awaited.
impl Ticks for AsyncIo {
    type Interval = async_io::Timer;

    fn interval_at(&self, start: Instant, period: Duration) -> Self::Interval {
        async_io::Timer::interval_at(start.into_std(), period)
    }

    async fn tick(interval: &mut Self::Interval) -> Instant {
        interval.await.into()
    }
}

fn entrant<T: Ticks>(start: impl Start<T>, ticks: u32) -> Entrant {
    Entrant::new(T::NAME, move || {
        lead::long_enough(CALM * 3, |lead| sample(start, ticks, lead))
    })
}

/// Takes a sample. `None` if the tasks had not started in time.
fn sample<T: Ticks>(start: impl Start<T>, ticks: u32, lead: Duration) -> Option<Sample> {
    let stage = Stage::new();
    let ticker = stage.run(async move { start() });
    let tally = Arc::new(Tally::default());
    let first = Instant::now() + lead;
    // Without a handle, the timer and its threads would end with the last interval, before their CPU time is read.
    let handle = ticker.clone();
    stage.run(start_all(ticker, first, ticks, tally.clone()));
    if Instant::now() + CALM > first {
        return None;
    }

    let over = first + PERIOD * (ticks + 1);
    let cpu = cpu::nanos_of(|| {
        // Sleeps without a timer of the runtime.
        thread::sleep(over.saturating_duration_since(Instant::now()));
        patience::wait_for(|| tally.ended.load(SeqCst) == INTERVALS);
    });
    drop(handle);

    let due = INTERVALS as u64 * u64::from(ticks);
    let lost = due.saturating_sub(tally.ticked.load(SeqCst));
    Some(Sample {
        values: vec![cpu / due as f64, lost as f64],
        early: tally.early.load(SeqCst),
        lost,
        ..Sample::default()
    })
}

/// The times that the tasks note when they start and when they end.
#[derive(Default)]
struct Tally {
    started: AtomicUsize,
    ended: AtomicUsize,
    ticked: AtomicU64,
    early: AtomicU64,
}

/// Returns when every task has been polled (except the two that may be doing so).
async fn start_all<T: Ticks>(ticker: T, first: Instant, ticks: u32, tally: Arc<Tally>) {
    let mut random = Rng::with_seed(0);
    for index in 0..INTERVALS {
        let offset = Duration::from_nanos(random.u64(0..PERIOD.as_nanos() as u64));
        let interval = ticker.interval_at(first + offset, PERIOD);
        tokio::spawn(service::<T>(interval, first + offset, ticks, tally.clone()));
        if index % BATCH == BATCH - 1 {
            yield_now().await;
        }
    }
    while tally.started.load(SeqCst) < INTERVALS {
        yield_now().await;
    }
}

/// One task with its interval.
async fn service<T: Ticks>(
    mut interval: T::Interval,
    first: Instant,
    ticks: u32,
    tally: Arc<Tally>,
) {
    tally.started.fetch_add(1, SeqCst);
    let last = first + PERIOD * (ticks - 1);
    let mut due = first;
    let (mut ticked, mut early) = (0, 0);
    while due <= last {
        let tick = T::tick(&mut interval).await;
        early += u64::from(Instant::now() < tick);
        ticked += u64::from(tick == due);
        due = tick + PERIOD;
    }
    tally.ticked.fetch_add(ticked, SeqCst);
    tally.early.fetch_add(early, SeqCst);
    tally.ended.fetch_add(1, SeqCst);
}
