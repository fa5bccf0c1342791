//! Arming and cancelling, which is all that most timers go through. With nothing else pending, and with many others.

use waterwheel_bench_kit::chart::bars::{self, Axes, Panel};
use waterwheel_bench_kit::chart::{Chart, count};
use waterwheel_suite::{Results, Table};

use super::grouped::{self, Load};
use crate::source::Source;
use crate::tables::{self, Missing};

const METRIC: &str = "one operation, per thread";
const THREADS: [&str; 2] = ["1 thread", "2 threads"];
const FLOOR: &str = "Floor: one clock read, two uncontended lock pairs, one waker, one slab entry; for the drop-in also one lookup of the runtime.";

pub(crate) fn chart(results: &Results) -> Result<(Chart, Source), Missing> {
    let mut loads = Vec::new();
    for (pending, heading) in [
        (0, "nothing else pending".to_owned()),
        (100_000, format!("{} others pending", count(100_000))),
    ] {
        let titles = THREADS.map(|threads| format!("cancel, {threads}, {pending} pending"));
        let variants: Result<Vec<&Table>, Missing> = titles
            .iter()
            .map(|title| tables::table(results, title))
            .collect();
        loads.push(Load {
            heading,
            metric: METRIC,
            variants: variants?,
        });
    }
    let panels = grouped::panels(&loads)?;
    let (body, height) = bars::draw(&panels, Axes::Shared);
    let has_floor = panels.iter().any(Panel::has_floor);
    let chart = Chart {
        title: "Arm and cancel a 30 s sleep: nanoseconds on each thread".to_owned(),
        subtitle: "One operation creates the sleep, polls it once and drops it. Lower is better."
            .to_owned(),
        legend: bars::legend(&panels, &THREADS),
        body,
        height,
        notes: bars::note(&panels, Axes::Shared)
            .into_iter()
            .chain(has_floor.then(|| FLOOR.to_owned()))
            .collect(),
    };
    let source = grouped::source(&loads);
    Ok((chart, source))
}
