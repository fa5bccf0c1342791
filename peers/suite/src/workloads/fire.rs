//! `fire`: N sleeps spread evenly at random over one second, each polled once with a waker that records its time.
//!
//! No tasks are woken: what is left is the timer's own work. Two tasks arm the sleeps before the first is due (or the
//! sample is taken again with twice the time to arm), and then the workers have nothing else to do. Lateness is the
//! time of the wake minus the deadline; a wake before the deadline is early. At the end every sleep is polled again:
//! one that was not woken, or is still pending, is lost.
//!
//! The CPU time is that of the workers and every other thread of the contestant, from just before the first deadline
//! until just after the last wake, the driver's own wake-ups among it, and one clock read a timer (our waker's). One
//! more timer, an hour away, is pending throughout, so that no helper thread ends with the last sleep and takes its
//! CPU time with it.

use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use tokio::task::yield_now;
use waterwheel_suite::{Metric, Sample};

use crate::armed::{Armed, instant, nanos, now};
use crate::contestant::{Ambient, Contestant, Own, Tokio};
use crate::cpu;
use crate::lead::Lead;
use crate::random::SplitMix64;
use crate::rounds::Entrant;
use crate::stage::{BATCH, Stage};
use crate::targets::Target;
use crate::workloads::Workload;

const METRICS: &[Metric] = &[
    Metric::lower("lateness p50", "us"),
    Metric::lower("lateness p99", "us"),
    Metric::lower("lateness p99.9", "us"),
    Metric::lower("lateness max", "us"),
    Metric::lower("CPU a timer", "ns"),
];
const PERCENTILES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];
/// Between the last sleep armed, the first reading of the CPU time, and the first deadline.
const CALM: Duration = Duration::from_millis(50);
/// A sleep that was not woken so long after the last deadline is lost.
const PATIENCE: Duration = Duration::from_secs(30);
const FAR: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) timers: usize,
    pub(crate) window: Duration,
}

impl Load {
    pub(crate) fn title(self) -> String {
        format!("fire, {} timers", self.timers)
    }
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    // The quick run has the same timers a second as the smaller full one, over a quarter of the time.
    let sizes: &[(usize, u64)] = if quick {
        &[(25_000, 250)]
    } else {
        &[(100_000, 1000), (1_000_000, 1000)]
    };
    let load = |&(timers, millis)| Load {
        timers,
        window: Duration::from_millis(millis),
    };
    sizes.iter().map(load).map(workload).collect()
}

pub(crate) fn targets() -> Vec<Target> {
    Vec::new()
}

fn workload(load: Load) -> Workload {
    let lead = Rc::new(Lead::new(
        CALM * 3 + Duration::from_nanos(800) * load.timers as u32,
    ));
    let entrants = vec![
        entrant::<Tokio>(load, lead.clone()),
        entrant::<Own<true>>(load, lead.clone()),
        entrant::<Ambient>(load, lead.clone()),
        entrant::<Own<false>>(load, lead),
    ];
    Workload {
        title: load.title(),
        work: format!("spread over {} ms", load.window.as_millis()),
        metrics: METRICS,
        entrants,
        absent: Vec::new(),
    }
}

fn entrant<C: Contestant>(load: Load, lead: Rc<Lead>) -> Entrant {
    Entrant::new(C::NAME, move || lead.enough(|lead| sample::<C>(load, lead)))
}

/// None if the sleeps were not armed in time.
fn sample<C: Contestant>(load: Load, lead: Duration) -> Option<Sample> {
    let stage = Stage::new();
    let contestant = stage.run(async { C::start() });
    let far = stage.run(arm_far(contestant.clone()));
    let first = now() + nanos(lead);
    let last = first + nanos(load.window);

    let tasks = [0, 1].map(|seed| {
        let share = (load.timers + seed) / 2;
        stage.spawn(arm_all(
            contestant.clone(),
            share,
            SplitMix64(seed as u64),
            first..last,
        ))
    });
    let armed: Vec<_> = tasks
        .into_iter()
        .flat_map(|task| stage.wait(task))
        .collect();
    if now() + 2 * nanos(CALM) > first {
        return None;
    }

    wait_until(first - nanos(CALM));
    let before = cpu::nanos();
    wait_until(last + nanos(CALM));
    while now() < last + nanos(PATIENCE) && armed.iter().any(|armed| armed.woken().is_none()) {
        thread::sleep(CALM);
    }
    let after = cpu::nanos();

    let cpu = before.zip(after).map_or(f64::NAN, |(before, after)| {
        after.saturating_sub(before) as f64
    });
    let sample = stage.run(evaluate(armed, cpu));
    drop(far);
    Some(sample)
}

async fn arm_far<C: Contestant>(contestant: C) -> Armed<C::Sleep> {
    Armed::new(contestant.sleep(FAR), u64::MAX)
}

async fn arm_all<C: Contestant>(
    contestant: C,
    count: usize,
    mut random: SplitMix64,
    due: Range<u64>,
) -> Vec<Armed<C::Sleep>> {
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let deadline = due.start + random.below(due.end - due.start);
        all.push(Armed::new(
            contestant.sleep_until(instant(deadline)),
            deadline,
        ));
        if index % BATCH == BATCH - 1 {
            yield_now().await;
        }
    }
    all
}

/// Polls every sleep for the last time and sorts the lateness.
async fn evaluate<S: Future<Output = ()>>(all: Vec<Armed<S>>, cpu: f64) -> Sample {
    let (timers, mut early, mut lost) = (all.len(), 0, 0);
    let mut lateness = Vec::with_capacity(timers);
    for (index, mut armed) in all.into_iter().enumerate() {
        // Half a batch: each poll that is ready takes one of the 128 units of tokio's cooperative budget.
        if index % (BATCH / 2) == 0 {
            yield_now().await;
        }
        let Some(woken) = armed.woken() else {
            lost += 1;
            continue;
        };
        early += u64::from(woken < armed.deadline());
        lost += u64::from(!armed.is_over());
        lateness.push(woken.saturating_sub(armed.deadline()));
    }
    lateness.sort_unstable();
    let mut values = PERCENTILES
        .map(|percentile| microseconds(&lateness, percentile))
        .to_vec();
    values.push(cpu / timers as f64);
    Sample {
        values,
        early,
        lost,
        ..Sample::default()
    }
}

fn microseconds(sorted: &[u64], percentile: f64) -> f64 {
    let rank = (sorted.len() as f64 * percentile).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .map_or(f64::NAN, |&nanos| nanos as f64 / 1e3)
}

/// The main thread waits without any timer of a runtime.
fn wait_until(time: u64) {
    thread::sleep(Duration::from_nanos(time.saturating_sub(now())));
}
