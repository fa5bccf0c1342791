//! The report as text: the conditions first, then a table for each workload, then a verdict on each target.

use waterwheel_bench_kit::Spread;

use crate::{Absent, Better, Conditions, Failure, Outcome, Results, Table, Verdict};

/// All of a run.
pub fn report(results: &Results) -> String {
    let tables: String = results.tables.iter().map(report_table).collect();
    report_conditions(&results.conditions) + &tables + &report_targets(&results.targets)
}

/// A table.
pub fn report_table(table: &Table) -> String {
    let mut lines = Lines::default();
    write_table(&mut lines, table);
    lines.0
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, line: impl AsRef<str>) {
        self.0.push_str(line.as_ref());
        self.0.push('\n');
    }
}

fn write_table(lines: &mut Lines, table: &Table) {
    let Some(first) = table.series.first() else {
        lines.add(format!("\n## {}\n{}", table.title, table.work));
        return write_trouble(lines, table);
    };
    let rounds = first.samples.len();
    lines.add(format!(
        "\n## {}\n{}; {rounds} interleaved rounds, {:.1} s",
        table.title, table.work, table.seconds
    ));
    for (index, metric) in table.metrics.iter().enumerate() {
        let higher = match metric.better {
            Better::Higher => ", higher is better",
            Better::Lower => "",
        };
        lines.add(format!(
            "\n| {}{higher} | median {} | min | max | times better than {} (min..max) |",
            metric.name, metric.unit, first.name
        ));
        lines.add("|:--|--:|--:|--:|--:|");
        for series in &table.series {
            let Spread { median, min, max } = series.spread(index);
            let (median, min, max) = (figure(median), figure(min), figure(max));
            let ratio = if series.name == first.name {
                "1".to_owned()
            } else {
                spread_text(table.times_better(series, first, index))
            };
            lines.add(format!(
                "| {} | {median} | {min} | {max} | {ratio} |",
                series.name
            ));
        }
    }
    for Absent { name, why } in &table.absent {
        lines.add(format!("\nNot here: {name} ({why})"));
    }
    write_trouble(lines, table);
}

fn write_trouble(lines: &mut Lines, table: &Table) {
    for Failure { name, why } in &table.failures {
        lines.add(format!("\nFAULT: {name}: {why}"));
    }
    for series in &table.series {
        let (early, lost) = (series.count(|s| s.early), series.count(|s| s.lost));
        if early + lost > 0 {
            lines.add(format!(
                "\nFAULT: {}: {early} fired early, {lost} never",
                series.name
            ));
        }
        let retaken = series.count(|s| s.retaken);
        if retaken > 0 {
            lines.add(format!(
                "\n{}: {retaken} samples did not hold and were taken again",
                series.name
            ));
        }
    }
}

/// Everything that a figure needs to be understood.
pub fn report_conditions(conditions: &Conditions) -> String {
    let mut lines = Lines::default();
    lines.add("# waterwheel beside its peers\n");
    let versions = conditions.versions.iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    lines.add(format!("- {}", versions.join(", ")));
    lines.add(format!(
        "- commit {}, {}",
        conditions.commit, conditions.date
    ));
    if let Some(why) = &conditions.no_alt_timer {
        lines.add(format!("- no rows of tokio's alternative timer: {why}"));
    }
    lines.add(format!(
        "- {}; {}; {}, {} cores, load before: {}",
        conditions.rustc,
        conditions.system,
        conditions.processor,
        conditions.cores,
        conditions.load
    ));
    lines.add(format!(
        "- multi-thread runtime, {} workers; a yield every {} operations",
        conditions.workers, conditions.batch
    ));
    lines.add(format!(
        "- {} interleaved rounds; median, min, max; ratios are paired by round",
        conditions.rounds
    ));
    if conditions.quick {
        lines.add("- QUICK: small sizes and few rounds, for plausibility only");
    }
    if conditions.debug_assertions {
        lines.add("- DEBUG ASSERTIONS ARE ON: no figure here means anything");
    }
    lines.0
}

/// A line for each target, and how many there are of each verdict.
pub fn report_targets(verdicts: &[Verdict]) -> String {
    let mut lines = Lines("\n## Targets\n\n".to_owned() + &verdict_table(verdicts));
    let count = |outcome| verdicts.iter().filter(|v| v.outcome == outcome).count();
    lines.add(format!(
        "\n{} PASS, {} MISS, {} VOID, {} not run",
        count(Outcome::Pass),
        count(Outcome::Miss),
        count(Outcome::Void),
        count(Outcome::NotRun)
    ));
    lines.0
}

/// A line for each of these verdicts.
pub fn verdict_table<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> String {
    let mut lines = Lines::default();
    lines.add("| workload: metric | contestant | wanted | measured (min..max) | verdict |");
    lines.add("|:--|:--|:--|--:|:--|");
    for verdict in verdicts {
        let Verdict {
            title,
            metric,
            of,
            wanted,
            ..
        } = verdict;
        let measured = verdict.measured.map_or("-".to_owned(), spread_text);
        let outcome = match verdict.outcome {
            Outcome::Pass => "PASS",
            Outcome::Miss => "MISS",
            Outcome::NotRun => "not run",
            Outcome::Void => "VOID: see the faults",
        };
        lines.add(format!(
            "| {title}: {metric} | {of} | {wanted} | {measured} | {outcome} |"
        ));
    }
    lines.0
}

/// The median with the least and the greatest.
fn spread_text(Spread { median, min, max }: Spread) -> String {
    if median.is_nan() {
        return "n/a".to_owned();
    }
    format!("{} ({}..{})", figure(median), figure(min), figure(max))
}

/// Three digits or more.
fn figure(value: f64) -> String {
    match value {
        _ if value.is_nan() => "n/a".to_owned(),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
