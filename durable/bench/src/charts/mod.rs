//! The charts, on the suite's cards.
//!
//! | file | question |
//! |---|---|
//! | `lateness` | how late are deliveries, by percentile? |

mod lateness;

use crate::bars;
use crate::card::{self, Chart};
use crate::looks::{Look, Mark};
use crate::results::Results;
use crate::source::Source;

type Make = fn(&Results) -> Option<Chart>;

pub(crate) const ALL: [(&str, Make); 3] = [
    ("calls", calls),
    ("lateness", lateness::under_load),
    ("isolation", lateness::beside_another),
];

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
