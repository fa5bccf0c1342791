//! The tables, as they are printed and as they appear on the page.

use waterwheel_bench_kit::{Spread, text::in_groups};

use crate::results::Results;
use crate::targets::{self, Target, Unit, Want};

type Make = fn(&Results) -> String;

/// The tables, by their names on the page and in its order.
pub(crate) const ALL: [(&str, Make); 9] = [
    ("conditions", conditions),
    ("targets", |results| targets(results, &targets::ENGINE)),
    ("targets of a service", |results| {
        targets(results, &targets::SERVICE)
    }),
    ("calls", |results| operations(results, &CALLS)),
    ("payloads", |results| operations(results, &PAYLOADS)),
    ("handlers", handlers),
    ("lateness", lateness),
    ("isolation", isolation),
    ("syncs", syncs),
];

fn conditions(results: &Results) -> String {
    let conditions = &results.conditions;
    let rounds = results.rows.iter().map(|row| row.samples.len());
    let most = rounds.max().unwrap_or(0);
    let quick = match conditions.quick {
        true => "**A quick run: no figure of it means anything.** ",
        false => "",
    };
    format!(
        "{quick}{} {} timers pending; up to {most} interleaved rounds; the run took {:.0} minutes.",
        conditions.line(),
        count(conditions.pending as f64),
        (results.seconds / 60.0).ceil(),
    )
}

/// The targets of timers in PostgreSQL. They are not on the page.
pub(crate) fn postgres(results: &Results) -> String {
    targets(results, &targets::POSTGRES)
}

fn targets(results: &Results, targets: &[Target]) -> String {
    let mut text = "| | measured | rounds | `fdatasync`/s | must | | stretch | |\n|---|--:|--:|--:|--:|---|--:|---|\n".to_owned();
    for target in targets {
        text += &line(results, target);
    }
    text
}

fn line(results: &Results, target: &Target) -> String {
    let spread = target.spread(results);
    let verdict = |want: Want| match spread.and_then(|spread| want.is_met(spread)) {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    let measured = spread.map_or("not measured".to_owned(), |spread| {
        shown(target.unit, spread)
    });
    let rounds = results.row(target.row).map_or(0, |row| row.samples.len());
    let syncs = results.spread(target.row, |sample| sample.value("syncs a second"));
    let syncs = syncs.map_or(String::new(), |spread| count(spread.median));
    format!(
        "| {} | {measured} | {rounds} | {syncs} | {} | {} | {} | {} |\n",
        target.what,
        target.unit.wanted(target.must),
        verdict(target.must),
        target.unit.wanted(target.stretch),
        verdict(target.stretch),
    )
}

/// Formats the median, and the lowest and highest of the rounds.
fn shown(unit: Unit, spread: Spread) -> String {
    match spread.min < spread.max {
        true => format!(
            "{} ({} – {})",
            unit.show(spread.median),
            unit.show(spread.min),
            unit.show(spread.max)
        ),
        false => unit.show(spread.median),
    }
}

const CALLS: [(&str, &str); 17] = [
    ("insert-1", "insert, 1 caller"),
    ("insert-1-policies", "the same, all policies on"),
    ("insert-64", "insert, 64 callers"),
    ("insert-64-policies", "the same, all policies on"),
    ("insert-1024", "insert, 1 024 callers"),
    ("insert-1024-policies", "the same, all policies on"),
    ("month", "insert over 30 days"),
    ("year", "insert over a year"),
    ("pending-month", "insert over 30 days, millions pending"),
    ("pending-year", "insert over a year, millions pending"),
    ("keyed", "insert over 30 days, a random key"),
    (
        "pending-keyed",
        "insert over 30 days, a random key, millions with keys pending",
    ),
    ("cancel", "cancel"),
    ("pending-cancel", "cancel, anywhere among the millions"),
    ("burst", "burst, a delivery and its settle"),
    ("burst-policies", "the same, all policies on"),
    ("day", "a day of the millions, a delivery with its cascades"),
];

const PAYLOADS: [(&str, &str); 4] = [
    ("insert-64-1k", "insert of 1 KB, 64 callers"),
    ("insert-64-64k", "insert of 64 KB, 64 callers"),
    ("burst-1k", "burst of 200 000 with 1 KB each"),
    ("burst-64k", "burst of 4 000 with 64 KB each"),
];

/// A column: its heading, the value that it shows, and how to format it.
type Column = (&'static str, &'static str, fn(Spread) -> String);

const A_SECOND: Column = ("a second", "a second", |it| shown(Unit::Rate, it));
const A_COMMIT: Column = ("operations a commit", "a commit", |it| count(it.median));
const CPU: Column = ("CPU", "CPU µs each", |it| format!("{:.1} µs", it.median));
const WRITTEN: Column = ("written", "bytes each", |it| Unit::Bytes.show(it.median));

fn millis(micros: Spread) -> String {
    Unit::Millis.show(micros.median / 1e3)
}

fn operations(results: &Results, rows: &[(&str, &str)]) -> String {
    // A run of some rows omits the lines of the others.
    let rows = rows.iter().copied();
    let rows: Vec<_> = rows.filter(|(row, _)| results.row(row).is_some()).collect();
    if rows.is_empty() {
        return NOT_MEASURED.to_owned();
    }
    let syncs = |it: Spread| {
        let [median, min, max] = [it.median, it.min, it.max].map(count);
        format!("{median} ({min} – {max})")
    };
    let columns: [Column; 7] = [
        A_SECOND,
        ("`fdatasync`/s beside it", "syncs a second", syncs),
        A_COMMIT,
        CPU,
        WRITTEN,
        ("a call takes, p50", "call p50 µs", millis),
        ("p99", "call p99 µs", millis),
    ];
    table(results, "one operation", &rows, &columns)
}

fn table(results: &Results, corner: &str, rows: &[(&str, &str)], columns: &[Column]) -> String {
    let mut text = format!("| {corner} |");
    for (head, ..) in columns {
        text += &format!(" {head} |");
    }
    text += &format!("\n|---|{}\n", "--:|".repeat(columns.len()));
    for (row, what) in rows {
        text += &format!("| {what} |");
        for (_, name, show) in columns {
            let spread = results.spread(row, |sample| sample.value(name));
            text += &format!(" {} |", spread.map_or(String::new(), show));
        }
        text.push('\n');
    }
    text
}

const NOT_MEASURED: &str = "That run has not measured this.";

const HANDLERS: [(&str, &str); 5] = [
    ("burst", "1 handler"),
    ("burst-100", "100 handlers"),
    ("burst-1000", "1 000 handlers"),
    ("burst-overdue", "overdue at the opening, 1 handler"),
    (
        "burst-overdue-1000",
        "overdue at the opening, 1 000 handlers",
    ),
];

fn handlers(results: &Results) -> String {
    // Without the other rows, there is nothing to compare one handler with.
    if results.row("burst-1000").is_none() {
        return NOT_MEASURED.to_owned();
    }
    let delivered = |it| shown(Unit::Millis, it);
    let columns: [Column; 5] = [
        ("all are delivered after", "delivered ms", delivered),
        ("all are settled, a second", A_SECOND.1, A_SECOND.2),
        A_COMMIT,
        CPU,
        WRITTEN,
    ];
    table(results, "200 000 timers over", &HANDLERS, &columns)
}

const DELIVERY: (&str, &str) = ("late", "a delivery, at its handler");
const THREAD: (&str, &str) = ("thread", "a thread that only sleeps");
const TASK: (&str, &str) = ("tokio", "a task that only sleeps, `tokio::time`");

fn lateness(results: &Results) -> String {
    let rows = [
        ("steady", "20 000 in, 10 000 due"),
        ("steady-2", "40 000 in, 20 000 due"),
    ];
    late(results, "a second", &rows, &[DELIVERY, THREAD, TASK])
}

fn isolation(results: &Results) -> String {
    let rows = [
        ("limited-not", "only B"),
        (
            "limited",
            "A is limited to 100 a second, and has a million overdue",
        ),
        ("unlimited", "A is not limited, and has a million overdue"),
        ("unlimited-places", "the same, and A and B share 64 places"),
        ("outage-none", "A and B, 1 000 due a second of each"),
        (
            "outage-hangs",
            "A's handler takes a minute, 600 000 wait for it",
        ),
        (
            "outage-fails",
            "A's handler has failed for an hour, and fails 1 000 times a second",
        ),
    ];
    let b = ("late", "a delivery of B, at its handler");
    let table = late(results, "beside it", &rows, &[b, THREAD]);
    // Only what was measured has a chart.
    match results.row("outage-fails") {
        Some(_) => format!(
            "![Lateness of B by percentile: about 2 ms at p99, alone and beside a namespace that is overdue, hangs or fails, and 4 ms if the two share 64 places](charts/isolation.svg)\n\n{table}"
        ),
        None => table,
    }
}

fn late(results: &Results, first: &str, rows: &[(&str, &str)], of: &[(&str, &str)]) -> String {
    let mut text =
        format!("| {first} | lateness of | p50 | p99 | p99.9 | max |\n|---|---|--:|--:|--:|--:|\n");
    // A run of some rows omits the lines of the others.
    let measured = rows.iter().filter(|(row, _)| results.row(row).is_some());
    for (row, rates) in measured {
        for (of, what) in of {
            let cell = |name: &str| {
                let name = format!("{of} {name} ms");
                let spread = results.spread(row, |sample| sample.value(&name));
                spread.map_or(String::new(), |spread| shown(Unit::Millis, spread))
            };
            let [p50, p99, p999, max] = ["p50", "p99", "p99.9", "max"].map(cell);
            text += &format!("| {rates} | {what} | {p50} | {p99} | {p999} | {max} |\n");
        }
    }
    text
}

fn syncs(results: &Results) -> String {
    let figure = |name: &str| results.spread("syncs", |sample| sample.value(name));
    let (Some(syncs), Some(commits)) = (figure("syncs"), figure("commits")) else {
        return "Syncs were not counted: `strace` is missing, or may not trace.".to_owned();
    };
    format!(
        "`strace` has counted {} syncs at {} commits.",
        count(syncs.median),
        count(commits.median)
    )
}

fn count(number: f64) -> String {
    if number < 9.95 {
        return format!("{number:.1}");
    }
    in_groups(&format!("{number:.0}"), ' ')
}
