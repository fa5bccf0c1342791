//! What a person reads: the method, a line of progress, the two clocks side by side, the verdict.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use crate::clock::{Clock, Tokio, Waterwheel};
use crate::common::histogram::Quantiles;
use crate::common::text::{grouped, milliseconds};
use crate::ledger::Tally;
use crate::load::Outcome;
use crate::plan::Plan;

pub(crate) fn method(plan: &Plan, workers: usize) -> String {
    format!(
        "RPC over loopback TCP, {} for each clock\n\
         connections: {} and {} silent, calls in flight on each: {}, worker threads: {workers}\n\
         timeout: {}, heartbeat: {}, idle deadline: {}, seed: {}\n\n",
        seconds(plan.load),
        grouped(plan.connections.into()),
        plan.silent,
        grouped(plan.concurrency.into()),
        whole_milliseconds(plan.timeout),
        whole_milliseconds(plan.heartbeat),
        whole_milliseconds(plan.idle),
        plan.seed,
    )
}

/// Fits into 80 columns, so that a terminal can rewrite it in place.
pub(crate) fn progress(clock: &str, elapsed: Duration, tally: &Tally) -> String {
    format!(
        "{:>6} {clock:<11} {:>8} calls {:>8} replies {:>7} timeouts {:>6} open",
        seconds(elapsed),
        grouped(tally.calls),
        grouped(tally.replies),
        grouped(tally.timeouts),
        grouped(tally.in_flight()),
    )
}

/// The two clocks side by side. `None`: this clock was not run.
pub(crate) fn table(waterwheel: Option<&Outcome>, tokio: Option<&Outcome>) -> String {
    let mut table = Table {
        sides: [waterwheel, tokio],
        text: String::from("\n"),
    };
    table.line("", Waterwheel::NAME, Tokio::NAME);
    table.row("load", |side| {
        let cut = if side.interrupted { "cut at " } else { "" };
        format!("{cut}{}", seconds(side.load))
    });
    table.count("calls", |tally| tally.calls);
    table.rate("  a second", |tally| tally.calls);
    table.count("  replies", |tally| tally.replies);
    table.count("  timeouts", |tally| tally.timeouts);
    table.count("  connection errors", |tally| tally.errors);
    table.count("replies that came too late", |tally| tally.late_replies);
    table.gap();
    table.lateness("lateness of the timeouts, p50", |lateness| lateness.p50);
    table.lateness("                          p99", |lateness| lateness.p99);
    table.lateness("                          max", |lateness| lateness.max);
    table.gap();
    table.rate("timers armed a second", Tally::armed);
    table.rate("  cancelled a second", Tally::cancelled);
    table.rate("  fired a second", Tally::fired);
    table.rate("idle deadlines pushed back a second", |tally| tally.frames);
    table.gap();
    table.row("silent connections closed as idle", |side| {
        format!("{} of {}", side.tally.silent_closed, side.silent)
    });
    table.count("other connections lost", |tally| tally.connections_lost);
    table.count("heartbeats", |tally| tally.heartbeats);
    table.gap();
    if [waterwheel, tokio]
        .into_iter()
        .flatten()
        .all(|side| side.cpu.is_some())
    {
        table.row("CPU time of the process", |side| {
            side.cpu.map_or_else(String::new, seconds_exactly)
        });
        table.row("  for a call", |side| {
            let cpu = side.cpu.unwrap_or_default();
            format!(
                "{:.2} µs",
                cpu.as_secs_f64() * 1e6 / side.tally.calls.max(1) as f64
            )
        });
        table.gap();
    }
    table.text
}

struct Table<'a> {
    sides: [Option<&'a Outcome>; 2],
    text: String,
}

impl Table<'_> {
    fn row(&mut self, label: &str, cell: impl Fn(&Outcome) -> String) {
        let [left, right] = self.sides.map(|side| match side {
            Some(outcome) => cell(outcome),
            None => "not run".into(),
        });
        self.line(label, left, right);
    }

    fn count(&mut self, label: &str, count: impl Fn(&Tally) -> u64) {
        self.row(label, |side| grouped(count(&side.tally)));
    }

    fn rate(&mut self, label: &str, count: impl Fn(&Tally) -> u64) {
        self.row(label, |side| {
            grouped((count(&side.tally) as f64 / side.load.as_secs_f64()).round() as u64)
        });
    }

    fn lateness(&mut self, label: &str, quantile: impl Fn(&Quantiles) -> Duration) {
        self.row(label, |side| match &side.tally.lateness {
            Some(lateness) => milliseconds(quantile(lateness)),
            None => "no timeouts".into(),
        });
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn line(&mut self, label: &str, left: impl Display, right: impl Display) {
        let _ = writeln!(self.text, "{label:<36}{left:>16}{right:>16}");
    }
}

/// What the figures of the table mean, and the account that waterwheel's timer gives of itself.
pub(crate) fn notes(waterwheel: Option<&Outcome>) -> String {
    let mut notes = String::from(
        "lateness: from a call's deadline until its task knew, so scheduling is in it\n\
         timers: the timeout of every call, and the server's delay before every reply\n",
    );
    if let Some(books) = waterwheel.and_then(|side| side.books) {
        let _ = writeln!(
            notes,
            "waterwheel's own books, with idle deadlines and heartbeats:\n  \
             {} timers armed = {} fired + {} cancelled + {} stopped + {} pending",
            grouped(books.armed),
            grouped(books.fired),
            grouped(books.cancelled),
            grouped(books.stopped),
            grouped(books.pending),
        );
    }
    notes
}

pub(crate) fn verdict(failures: &[String], interrupted: bool) -> String {
    let mut text = String::new();
    if interrupted {
        text.push_str("interrupted: the figures are those up to Ctrl-C\n");
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

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn seconds_exactly(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

fn whole_milliseconds(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
