//! Tasks that sleep over and over: a timer is armed each time one has fired, as in services.
//!
//! `rate, in turn` has enough tasks for the rate with sleeps of 50 to 150 ms. `rate, lone` has one, which sleeps 1 to 2 ms, and nothing
//! else in the whole runtime: a backoff, a poll of a device, a pacer. No other timer is pending, so nothing shares the cost of its
//! wake-up, and there are fewer than a thousand a second.
//!
//! The delays are random. With the same delay each time, every sleep would begin just after a tick, and its
//! lateness would be that of this one phase.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_bench_kit::random;
use waterwheel_suite::{Metric, Sample, Target, Want};

use super::{CPU, LOOKS};
use crate::armed::{self, instant, nanos, now};
use crate::contestant::{
    Current, Measure, Own, Sleeps, Start, Thread, Tokio, TokioOnly, Watched, WatchedClosely,
    entrant,
};
use crate::cpu;
use crate::lateness::Fired;
use crate::patience;
use crate::stage::Stage;
use crate::workload::Workload;

const P50: &str = "lateness p50";
const METRICS: &[Metric] = &[
    Metric::lower(P50, "us"),
    Metric::lower("lateness p99", "us"),
    Metric::lower(CPU, "ns"),
    Metric::lower("context switches a timer", "count"),
    Metric::lower(LOOKS, "count"),
    Metric::lower("fired early", "count"),
];
const PERCENTILES: [f64; 2] = [0.5, 0.99];

const LONE: &str = "rate, lone";
/// The number of timers a second.
const RATES: &[usize] = &[100, 1000, 10_000];
const QUICK_RATES: &[usize] = &[1000];
/// The pause before the first sleep and after the last, so that the workers rest while the cost is read.
const CALM: Duration = Duration::from_millis(20);

#[derive(Clone, Copy)]
struct Load {
    tasks: usize,
    /// The minimum and the maximum delay.
    delays: [Duration; 2],
    window: Duration,
}

fn title(rate: usize) -> String {
    format!("rate, in turn, {rate} a second")
}

pub(super) fn all(quick: bool) -> Vec<Workload> {
    let millis = |whole| Duration::from_millis(if quick { 100 } else { whole });
    let rates = if quick { QUICK_RATES } else { RATES };
    let by_rate = |&rate: &usize| {
        let delays = [50, 150].map(Duration::from_millis);
        let mean = (delays[0] + delays[1]) / 2;
        let load = Load {
            tasks: (mean * rate as u32).as_secs() as usize,
            delays,
            window: millis(2000),
        };
        Workload {
            title: title(rate),
            work: format!(
                "{} tasks, sleeps of 50 to 150 ms in turn for {} ms",
                load.tasks,
                load.window.as_millis()
            ),
            metrics: METRICS,
            entrants: vec![
                entrant(load, || Tokio),
                entrant(load, Own::<Watched>::start),
                entrant(load, || Current),
                entrant(load, Own::<WatchedClosely>::start),
                entrant(load, Own::<TokioOnly>::start),
            ],
            absent: super::absent(),
        }
    };
    let mut all: Vec<_> = rates.iter().map(by_rate).collect();
    all.push(lone(millis(2000)));
    all
}

fn lone(window: Duration) -> Workload {
    let load = Load {
        tasks: 1,
        delays: [1, 2].map(Duration::from_millis),
        window,
    };
    Workload {
        title: LONE.to_owned(),
        work: format!(
            "one task, sleeps of 1 to 2 ms in turn for {} ms",
            window.as_millis()
        ),
        metrics: METRICS,
        entrants: vec![
            entrant(load, || Tokio),
            entrant(load, Own::<Thread>::start),
            entrant(load, Own::<Watched>::start),
            entrant(load, || Current),
        ],
        absent: super::absent(),
    }
}

/// Targets for the cost of the guard, and for the lateness of a lone timer that the thread wakes.
pub(super) fn targets() -> Vec<Target> {
    let (thread, at_most) = (Own::<Thread>::NAME, Want::AtMost(200.0));
    let mut targets = vec![Target::new(LONE, P50, thread, at_most)];
    for rate in RATES {
        targets.extend(super::of_the_guard(&title(*rate), *rate));
    }
    targets
}

impl Measure for Load {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        sample(start, self)
    }
}

fn sample<S: Sleeps>(start: impl Start<S>, load: Load) -> Sample {
    let stage = Stage::new();
    let sleeps = stage.run(async move { start() });
    let far = stage.run(armed::far(sleeps.clone()));
    // A timer may start threads with its first short sleep.
    stage.run(sleep_in_turn(sleeps.clone(), load.delays, CALM, 0));
    thread::sleep(CALM);

    let mut tasks = Vec::new();
    let mut hangs = false;
    let cost = cpu::cost_of(|| {
        let task = |seed| sleep_in_turn(sleeps.clone(), load.delays, load.window, seed);
        tasks.extend((0..load.tasks as u64).map(|seed| stage.spawn(task(seed))));
        thread::sleep(load.window);
        hangs = !patience::wait_for(|| tasks.iter().all(|task| task.is_finished()));
        thread::sleep(CALM);
    });
    drop(far);
    let mut slept = Fired {
        lost: u64::from(hangs),
        ..Fired::default()
    };
    if !hangs {
        for task in tasks {
            slept.join(stage.wait(task));
        }
    }
    let timers = slept.late.len() as f64;
    let figures = [cost.nanos / timers, cost.switches / timers, cost.looks];
    slept.sample(&PERCENTILES, figures, false)
}

async fn sleep_in_turn<S: Sleeps>(
    sleeps: S,
    [shortest, longest]: [Duration; 2],
    window: Duration,
    seed: u64,
) -> Fired {
    let mut random = Rng::with_seed(seed);
    let mut slept = Fired::default();
    let end = now() + nanos(window);
    while now() < end {
        let deadline = now() + nanos(random::duration(&mut random, shortest..longest));
        sleeps.sleep_until(instant(deadline)).await;
        slept.add(deadline, Some(now()));
    }
    slept
}
