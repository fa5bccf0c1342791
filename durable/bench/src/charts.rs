//! The charts, on the suite's cards.

use crate::card::{self, Chart};
use crate::curves::{self, Axis, AxisKind, Curve, Panel, Point};
use crate::looks::{Look, Mark};
use crate::results::Results;
use crate::source::Source;
use crate::{Spread, bars};

type Make = fn(&Results) -> Option<Chart>;

pub(crate) const ALL: [(&str, Make); 2] = [("calls", calls), ("lateness", lateness)];

/// The chart as a file.
pub(crate) fn framed(chart: Chart, results: &Results) -> String {
    let alert = results.conditions.quick;
    let alert = alert.then_some("QUICK RUN: small sizes and few rounds, for plausibility only.");
    let line = results.conditions.line().replace('`', "");
    format!("{}\n", card::frame(chart, &line, alert))
}

fn look(class: &'static str, label: &str, mark: Mark, rank: usize) -> Look {
    Look {
        rank,
        class,
        label: label.to_owned(),
        package: None,
        mark,
        ours: rank == 0,
    }
}

/// How many calls and deliveries a second.
fn calls(results: &Results) -> Option<Chart> {
    let group = |(row, label): (&str, &str)| {
        let spread = results.spread(row, |sample| Some(sample.value("a second")? / 1e3));
        bars::BarGroup {
            look: look("own", label, Mark::Circle, 0),
            bars: vec![spread.map(|spread| bars::Bar {
                spread,
                floor: None,
            })],
            whole: true,
        }
    };
    let groups = [
        ("insert-1", "insert, 1 caller"),
        ("insert-64", "insert, 64 callers"),
        ("insert-1024", "insert, 1 024 callers"),
        ("pending-month", "due over 30 days"),
        ("pending-year", "due over a year"),
        ("cancel", "cancel, 1 024 callers"),
        ("burst", "burst, delivered and settled"),
    ];
    results.row("insert-1")?;
    let panels = [bars::Panel {
        heading: "operations a second, each synced to the disk".to_owned(),
        unit: "k/s".to_owned(),
        groups: groups.map(group).into(),
    }];
    let (body, height) = bars::draw(&panels, bars::Axes::Separate);
    Some(Chart {
        title: "How many durable operations a second".to_owned(),
        subtitle: "Each caller awaits its own call; callers share commits. Higher is better."
            .to_owned(),
        legend: bars::legend(&panels, &[]),
        body,
        height,
        notes: vec![syncs(results)?],
        source: Source::default(),
    })
}

fn syncs(results: &Results) -> Option<String> {
    let syncs = results.spread("insert-1", |sample| sample.value("syncs a second"))?;
    Some(format!(
        "The disk makes {:.0} syncs a second, one after the other, beside the first bar ({:.0} – {:.0}).",
        syncs.median, syncs.min, syncs.max
    ))
}

const SHARES: u32 = 80;
const LAST: f64 = 0.9999;
const PLOT_HEIGHT: f64 = 230.0;

/// The whole distribution, its tail drawn out: each further nine has the same room.
fn lateness(results: &Results) -> Option<Chart> {
    let panels: Vec<(&str, Vec<Curve>)> = [
        ("steady", "20 000 inserts, 10 000 deliveries a second"),
        ("steady-2", "40 000 inserts, 20 000 deliveries a second"),
    ]
    .into_iter()
    .filter_map(|(row, heading)| {
        let of = [
            (
                "late",
                look("own", "a delivery, at its handler", Mark::Circle, 0),
            ),
            (
                "thread",
                look("async-io", "a thread that only sleeps", Mark::Diamond, 1),
            ),
            (
                "tokio",
                look(
                    "tokio",
                    "a task that only sleeps, tokio::time",
                    Mark::Square,
                    2,
                ),
            ),
        ];
        let curves = of.into_iter();
        let curves = curves.map(|(of, look)| curve(results, row, of, look));
        Some((heading, curves.collect::<Option<Vec<_>>>()?))
    })
    .collect();
    let all = || panels.iter().flat_map(|(_, curves)| curves);
    let y = Axis::log_time(all().flat_map(Curve::reach))?;
    let legend = curves::legend(all());
    let panels: Vec<Panel> = panels
        .into_iter()
        .map(|(heading, curves)| Panel {
            heading: heading.to_owned(),
            remark: "millions pending; a day's bucket cascades meanwhile".to_owned(),
            x: percentiles(),
            y: y.clone(),
            curves,
        })
        .collect();
    let (body, height) = curves::draw(&panels, panels.len(), PLOT_HEIGHT);
    Some(Chart {
        title: "How late durable timers are delivered, by percentile".to_owned(),
        subtitle: "From the due time that was asked for to the call of the handler. Lower is better. A band reaches from the least to the greatest round."
            .to_owned(),
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
        marked: false,
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
