//! Arm and cancel: what most timers come to. Alone, beside many others, and as the youngest of a ring of many.

use waterwheel_suite::{Results, Table};

use super::grouped::{self, Load};
use crate::bars::{self, Axes, Panel};
use crate::card::Chart;
use crate::figures::count;
use crate::tables::{self, Missing};

const METRIC: &str = "one operation, per thread";
const THREADS: [&str; 2] = ["1 thread", "2 threads"];
const FLOOR: &str = "The floor: one clock read, two uncontended lock pairs, one waker, one slab entry; for the runtime's timer also one look-up of the runtime.";

/// With nothing else pending, and with 100 000 others.
pub(crate) fn cancel(results: &Results) -> Result<Chart, Missing> {
    let mut loads = Vec::new();
    for (pending, heading) in [
        (0, "nothing else pending".to_owned()),
        (100_000, format!("{} others pending", count(100_000))),
    ] {
        let variants = by_threads(results, |threads| {
            format!("cancel, {threads}, {pending} pending")
        })?;
        loads.push(load(heading, variants));
    }
    chart(
        "Arm and cancel a 30 s sleep: nanoseconds on each thread",
        "One operation makes the sleep, polls it once and drops it. Lower is better.",
        &loads,
    )
}

/// At every size for which both thread counts were run.
pub(crate) fn churn(results: &Results) -> Result<Chart, Missing> {
    let mut loads = Vec::new();
    for (pending, _) in tables::sizes(results, "churn ", ", 1 thread") {
        let variants = by_threads(results, |threads| format!("churn {pending}, {threads}"))?;
        loads.push(load(format!("a ring of {}", count(pending)), variants));
    }
    if loads.is_empty() {
        return Err(Missing("workload \"churn\"".to_owned()));
    }
    chart(
        "Arm and cancel in a ring of pending sleeps: nanoseconds on each thread",
        "One operation drops the oldest 30 s sleep of the ring, makes another and polls it. Lower is better.",
        &loads,
    )
}

fn load(heading: String, variants: Vec<&Table>) -> Load<'_> {
    Load {
        heading,
        metric: METRIC,
        variants,
    }
}

fn by_threads(results: &Results, title: impl Fn(&str) -> String) -> Result<Vec<&Table>, Missing> {
    THREADS
        .iter()
        .map(|threads| tables::table(results, &title(threads)))
        .collect()
}

fn chart(title: &str, subtitle: &str, loads: &[Load<'_>]) -> Result<Chart, Missing> {
    let panels = grouped::panels(loads)?;
    let (body, height) = bars::draw(&panels, Axes::Shared);
    let has_floor = panels.iter().any(Panel::has_floor);
    Ok(Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        legend: bars::legend(&panels, &THREADS),
        body,
        height,
        notes: bars::note(&panels, Axes::Shared)
            .into_iter()
            .chain(has_floor.then(|| FLOOR.to_owned()))
            .collect(),
        source: grouped::source(loads),
    })
}
