//! The printed text apart from the table: the method, a line for each slice, the meaning of the figures, the verdict.

use std::fmt::Write as _;
use std::time::Duration;

use waterwheel_bench_kit::text::grouped;

use crate::load::Outcome;
use crate::plan::Plan;
use crate::table::{self, DASH};
use crate::window::{Course, Window};

pub(crate) fn method(plan: &Plan, clocks: &[&str], workers: usize) -> String {
    let slices = &plan.slices;
    let turns = if clocks.len() == 1 {
        "alone"
    } else {
        "in turn"
    };
    format!(
        "an RPC server and its clients under load for some {} s, by the timers of {} {turns}; then what the timers cost\n\
         RPC over loopback TCP, {} slices of {}\n\
         not counted: set-up, and the first {} of each slice, in which calls build up or end\n\
         connections: {} and {} silent for each clock, calls in flight on each: {}, workers: {workers}\n\
         timeout: {}, heartbeat: {}, idle deadline: {}, seed: {}\n\n{}",
        (slices.length * slices.count).as_secs_f64().ceil(),
        clocks.join(" and of "),
        slices.count,
        whole_milliseconds(slices.length),
        whole_milliseconds(slices.settling),
        grouped(plan.connections.into()),
        plan.silent,
        grouped(plan.concurrency.into()),
        whole_milliseconds(plan.timeout),
        whole_milliseconds(plan.heartbeat),
        whole_milliseconds(plan.idle),
        plan.seed,
        slice_line(["slice", "", "calls/s", "CPU a call", "late by: p50", "p99"]),
    )
}

/// The line of a slice that is over.
pub(crate) fn slice(number: u32, clock: &str, window: &Window) -> String {
    let or_dash = |figure: Option<f64>, shown: fn(f64) -> String| figure.map_or(DASH.into(), shown);
    slice_line([
        &number.to_string(),
        clock,
        &table::per_second(window.a_second(|tally| tally.calls)),
        &or_dash(window.cpu_a_call(), table::microseconds),
        &or_dash(window.late(|it| it.p50), table::milliseconds),
        &or_dash(window.late(|it| it.p99), table::milliseconds),
    ])
}

fn slice_line([number, clock, calls, cpu, p50, p99]: [&str; 6]) -> String {
    format!("{number:>5}  {clock:<11} {calls:>12} {cpu:>13} {p50:>14} {p99:>12}\n")
}

/// When the clocks differ and when they do not, according to BENCHMARKS.md and the issues of tokio's that the README cites.
const EXPECTATION: &str = "\
expect level calls/s and CPU, and a lower p50 and p99, while workers have time to spare;
  more calls/s and less CPU only where many workers are busy, which share one lock in tokio
";

/// The meaning of the table's figures, and the counters of waterwheel's timer.
pub(crate) fn notes(plan: &Plan, outcomes: &[Outcome], course: &Course) -> String {
    let mut notes = String::new();
    if plan.clocks == 2 {
        notes.push_str(match plan.slices.count {
            2 => "ratio: of one pair of slices, so without a spread; use a larger --seconds\n",
            _ => "ratio: of each slice and the one before it; the median (least–greatest)\n",
        });
        notes.push_str(EXPECTATION);
    }
    notes.push_str(
        "CPU time: of the threads of the clock's runtime, and of the watchdog thread\n\
         lateness: from a call's deadline until its task ran, so it includes scheduling\n\
         timers: the timeout of every call, and the server's delay before every reply\n",
    );
    if course.overlaps > 0 {
        let remedy = if plan.slices.settling < plan.timeout {
            "the run is too short for this timeout: use a larger --seconds"
        } else {
            "the machine is too busy for this load"
        };
        let _ = writeln!(
            notes,
            "slices that began to count before the other clock's calls had ended: {}: {remedy}",
            course.overlaps
        );
    }
    let lost = lost(outcomes);
    if lost > 0 {
        let _ = writeln!(
            notes,
            "connection errors: {lost} connections were lost, with the calls in flight on them, so later slices had less load.\n  \
             The server hangs up on a connection from which nothing came for {}, although the client sends a\n  \
             heartbeat every {}: that runtime was not served in time, which is typical of a busy machine",
            whole_milliseconds(plan.idle),
            whole_milliseconds(plan.heartbeat),
        );
    }
    for books in outcomes.iter().filter_map(|outcome| outcome.books.as_ref()) {
        let _ = writeln!(
            notes,
            "waterwheel's own counters, with idle deadlines and heartbeats:\n  \
             {} timers armed = {} fired + {} cancelled + {} stopped + {} pending",
            grouped(books.armed()),
            grouped(books.fired()),
            grouped(books.cancelled()),
            grouped(books.stopped()),
            grouped(books.pending()),
        );
    }
    notes
}

/// The number of lost connections.
pub(crate) fn lost(outcomes: &[Outcome]) -> u64 {
    let lost = outcomes
        .iter()
        .map(|outcome| outcome.tally.connections_lost);
    lost.sum()
}

pub(crate) fn verdict(failures: &[String], interrupted: bool) -> String {
    let mut text = String::new();
    if interrupted {
        text.push_str("interrupted: a slice that Ctrl-C cut is not counted\n");
    }
    if failures.is_empty() {
        text.push_str("self-check: ok: every call ended exactly once, no timer fired early\n");
    } else {
        text.push_str("self-check: FAILED\n");
        for failure in failures {
            let _ = writeln!(text, "  {failure}");
        }
    }
    text
}

fn whole_milliseconds(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
