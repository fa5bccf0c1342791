//! How late timers fire: the whole distribution, its tail drawn out.
//!
//! The curve is the cumulative distribution with its axes swapped and the share on a scale that gives each further nine
//! the same room, as `HdrHistogram` draws it: the ordinary curve hides everything past p99 in its last pixel.

use waterwheel_suite::{Results, Series, Table};

use crate::card::Chart;
use crate::curves::{self, Axis, AxisKind, Curve, Panel, Point, Rounds};
use crate::figures::count;
use crate::looks::look;
use crate::source::{Source, contestants};
use crate::tables::{self, Missing};

/// Name of the curve in the samples: lateness in µs, and the share of the timers that are no later.
const CURVE: &str = "lateness";

pub(crate) fn chart(results: &Results) -> Result<Chart, Missing> {
    let loads = loads(results);
    let all = || loads.iter().flat_map(|load| &load.curves);
    // One axis for all panels, so that they compare.
    let lateness = Axis::log_time(all().flat_map(Curve::reach))
        .ok_or_else(|| Missing(format!("curve {CURVE:?} of \"fire\"")))?;
    let legend = curves::legend(all());
    let source = Source::of(loads.iter().map(|load| load.table));
    let panels: Vec<Panel> = loads
        .into_iter()
        .map(|load| Panel {
            heading: format!("{} timers", count(load.timers)),
            remark: "lateness (log scale)".to_owned(),
            x: percentiles(),
            y: lateness.clone(),
            shaded: None,
            curves: load.curves,
        })
        .collect();
    let (body, height) = curves::draw(&panels, panels.len(), PLOT_HEIGHT);
    Ok(Chart {
        title: "How late timers fire, by percentile".to_owned(),
        subtitle: "From a timer's deadline to the call of its waker, default resolution. Lower is better. Bands: lowest to highest round.".to_owned(),
        legend,
        body,
        height,
        notes: Vec::new(),
        source,
    })
}

/// One panel.
struct Load<'a> {
    timers: usize,
    table: &'a Table,
    curves: Vec<Curve>,
}

/// One for each size that has curves.
fn loads(results: &Results) -> Vec<Load<'_>> {
    let load = |(timers, table)| Load {
        timers,
        table,
        curves: curves_of(table),
    };
    tables::sizes(results, "fire, ", " timers")
        .into_iter()
        .map(load)
        .filter(|load| !load.curves.is_empty())
        .collect()
}

fn curves_of(table: &Table) -> Vec<Curve> {
    let curve = |name: &str| {
        Some(Curve {
            look: look(name),
            points: points(table.series(name)?)?,
            rounds: Rounds::Band,
        })
    };
    contestants([table].into_iter())
        .into_iter()
        .filter_map(curve)
        .collect()
}

/// The lateness in ns that each share of the timers keeps within: of the rounds the median, with the ends.
fn points(series: &Series) -> Option<Vec<Point>> {
    let curves = series.samples.iter().flat_map(|sample| &sample.curves);
    let rounds: Vec<&[(f64, f64)]> = curves
        .filter(|c| c.name == CURVE)
        .map(|c| &*c.points)
        .collect();
    shares()
        .map(|share| {
            let nanos = rounds.iter().filter_map(|points| quantile(points, share));
            let spread = tables::spread_of(nanos.map(|micros| micros * 1e3).collect())?;
            Some(Point {
                x: nines(share),
                y: spread.median,
                ends: (spread.min, spread.max),
            })
        })
        .collect()
}

/// Where a line from left to right, of (value, share), comes up to a share.
fn quantile(points: &[(f64, f64)], share: f64) -> Option<f64> {
    let after = points.iter().position(|(_, y)| *y >= share)?;
    let (x, y) = points[after];
    let Some((x0, y0)) = after.checked_sub(1).map(|before| points[before]) else {
        return Some(x);
    };
    Some(x0 + (x - x0) * (share - y0) / (y - y0))
}

/// From a tenth of the timers to all but one in ten thousand, evenly on the axis.
fn shares() -> impl Iterator<Item = f64> {
    let (first, last) = (nines(0.1), nines(LAST));
    (0..=STEPS).map(move |step| {
        let nines = first + (last - first) * f64::from(step) / f64::from(STEPS);
        1.0 - 10_f64.powf(-nines)
    })
}

const PLOT_HEIGHT: f64 = 230.0;
const STEPS: u32 = 80;
const LAST: f64 = 0.9999;

/// How many nines a share has: 0.9 has one, 0.99 two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

fn percentiles() -> Axis {
    let tick = |percent: f64| (nines(percent / 100.0), format!("{percent}"));
    Axis {
        kind: AxisKind::Linear,
        ends: (0.0, nines(LAST)),
        ticks: [50.0, 90.0, 99.0, 99.9, 99.99].map(tick).to_vec(),
        label: "percentile of timers (log scale)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_its_points() {
        let points = [(10.0, 0.2), (20.0, 0.6), (40.0, 1.0)];
        assert_eq!(quantile(&points, 0.1), Some(10.0));
        assert_eq!(quantile(&points, 0.4).map(f64::round), Some(15.0));
        assert_eq!(quantile(&points, 1.0), Some(40.0));
        assert_eq!(quantile(&points[..2], 0.9), None);
    }
}
