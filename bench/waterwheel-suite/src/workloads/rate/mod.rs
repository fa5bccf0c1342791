//! `rate`: a given number of timers a second, due at random instants, each awaited by its own task.
//!
//! This is the cost of timers to a service that is mostly idle or moderately loaded: at 100 a second each timer wakes a sleeping
//! worker, at 100 000 many fire together. The tasks are spawned, and their timers armed, before the first timer is due
//! (`sample.rs`). Then each task is woken, notes the time, and ends. Lateness is that time minus the deadline, so it includes the
//! way from the wake to the task.
//!
//! CPU time and context switches are those of all threads. They are listed with the lateness of the same sample,
//! since precision has a price: each way of waking the driver has a row.
//!
//! `rate, in turn` and `rate, lone` have tasks that sleep over and over (`in_turn.rs`).

mod in_turn;
mod sample;

use std::time::Duration;

use sample::Load;
use waterwheel_suite::{Absent, Metric, Target, Want};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Own, PINGORA, PINGORA_IS_EARLY, Sleeps, Thread, Tokio,
    TokioOnly, Watched, WatchedClosely, entrant,
};
use crate::targets::of_both;
use crate::workload::Workload;

pub(crate) const NAME: &str = "rate";

const P50: &str = "lateness p50";
const CPU: &str = "CPU a timer";
const LOOKS: &str = "looks of the wake-up thread a second";
const EARLY: &str = "fired early";
const METRICS: &[Metric] = &[
    Metric::lower("lateness p10", "us"),
    Metric::lower(P50, "us"),
    Metric::lower("lateness p90", "us"),
    Metric::lower("lateness p99", "us"),
    Metric::lower(CPU, "ns"),
    Metric::lower("context switches a timer", "count"),
    Metric::lower(LOOKS, "count"),
    Metric::lower(EARLY, "count"),
];

/// The number of timers a second, and the duration in milliseconds: with fewer timers it takes longer until the figure is steady.
const LOADS: &[(usize, u64)] = &[(100, 3000), (1000, 2000), (10_000, 1000), (100_000, 1000)];
const QUICK_LOADS: &[(usize, u64)] = &[(100, 500), (10_000, 100)];
/// The rates with a target. A busier timer has its targets in `fire`.
const MODERATE: [usize; 3] = [100, 1000, 10_000];

fn title(rate: usize) -> String {
    format!("{NAME}, {rate} a second")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let loads = if quick { QUICK_LOADS } else { LOADS };
    let by_rate = loads.iter().map(|&(rate, millis)| {
        by_rate(Load {
            rate,
            window: Duration::from_millis(millis),
        })
    });
    by_rate.chain(in_turn::all(quick)).collect()
}

fn by_rate(load: Load) -> Workload {
    Workload {
        title: title(load.rate),
        work: format!("for {} ms, one task a timer", load.window.as_millis()),
        metrics: METRICS,
        entrants: vec![
            entrant(load, || Tokio),
            entrant(load, Own::<Watched>::start),
            entrant(load, || Current),
            entrant(load, Own::<Thread>::start),
            entrant(load, Own::<WatchedClosely>::start),
            entrant(load, Own::<TokioOnly>::start),
        ],
        absent: absent(),
    }
}

/// Only tokio and ours take part, at each rate.
fn absent() -> Vec<Absent> {
    let in_fire = [AsyncIo::NAME, FuturesTimer::NAME]
        .map(|name| Absent::new(name, "`fire` has what it pays for its precision"));
    [Absent::new(PINGORA, PINGORA_IS_EARLY)]
        .into_iter()
        .chain(in_fire)
        .collect()
}

/// How often the wake-up thread may check the runtime's timer, and its cost in CPU time, compared with a timer without it.
fn of_the_guard(title: &str, rate: usize) -> [Target; 2] {
    let at_most = match rate {
        ..1000 => 1.12,
        1000..10_000 => 1.07,
        _ => 1.05,
    };
    [
        (CPU, Want::share(Own::<TokioOnly>::NAME, at_most)),
        (LOOKS, Want::AtMost(25.0)),
    ]
    .map(|(metric, want)| Target::new(title, metric, Current::NAME, want))
}

pub(crate) fn targets() -> Vec<Target> {
    let share = |at_most| Want::share(Tokio::NAME, at_most);
    let mut targets = Vec::new();
    for rate in MODERATE {
        let title = title(rate);
        targets.extend(of_the_guard(&title, rate));
        for (metric, want) in [(CPU, share(1.5)), (P50, share(0.7)), (EARLY, Want::Zero)] {
            targets.extend(of_both(&title, metric, want));
        }
        // Without its own thread a timer is no more precise than tokio's, so it may cost only a little more.
        for (metric, at_most) in [(CPU, 1.2), (P50, 1.0)] {
            let of = Own::<TokioOnly>::NAME;
            targets.push(Target::new(&title, metric, of, share(at_most)));
        }
    }
    // The price of precision: the thread works while the timers are few, and costs little once they are many.
    let by_thread =
        |rate, metric, want| Target::new(title(rate), metric, Own::<Thread>::NAME, want);
    targets.push(by_thread(100, P50, Want::AtMost(200.0)));
    targets.push(by_thread(1000, P50, Want::AtMost(200.0)));
    targets.push(by_thread(10_000, CPU, share(1.5)));
    targets.extend(in_turn::targets());
    targets
}
