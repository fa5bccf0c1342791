//! What a pending timer keeps on the heap.

use waterwheel_bench_kit::chart::bars::{self, Axes, Panel};
use waterwheel_bench_kit::chart::{Chart, count};
use waterwheel_suite::Results;

use super::grouped::{self, Load};
use crate::source::Source;
use crate::tables::{self, Missing};

const METRIC: &str = "live heap, future + entry";
/// Why the panels differ.
const SLAB: &str =
    "A slab grows in steps and so has free slots: how many depends on the number of timers.";
const FLOOR: &str = "Floor: a boxed future with its deadline, and a waker in a slab.";

pub(crate) fn chart(results: &Results) -> Result<(Chart, Source), Missing> {
    let sizes = tables::sizes(results, "memory, ", " timers");
    if sizes.is_empty() {
        return Err(Missing("workload \"memory\"".to_owned()));
    }
    let loads: Vec<Load<'_>> = sizes
        .iter()
        .map(|(timers, table)| Load {
            heading: format!("{} pending", count(*timers)),
            metric: METRIC,
            variants: vec![*table],
        })
        .collect();
    let panels = grouped::panels(&loads)?;
    let (body, height) = bars::draw(&panels, Axes::Shared);
    let has_floor = panels.iter().any(Panel::has_floor);
    let chart = Chart {
        title: "Heap memory per pending sleep: bytes".to_owned(),
        subtitle: "The boxed future, and its share of what the timer keeps for all pending sleeps. Lower is better.".to_owned(),
        legend: bars::legend(&panels, &[]),
        body,
        height,
        notes: [SLAB]
            .into_iter()
            .chain(has_floor.then_some(FLOOR))
            .map(str::to_owned)
            .chain(bars::note(&panels, Axes::Shared))
            .collect(),
    };
    let source = grouped::source(&loads);
    Ok((chart, source))
}
