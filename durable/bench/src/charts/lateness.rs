//! The whole distribution of latenesses, its tail drawn out: each further nine has the same room.

use super::look;
use crate::Spread;
use crate::card::Chart;
use crate::curves::{self, Axis, AxisKind, Curve, Panel, Point, Rounds};
use crate::looks::{Look, Mark};
use crate::results::Results;
use crate::source::Source;

const SHARES: u32 = 80;
const LAST: f64 = 0.9999;
const PLOT_HEIGHT: f64 = 230.0;

/// A panel: its heading, what is said below, and its curves.
type Drawn = (&'static str, &'static str, Vec<Curve>);

/// Beside inserts and deliveries, with a thread and a task that only sleep.
pub(super) fn under_load(results: &Results) -> Option<Chart> {
    let panels = [
        ("steady", "20 000 inserts, 10 000 deliveries a second"),
        ("steady-2", "40 000 inserts, 20 000 deliveries a second"),
    ];
    let panels = panels.into_iter().filter_map(|(row, heading)| {
        let tokio = "a task that only sleeps, tokio::time";
        let curves = [
            curve(results, row, "late", ours("a delivery, at its handler")),
            curve(results, row, "thread", thread()),
            curve(results, row, "tokio", look("tokio", tokio, Mark::Square, 2)),
        ];
        let remark = "millions pending; a day's bucket cascades meanwhile";
        Some((heading, remark, curves.into_iter().collect::<Option<_>>()?))
    });
    chart(
        panels.collect(),
        "How late durable timers are delivered, by percentile",
        "From the due time that was asked for to the call of the handler. Lower is better. A band reaches from the least to the greatest round.",
    )
}

/// Of a namespace that is beside one with troubles of its own.
pub(super) fn beside_another(results: &Results) -> Option<Chart> {
    let alone = "B, without that";
    let limited = [
        curve(results, "limited", "late", ours("B, beside A")),
        curve(results, "limited-not", "late", peer(alone)),
        curve(results, "limited", "thread", thread()),
    ];
    let out = [
        curve(results, "outage-hangs", "late", ours("B, beside A")),
        curve(
            results,
            "outage-fails",
            "late",
            look(
                "own-precise",
                "B, while A's handler fails",
                Mark::TriangleDown,
                0,
            ),
        ),
        curve(results, "outage-none", "late", peer(alone)),
        curve(results, "outage-hangs", "thread", thread()),
    ];
    let few_places = Look {
        // After the others in the legend, which joins the same looks only if they follow one another.
        rank: 3,
        ..look("current", "B, 64 places for both", Mark::TriangleUp, 0)
    };
    let unlimited = [
        curve(results, "unlimited", "late", ours("B, beside A")),
        curve(results, "unlimited-places", "late", few_places),
        curve(results, "limited-not", "late", peer(alone)),
        curve(results, "unlimited", "thread", thread()),
    ];
    let mut panels = vec![
        (
            "A is limited to 100 a second",
            "and has a million timers that are overdue",
            limited.into_iter().collect::<Option<_>>()?,
        ),
        (
            "A's handler takes a minute, or fails",
            "and 600 000 timers wait for it, or 36 000 come again",
            out.into_iter().collect::<Option<_>>()?,
        ),
    ];
    // Results of an earlier version have no such rows.
    if let Some(curves) = unlimited.into_iter().collect() {
        let remark = "and has a million timers that are overdue";
        panels.insert(1, ("A is not limited", remark, curves));
    }
    chart(
        panels,
        "How late one namespace is delivered beside another, by percentile",
        "From the due time that was asked for to the call of B's handler. Lower is better. A band reaches from the least to the greatest round.",
    )
}

fn ours(label: &str) -> Look {
    look("own", label, Mark::Circle, 0)
}

fn peer(label: &str) -> Look {
    look("tokio", label, Mark::Square, 2)
}

fn thread() -> Look {
    look("async-io", "a thread that only sleeps", Mark::Diamond, 1)
}

fn chart(panels: Vec<Drawn>, title: &str, subtitle: &str) -> Option<Chart> {
    let all = || panels.iter().flat_map(|(_, _, curves)| curves);
    let y = Axis::log_time(all().flat_map(Curve::reach))?;
    let legend = curves::legend(all());
    let panels: Vec<Panel> = panels
        .into_iter()
        .map(|(heading, remark, curves)| Panel {
            heading: heading.to_owned(),
            remark: remark.to_owned(),
            x: percentiles(),
            y: y.clone(),
            shaded: None,
            curves,
        })
        .collect();
    let (body, height) = curves::draw(&panels, 2, PLOT_HEIGHT);
    Some(Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        legend,
        body,
        height,
        notes: Vec::new(),
        source: Source::default(),
    })
}

fn curve(results: &Results, row: &str, of: &str, look: Look) -> Option<Curve> {
    let point = |step: u32| {
        let nines = nines(0.1) + (nines(LAST) - nines(0.1)) * f64::from(step) / f64::from(SHARES);
        let share = 1.0 - 10_f64.powf(-nines);
        let spread: Spread = results.spread(row, |sample| {
            let points = sample.curves.get(of)?;
            let (micros, _) = points.iter().find(|(_, its)| *its >= share)?;
            // In ns; on a scale of ratios nothing is 0.
            Some(micros.max(1.0) * 1e3)
        })?;
        Some(Point {
            x: nines,
            y: spread.median,
            ends: (spread.min, spread.max),
        })
    };
    let points: Option<Vec<_>> = (0..=SHARES).map(point).collect();
    Some(Curve {
        look,
        points: points?,
        rounds: Rounds::Band,
    })
}

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
        label: "percentile of the timers".to_owned(),
    }
}
