//! `service`: the load generator `testing/waterwheel-rpc-timeouts`, which resembles a service: a server and its client over loopback TCP,
//! thousands of calls in flight, each under a timeout, idle deadlines that each frame postpones, and heartbeats.
//!
//! Each sample is a run of it with one clock alone (`--only`), in its own process. The figures are the medians that
//! it prints, and a run whose self-check fails is a failed sample. The CPU time is that of the runtime's threads and
//! the wake-up thread; lateness is that of the calls that timed out.

use std::process::Command;
use std::time::Duration;

use waterwheel_bench_kit::output;
use waterwheel_suite::{Absent, Metric, Sample, Target, Want, printed};

use crate::alt_timer;
use crate::cargo;
use crate::contestant::{Current, Own, Sleeps, Tokio, Watched};
use crate::entrant::Entrant;
use crate::workload::Workload;

pub(crate) const NAME: &str = "service";

const PROGRAM: &str = "waterwheel-rpc-timeouts";
const CPU: &str = "CPU a call";
const P50: &str = "lateness p50";
const P99: &str = "lateness p99";
const METRICS: &[Metric] = &[
    Metric::lower(CPU, "us"),
    Metric::higher("calls", "calls/s"),
    Metric::lower(P50, "ms"),
    Metric::lower(P99, "ms"),
];
/// In the order of the metrics: the label in its report, and its unit.
const FIGURES: [(&str, &str); 4] = [
    ("CPU time a call", "µs"),
    ("calls a second", ""),
    ("lateness of the timeouts, p50", "ms"),
    ("p99", "ms"),
];
/// How much longer than requested a run may take, to connect and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The clocks, each with its name on the command line.
const CLOCKS: [(&str, &str); 2] = [(Tokio::NAME, "tokio"), (Current::NAME, "waterwheel")];

fn title() -> String {
    format!("{NAME}, rpc_timeouts")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let seconds = if quick { 2 } else { 4 };
    vec![Workload {
        title: title(),
        work: format!("the load generator of this name, each clock alone for {seconds} s"),
        metrics: METRICS,
        entrants: CLOCKS
            .map(|(name, clock)| Entrant::new(name, move || sample(clock, seconds)))
            .into(),
        absent: vec![
            Absent::new(
                Own::<Watched>::NAME,
                "it calls the free functions, as a service would",
            ),
            Absent::new(alt_timer::NAME, "it does not enable it"),
        ],
    }]
}

pub(crate) fn targets() -> Vec<Target> {
    [(CPU, 0.98), (P50, 1.0), (P99, 1.0)]
        .map(|(metric, at_most)| {
            Target::new(
                title(),
                metric,
                Current::NAME,
                Want::share(Tokio::NAME, at_most),
            )
        })
        .into()
}

pub(crate) fn build() -> Result<(), String> {
    cargo::build(NAME, &["--package", PROGRAM, "--profile", "bench"])
}

fn sample(clock: &str, seconds: u64) -> Sample {
    let path = cargo::built(NAME, format!("release/{PROGRAM}"));
    let mut command = Command::new(&path);
    command.args(["--seconds", &seconds.to_string(), "--only", clock]);
    let values = output(&mut command, Duration::from_secs(seconds) + PATIENCE)
        .and_then(|report| figures(&report))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Sample::of(values)
}

fn figures(report: &str) -> Result<Vec<f64>, String> {
    FIGURES
        .iter()
        .map(|(label, unit)| printed(report, label, unit))
        .collect()
}
