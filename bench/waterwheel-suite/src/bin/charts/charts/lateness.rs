//! How late timers fire: the whole distribution, with a stretched tail.

use waterwheel_bench_kit::Spread;
use waterwheel_bench_kit::chart::curves::{self, Axis, Curve, Panel};
use waterwheel_bench_kit::chart::percentiles;
use waterwheel_bench_kit::chart::{Chart, count};
use waterwheel_suite::{Results, Series, Table};

use crate::looks::look;
use crate::source::{Source, contestants};
use crate::tables::{self, Missing};

/// The name of the curve in the samples: lateness in µs, and the share of the timers that are no later.
const CURVE: &str = "lateness";

pub(crate) fn chart(results: &Results) -> Result<(Chart, Source), Missing> {
    let sizes = tables::sizes(results, "fire, ", " timers")?.into_iter();
    let loads = sizes.map(|(timers, table)| (timers, table, curves_of(table)));
    // One panel for each size that has curves.
    let loads: Vec<_> = loads.filter(|(.., curves)| !curves.is_empty()).collect();
    let all = || loads.iter().flat_map(|(.., curves)| curves);
    // One axis for all panels, so that they can be compared.
    let lateness = Axis::log_time(all().flat_map(Curve::reach))
        .ok_or_else(|| Missing(format!("curve {CURVE:?} of \"fire\"")))?;
    let legend = curves::legend(all());
    let source = Source::of(loads.iter().map(|(_, table, _)| *table));
    let panel = |(timers, _, curves)| Panel {
        heading: format!("{} timers", count(timers)),
        remark: "lateness (log scale)".to_owned(),
        x: percentiles::axis("percentile of timers (log scale)"),
        y: lateness.clone(),
        shaded: None,
        curves,
    };
    let panels: Vec<Panel> = loads.into_iter().map(panel).collect();
    let (body, height) = curves::draw(&panels, panels.len(), percentiles::PLOT_HEIGHT);
    let chart = Chart {
        title: "How late timers fire, by percentile".to_owned(),
        subtitle: "From a timer's deadline to the call of its waker, default resolution. Lower is better. Bands: lowest to highest round.".to_owned(),
        legend,
        body,
        height,
        notes: Vec::new(),
    };
    Ok((chart, source))
}

fn curves_of(table: &Table) -> Vec<Curve> {
    let names = contestants([table].into_iter()).into_iter();
    let curve = |name: &str| {
        let series = table.series(name)?;
        percentiles::curve(look(name), |share| lateness(series, share))
    };
    names.filter_map(curve).collect()
}

/// The lateness in ns that this share of the timers stays within, over the rounds.
fn lateness(series: &Series, share: f64) -> Option<Spread> {
    let curves = series.samples.iter().flat_map(|sample| &sample.curves);
    let rounds = curves.filter(|curve| curve.name == CURVE);
    Spread::of_finite(rounds.filter_map(|it| Some(quantile(&it.points, share)? * 1e3)))
}

/// The value at which an ascending line of (value, share) reaches a share.
fn quantile(points: &[(f64, f64)], share: f64) -> Option<f64> {
    let after = points.iter().position(|(_, y)| *y >= share)?;
    let (x, y) = points[after];
    let Some((x0, y0)) = after.checked_sub(1).map(|before| points[before]) else {
        return Some(x);
    };
    Some(x0 + (x - x0) * (share - y0) / (y - y0))
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
