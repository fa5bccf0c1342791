//! What is printed: the conditions first, then a table for each workload.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use crate::flags::Flags;
use crate::rounds::{Series, Spread, against_tokio};
use crate::stage::{BATCH, WORKERS};

/// A column of figures; smaller is better.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
}

/// The result of one workload.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) work: String,
    pub(crate) metrics: &'static [Metric],
    pub(crate) series: Vec<Series>,
}

impl Table {
    pub(crate) fn print(&self) {
        let rounds = self.series.first().map_or(0, |series| series.samples.len());
        println!(
            "\n## {}\n{}; {rounds} interleaved rounds",
            self.title, self.work
        );
        for (index, metric) in self.metrics.iter().enumerate() {
            println!(
                "\n| {} | median {} | min | max | tokio / this (min..max) |",
                metric.name, metric.unit
            );
            println!("|:--|--:|--:|--:|--:|");
            for series in &self.series {
                let Spread { median, min, max } = series.spread(index);
                let ratio = against_tokio(&self.series, series.name, index);
                let ratio = ratio.map_or("1".to_owned(), ratio_text);
                let (median, min, max) = (figure(median), figure(min), figure(max));
                println!("| {} | {median} | {min} | {max} | {ratio} |", series.name);
            }
        }
        for series in &self.series {
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

    /// Timers that fired early or never, of all contestants.
    pub(crate) fn faults(&self) -> u64 {
        let faults = |series: &Series| series.count(|sample| sample.early + sample.lost);
        self.series.iter().map(faults).sum()
    }
}

/// Everything that a figure needs to be understood.
pub(crate) fn print_conditions(flags: &Flags) {
    println!("# waterwheel versus tokio::time\n");
    println!(
        "- waterwheel {}, tokio {}, {}",
        locked("waterwheel"),
        locked("tokio"),
        rustc()
    );
    let cores = available_parallelism().map_or(0, usize::from);
    println!("- {}, {cores} cores, load before: {}", processor(), load());
    println!("- multi-thread runtime, {WORKERS} workers; a yield every {BATCH} operations");
    println!(
        "- {} interleaved rounds; median, min, max; ratios are paired by round",
        flags.rounds
    );
    if flags.quick {
        println!("- QUICK: small sizes and few rounds, for plausibility only");
    }
    if cfg!(debug_assertions) {
        println!("- DEBUG ASSERTIONS ARE ON: no figure here means anything");
    }
}

/// A ratio with its ends.
pub(crate) fn ratio_text(Spread { median, min, max }: Spread) -> String {
    if median.is_nan() {
        return "n/a".to_owned();
    }
    format!("{median:.2} ({min:.2}..{max:.2})")
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

/// The version that Cargo.lock has of a package.
fn locked(package: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock");
    let lock = fs::read_to_string(path).unwrap_or_default();
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != format!("name = \"{package}\""));
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "));
    version.map_or("of unknown version".to_owned(), |version| {
        version.trim_matches('"').to_owned()
    })
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "rustc of unknown version".to_owned())
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown processor".to_owned(), |(_, name)| name.to_owned())
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_ascii_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}
