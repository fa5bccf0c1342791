//! One interval of a second, and nothing else in the whole runtime, like a heartbeat or a sampler of counters.
//!
//! It counts the thread switches that the system needs for it. Every contestant has to wake up once per tick.
//! Three rounds: the counts are over a long time, but they vary by a few.

use std::thread;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel_suite::{Metric, Sample, Target, Want};

use super::{LOST, Ticks, absent};
use crate::contestant::{AsyncIo, Current, Own, Sleeps, Start, Tokio, TokioOnly, Watched};
use crate::cpu;
use crate::entrant::Entrant;
use crate::patience;
use crate::stage::Stage;
use crate::targets::of_both;
use crate::workload::Workload;

/// The beginning of its titles.
pub(crate) const NAME: &str = "interval, 1 of ";
pub(crate) const ROUNDS: usize = 3;

const SWITCHES: &str = "context switches";
const METRICS: &[Metric] = &[
    Metric::lower(SWITCHES, "count"),
    Metric::lower("CPU", "us"),
    Metric::lower(LOST, "count"),
];
/// The time between the start of the contestant and that of the count.
const CALM: Duration = Duration::from_millis(100);

/// The period of the interval, and the number of its ticks.
#[derive(Clone, Copy)]
struct Load {
    period: Duration,
    ticks: u32,
}

const LOAD: Load = Load {
    period: Duration::from_secs(1),
    ticks: 10,
};
const QUICK_LOAD: Load = Load {
    period: Duration::from_millis(100),
    ticks: 5,
};

impl Load {
    fn title(self) -> String {
        format!("{NAME}{} ms", self.period.as_millis())
    }
}

pub(super) fn workload(quick: bool) -> Workload {
    let load = if quick { QUICK_LOAD } else { LOAD };
    Workload {
        title: load.title(),
        work: format!("counted for {} ticks", load.ticks),
        metrics: METRICS,
        entrants: vec![
            entrant(|| Tokio, load),
            entrant(Own::<Watched>::start, load),
            entrant(|| Current, load),
            entrant(Own::<TokioOnly>::start, load),
            entrant(|| AsyncIo, load),
        ],
        absent: absent(),
    }
}

pub(super) fn targets() -> Vec<Target> {
    let switches = Want::share(Tokio::NAME, 1.0);
    [(SWITCHES, switches), (LOST, Want::Zero)]
        .into_iter()
        .flat_map(|(metric, want)| of_both(&LOAD.title(), metric, want))
        .collect()
}

fn entrant<T: Ticks>(start: impl Start<T>, load: Load) -> Entrant {
    Entrant::new(T::NAME, move || sample(start, load))
}

fn sample<T: Ticks>(start: impl Start<T>, load: Load) -> Sample {
    let stage = Stage::new();
    let ticker = stage.run(async move { start() });
    // Without a handle, the timer and its threads would end with the interval, before their figures are read.
    let handle = ticker.clone();
    // The count begins and ends half a period from the nearest tick.
    let first = Instant::now() + CALM + load.period / 2;
    let task = stage.spawn(service(ticker, first, load));
    thread::sleep(CALM);

    let over = first + load.period * load.ticks - load.period / 2;
    let mut hangs = false;
    let cost = cpu::cost_of(|| {
        // Sleeps without a timer of the runtime.
        thread::sleep(over.saturating_duration_since(Instant::now()));
        hangs = !patience::wait_for(|| task.is_finished());
    });
    drop(handle);
    let (ticked, early) = if hangs { (0, 0) } else { stage.wait(task) };
    let lost = u64::from(load.ticks).saturating_sub(ticked);
    Sample {
        values: vec![cost.switches, cost.nanos / 1e3, lost as f64],
        early,
        lost,
        ..Sample::default()
    }
}

/// The number of ticks that came on time, and of those that were early.
async fn service<T: Ticks>(ticker: T, first: Instant, load: Load) -> (u64, u64) {
    let mut interval = ticker.interval_at(first, load.period);
    let (mut ticked, mut early) = (0, 0);
    for index in 0..load.ticks {
        let tick = T::tick(&mut interval).await;
        early += u64::from(Instant::now() < tick);
        ticked += u64::from(tick == first + load.period * index);
    }
    (ticked, early)
}
