//! The report as text: the conditions first, then a table for each workload, then a verdict on each target.

use waterwheel_bench_kit::Spread;

use crate::{
    Absent, Better, Conditions, Failure, Metric, Outcome, Results, Series, Table, Verdict,
};

/// The report of a whole run.
pub fn report(results: &Results) -> String {
    let tables: String = results.tables.iter().map(report_table).collect();
    report_conditions(&results.conditions) + &tables + &report_targets(&results.targets)
}

/// The report of a table.
pub fn report_table(table: &Table) -> String {
    let Table { title, work, .. } = table;
    let mut text = format!("\n## {title}\n{work}");
    if let Some(first) = table.series.first() {
        let (rounds, seconds) = (first.samples.len(), table.seconds);
        text += &format!("; {rounds} interleaved rounds, {seconds:.1} s\n");
        for index in 0..table.metrics.len() {
            text += &report_metric(table, first, index);
        }
        for Absent { name, why } in &table.absent {
            text += &format!("\nNot here: {name} ({why})\n");
        }
    } else {
        text.push('\n');
    }
    for Failure { name, why } in &table.failures {
        text += &format!("\nFAULT: {name}: {why}\n");
    }
    for series in &table.series {
        let [early, lost, retaken] = [
            series.count(|s| s.early),
            series.count(|s| s.lost),
            series.count(|s| s.retaken),
        ];
        let name = &series.name;
        if early + lost > 0 {
            text += &format!("\nFAULT: {name}: {early} fired early, {lost} never\n");
        }
        if retaken > 0 {
            text += &format!("\n{name}: {retaken} samples did not hold and were taken again\n");
        }
    }
    text
}

/// All contestants, compared with the first one.
fn report_metric(table: &Table, first: &Series, index: usize) -> String {
    let Metric { name, unit, better } = &table.metrics[index];
    let higher = match better {
        Better::Higher => ", higher is better",
        Better::Lower => "",
    };
    let mut text = format!(
        "\n| {name}{higher} | median {unit} | min | max | times better than {} (min..max) |\n|:--|--:|--:|--:|--:|\n",
        first.name
    );
    for series in &table.series {
        let spread = series.spread(index);
        let [median, min, max] = [spread.median, spread.min, spread.max].map(figure);
        let ratio = if series.name == first.name {
            "1".to_owned()
        } else {
            spread_text(table.times_better(series, first, index))
        };
        text += &format!("| {} | {median} | {min} | {max} | {ratio} |\n", series.name);
    }
    text
}

/// The conditions that are needed to understand a figure.
pub fn report_conditions(conditions: &Conditions) -> String {
    let versions = conditions.versions.iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let Conditions {
        commit,
        date,
        rustc,
        system,
        processor,
        cores,
        load,
        workers,
        batch,
        rounds,
        ..
    } = conditions;
    let mut text = format!(
        "# waterwheel beside its peers\n\n- {}\n- commit {commit}, {date}\n",
        versions.join(", ")
    );
    if let Some(why) = &conditions.no_alt_timer {
        text += &format!("- no rows of tokio's alternative timer: {why}\n");
    }
    text += &format!(
        "- {rustc}; {system}; {processor}, {cores} cores, load before: {load}\n\
         - multi-thread runtime, {workers} workers; a yield every {batch} operations\n\
         - {rounds} interleaved rounds; median, min, max; ratios are paired by round\n"
    );
    if conditions.quick {
        text += "- QUICK: small sizes and few rounds, for plausibility only\n";
    }
    if conditions.debug_assertions {
        text += "- DEBUG ASSERTIONS ARE ON: no figure here means anything\n";
    }
    text
}

/// A line for each target, and the number of targets with each verdict.
pub fn report_targets(verdicts: &[Verdict]) -> String {
    let count = |outcome| verdicts.iter().filter(|v| v.outcome == outcome).count();
    let outcomes = [Outcome::Pass, Outcome::Miss, Outcome::Void, Outcome::NotRun];
    let [pass, miss, void, not_run] = outcomes.map(count);
    let table = verdict_table(verdicts, true);
    format!("\n## Targets\n\n{table}\n{pass} PASS, {miss} MISS, {void} VOID, {not_run} not run\n")
}

/// A line for each of these verdicts. Without the column that names the verdict, a target without a figure gives the reason instead.
pub fn verdict_table<'a>(
    verdicts: impl IntoIterator<Item = &'a Verdict>,
    is_named: bool,
) -> String {
    let (named, column) = if is_named {
        (" verdict |", ":--|")
    } else {
        ("", "")
    };
    let mut text = format!(
        "| workload: metric | contestant | wanted | measured (min..max) |{named}\n|:--|:--|:--|--:|{column}\n"
    );
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
        let (measured, outcome) = match verdict.outcome {
            _ if is_named => (measured, format!(" {outcome} |")),
            Outcome::Pass | Outcome::Miss => (measured, String::new()),
            Outcome::NotRun | Outcome::Void => (outcome.to_owned(), String::new()),
        };
        text += &format!("| {title}: {metric} | {of} | {wanted} | {measured} |{outcome}\n");
    }
    text
}

/// The median with the lowest and the highest value.
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
