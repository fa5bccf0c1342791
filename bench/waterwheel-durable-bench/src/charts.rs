//! The charts: how many calls a second, and how late deliveries are, by percentile.

use waterwheel_bench_kit::chart::curves::{self, Axis, Curve, Panel};
use waterwheel_bench_kit::chart::{Chart, Look, Mark, bars, frame, percentiles};

use crate::results::Results;

type Make = fn(&Results) -> Option<Chart>;

pub(crate) const ALL: [(&str, Make); 3] = [
    ("calls", calls),
    ("lateness", under_load),
    ("isolation", beside_another),
];

/// Renders the chart as a file.
pub(crate) fn framed(chart: Chart, results: &Results) -> String {
    let alert = results.conditions.quick;
    let alert = alert.then_some("QUICK RUN: small sizes and few rounds, for plausibility only.");
    let line = results.conditions.line().replace('`', "");
    format!("{}\n", frame(chart, alert, &[], &line))
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

/// The number of calls and deliveries a second.
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
    })
}

fn syncs(results: &Results) -> Option<String> {
    let syncs = results.spread("insert-1", |sample| sample.value("syncs a second"))?;
    Some(format!(
        "The disk makes {:.0} syncs a second, one after the other, beside the first bar ({:.0} – {:.0}).",
        syncs.median, syncs.min, syncs.max
    ))
}

/// A panel: its heading, its caption, and its curves, each with its row, the curve's name and its look.
type Drawn<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str, Look)>);

/// Lateness while inserts and deliveries run, compared to a thread and a task that only sleep.
fn under_load(results: &Results) -> Option<Chart> {
    let panel = |(row, heading)| {
        let tokio = "a task that only sleeps, tokio::time";
        let curves = vec![
            (row, "late", ours("a delivery, at its handler")),
            (row, "thread", thread()),
            (row, "tokio", look("tokio", tokio, Mark::Square, 2)),
        ];
        let remark = "millions pending; a day's bucket cascades meanwhile";
        (heading, remark, curves)
    };
    let panels = [
        ("steady", "20 000 inserts, 10 000 deliveries a second"),
        ("steady-2", "40 000 inserts, 20 000 deliveries a second"),
    ];
    chart(
        results,
        panels.map(panel).into(),
        "How late durable timers are delivered, by percentile",
        "From the due time that was asked for to the call of the handler. Lower is better. A band reaches from the least to the greatest round.",
    )
}

/// The chart of a namespace next to one with troubles of its own.
fn beside_another(results: &Results) -> Option<Chart> {
    let alone = "B, without that";
    let limited = vec![
        ("limited", "late", ours("B, beside A")),
        ("limited-not", "late", peer(alone)),
        ("limited", "thread", thread()),
    ];
    let few_places = Look {
        // Last in the legend, which merges equal looks only if they are adjacent.
        rank: 3,
        ..look("current", "B, 64 places for both", Mark::TriangleUp, 0)
    };
    let unlimited = vec![
        ("unlimited", "late", ours("B, beside A")),
        ("unlimited-places", "late", few_places),
        ("limited-not", "late", peer(alone)),
        ("unlimited", "thread", thread()),
    ];
    let fails = "B, while A's handler fails";
    let fails = look("own-thread", fails, Mark::TriangleDown, 0);
    let out = vec![
        ("outage-hangs", "late", ours("B, beside A")),
        ("outage-fails", "late", fails),
        ("outage-none", "late", peer(alone)),
        ("outage-hangs", "thread", thread()),
    ];
    for row in ["limited", "outage-fails"] {
        results.row(row)?;
    }
    let overdue = "and has a million timers that are overdue";
    let waiting = "and 600 000 timers wait for it, or 36 000 come again";
    chart(
        results,
        vec![
            ("A is limited to 100 a second", overdue, limited),
            ("A is not limited", overdue, unlimited),
            ("A's handler takes a minute, or fails", waiting, out),
        ],
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

/// Draws the chart, leaving out panels that lack a curve.
fn chart(results: &Results, panels: Vec<Drawn<'_>>, title: &str, subtitle: &str) -> Option<Chart> {
    let panels = panels.into_iter().filter_map(|(heading, remark, curves)| {
        let curves = curves.into_iter();
        let curves = curves.map(|(row, of, look)| curve(results, row, of, look));
        Some((heading, remark, curves.collect::<Option<Vec<_>>>()?))
    });
    let panels: Vec<_> = panels.collect();
    let all = || panels.iter().flat_map(|(.., curves)| curves);
    let y = Axis::log_time(all().flat_map(Curve::reach))?;
    let legend = curves::legend(all());
    let panel = |(heading, remark, curves): (&str, &str, _)| Panel {
        heading: heading.to_owned(),
        remark: remark.to_owned(),
        x: percentiles::axis("percentile of the timers"),
        y: y.clone(),
        shaded: None,
        curves,
    };
    let panels: Vec<Panel> = panels.into_iter().map(panel).collect();
    let (body, height) = curves::draw(&panels, 2, percentiles::PLOT_HEIGHT);
    Some(Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        legend,
        body,
        height,
        notes: Vec::new(),
    })
}

fn curve(results: &Results, row: &str, of: &str, look: Look) -> Option<Curve> {
    percentiles::curve(look, |share| {
        results.spread(row, |sample| {
            let points = sample.curves.get(of)?;
            let (micros, _) = points.iter().find(|(_, its)| *its >= share)?;
            // In ns; a logarithmic scale has no 0.
            Some(micros.max(1.0) * 1e3)
        })
    })
}
