//! A herd: the tasks that sleep to one instant, and the heartbeat beside them that must not be held up.

use waterwheel_bench_kit::chart::bars::{self, Axes};
use waterwheel_bench_kit::chart::{Chart, count};
use waterwheel_suite::Results;

use super::grouped::{self, Load};
use crate::source::Source;
use crate::tables::{self, Missing};

/// The largest herd of the run.
pub(crate) fn chart(results: &Results) -> Result<(Chart, Source), Missing> {
    let sizes = tables::sizes(results, "herd, ", " tasks");
    let (tasks, table) = *sizes
        .last()
        .ok_or_else(|| Missing("workload \"herd\"".to_owned()))?;
    let load = |heading: &str, metric| Load {
        heading: heading.to_owned(),
        metric,
        variants: vec![table],
    };
    let loads = [
        load("longest gap of the heartbeat", "longest heartbeat gap"),
        load("until all tasks have run", "until all ran"),
    ];
    let panels = grouped::panels(&loads)?;
    let (body, height) = bars::draw(&panels, Axes::Separate);
    let chart = Chart {
        title: format!("{} tasks wake at the same instant: milliseconds", count(tasks)),
        subtitle:
            "All sleep until the same deadline, while another task keeps a 1 ms heartbeat. Lower is better."
                .to_owned(),
        legend: bars::legend(&panels, &[]),
        body,
        height,
        notes: bars::note(&panels, Axes::Separate).into_iter().collect(),
    };
    let source = grouped::source(&loads);
    Ok((chart, source))
}
