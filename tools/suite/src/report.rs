//! What is printed: the conditions first, then a table for each workload.

use waterwheel_suite::{Absent, Better, Conditions, Failure, Spread, Table};

/// Prints a table.
pub(crate) fn print(table: &Table) {
    let Some(first) = table.series.first() else {
        println!("\n## {}\n{}", table.title, table.work);
        return print_trouble(table);
    };
    let rounds = first.samples.len();
    println!(
        "\n## {}\n{}; {rounds} interleaved rounds, {:.1} s",
        table.title, table.work, table.seconds
    );
    for (index, metric) in table.metrics.iter().enumerate() {
        let higher = match metric.better {
            Better::Higher => ", higher is better",
            Better::Lower => "",
        };
        println!(
            "\n| {}{higher} | median {} | min | max | times better than {} (min..max) |",
            metric.name, metric.unit, first.name
        );
        println!("|:--|--:|--:|--:|--:|");
        for series in &table.series {
            let Spread { median, min, max } = series.spread(index);
            let (median, min, max) = (figure(median), figure(min), figure(max));
            let ratio = if series.name == first.name {
                "1".to_owned()
            } else {
                spread_text(table.times_better(series, first, index))
            };
            println!("| {} | {median} | {min} | {max} | {ratio} |", series.name);
        }
    }
    for Absent { name, why } in &table.absent {
        println!("\nNot here: {name} ({why})");
    }
    print_trouble(table);
}

fn print_trouble(table: &Table) {
    for Failure { name, why } in &table.failures {
        println!("\nFAULT: {name}: {why}");
    }
    for series in &table.series {
        let (early, lost) = (series.count(|s| s.early), series.count(|s| s.lost));
        if early + lost > 0 {
            println!(
                "\nFAULT: {}: {early} fired early, {lost} never",
                series.name
            );
        }
        let retaken = series.count(|s| s.retaken);
        if retaken > 0 {
            println!(
                "\n{}: {retaken} samples did not hold and were taken again",
                series.name
            );
        }
    }
}

/// Everything that a figure needs to be understood.
pub(crate) fn print_conditions(conditions: &Conditions) {
    println!("# waterwheel beside its peers\n");
    let versions = conditions.versions.iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    println!("- {}", versions.join(", "));
    println!("- commit {}, {}", conditions.commit, conditions.date);
    if let Some(why) = &conditions.no_alt_timer {
        println!("- no rows of tokio's alternative timer: {why}");
    }
    println!(
        "- {}; {}; {}, {} cores, load before: {}",
        conditions.rustc,
        conditions.system,
        conditions.processor,
        conditions.cores,
        conditions.load
    );
    println!(
        "- multi-thread runtime, {} workers; a yield every {} operations",
        conditions.workers, conditions.batch
    );
    println!(
        "- {} interleaved rounds; median, min, max; ratios are paired by round",
        conditions.rounds
    );
    if conditions.quick {
        println!("- QUICK: small sizes and few rounds, for plausibility only");
    }
    if conditions.debug_assertions {
        println!("- DEBUG ASSERTIONS ARE ON: no figure here means anything");
    }
}

/// The median with the least and the greatest.
pub(crate) fn spread_text(Spread { median, min, max }: Spread) -> String {
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
