//! `fire`: N sleeps spread evenly at random over one second, each polled once with a waker that records its time.
//!
//! No tasks are woken, which leaves the timer's own work. Two tasks arm the sleeps before the first is due, and then
//! the workers are idle (`sample.rs`). Lateness is the time of the wake minus the deadline; a wake before the deadline
//! is early, and a sleep that is not woken is lost.

mod sample;

use std::time::Duration;

use waterwheel_suite::{Absent, Metric, Target, Want};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Own, PINGORA, PINGORA_IS_EARLY, Sleeps, Thread, Tokio,
    TokioOnly, Watched, entrant,
};
use crate::targets::of_both;
use crate::workload::Workload;

pub(super) use sample::Load;

const P50: &str = "lateness p50";
const P99: &str = "lateness p99";
pub(super) const CPU: &str = "CPU a timer";
const EARLY: &str = "fired early";
pub(super) const METRICS: &[Metric] = &[
    Metric::lower(P50, "us"),
    Metric::lower(P99, "us"),
    Metric::lower("lateness p99.9", "us"),
    Metric::lower("lateness max", "us"),
    Metric::lower(CPU, "ns"),
    Metric::lower(EARLY, "count"),
];
/// The maximum time to arm a sleep that locks shared data or wakes another thread.
const SLOW_TO_ARM: Duration = Duration::from_micros(3);
pub(super) const QUICK_TO_ARM: Duration = Duration::from_nanos(800);

fn title(timers: usize) -> String {
    format!("fire, {timers} timers")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    // The quick run has the same timers a second as the smaller full one, but for an eighth of the time.
    let scale = |timers| {
        let share = if quick { 8 } else { 1 };
        Load {
            timers: timers / share,
            window: Duration::from_secs(1) / share as u32,
            to_arm: QUICK_TO_ARM,
        }
    };
    let sizes: &[usize] = if quick {
        &[100_000]
    } else {
        &[100_000, 1_000_000]
    };
    sizes.iter().map(|&timers| by_size(scale(timers))).collect()
}

fn by_size(load: Load) -> Workload {
    let slow = Load {
        to_arm: SLOW_TO_ARM,
        ..load
    };
    let entrants = vec![
        entrant(load, || Tokio),
        entrant(load, Own::<Watched>::start),
        entrant(load, || Current),
        entrant(load, Own::<Thread>::start),
        entrant(load, Own::<TokioOnly>::start),
        entrant(slow, || AsyncIo),
        entrant(slow, || FuturesTimer),
    ];
    Workload {
        title: title(load.timers),
        work: format!("spread over {} ms", load.window.as_millis()),
        metrics: METRICS,
        entrants,
        absent: vec![Absent::new(PINGORA, PINGORA_IS_EARLY)],
    }
}

pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    for (timers, p50, p99, cpu) in [
        (100_000, 650.0, 1200.0, 0.8),
        (1_000_000, 850.0, 1800.0, 0.5),
    ] {
        for (metric, want) in [
            (P50, Want::AtMost(p50)),
            (P99, Want::AtMost(p99)),
            (EARLY, Want::Zero),
            (CPU, Want::share(Tokio::NAME, cpu)),
        ] {
            targets.extend(of_both(&title(timers), metric, want));
        }
    }
    targets
}
