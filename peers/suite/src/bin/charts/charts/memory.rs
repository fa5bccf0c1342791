//! What a pending timer keeps on the heap.

use waterwheel_suite::Results;

use super::grouped::{self, Load};
use crate::bars::{self, Axes};
use crate::card::Chart;
use crate::figures::count;
use crate::looks::packages;
use crate::tables::{self, Missing};

const METRIC: &str = "live heap a pending timer";

pub(crate) fn chart(results: &Results) -> Result<Chart, Missing> {
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
    let (panels, names) = grouped::panels(&loads)?;
    let (body, height) = bars::draw(&panels, Axes::Shared);
    Ok(Chart {
        title: "Live heap of a pending boxed sleep: bytes".to_owned(),
        subtitle: "The future and the entry behind it. Lower is better.".to_owned(),
        legend: bars::legend(&[], None),
        body,
        height,
        notes: bars::notes(&panels, Axes::Shared),
        packages: packages(&names),
    })
}
