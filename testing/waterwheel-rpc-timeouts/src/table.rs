//! The table of the clocks side by side: medians over their slices, and the ratios of the pairs with their spread.

use std::fmt::Write as _;
use std::time::Duration;

use waterwheel_bench_kit::Spread;
use waterwheel_bench_kit::text::{grouped, milliseconds as of_duration};

use crate::clock::{Clock, Tokio, Waterwheel};
use crate::ledger::Tally;
use crate::load::Outcome;
use crate::ratio::Ratio;
use crate::window::{Course, Window};

/// Printed in place of a figure that is missing.
pub(crate) const DASH: &str = "–";

pub(crate) fn table(outcomes: &[Outcome], course: &Course) -> String {
    let mut table = Table {
        outcomes,
        course,
        text: String::from("\n"),
    };
    let names = || outcomes.iter().map(|outcome| outcome.clock.to_owned());
    let ratio = format!("{} / {}", Waterwheel::NAME, Tokio::NAME);
    let ratio = Some(ratio).filter(|_| outcomes.len() == 2);
    table.line("median of the slices", names(), ratio);
    table.compared("CPU time a call", microseconds, Window::cpu_a_call);
    table.compared("calls a second", per_second, |window| {
        Some(window.a_second(|tally| tally.calls))
    });
    table.compared("lateness of the timeouts, p50", milliseconds, |window| {
        window.late(|quantiles| quantiles.p50)
    });
    table.compared("                          p99", milliseconds, |window| {
        window.late(|quantiles| quantiles.p99)
    });
    table.measured("                          max", milliseconds, |window| {
        window.late(|quantiles| quantiles.max)
    });
    table.rate("timers armed a second", Tally::armed);
    table.rate("  cancelled a second", Tally::cancelled);
    table.rate("  fired a second", Tally::fired);
    table.rate("idle deadlines moved a second", |tally| tally.frames);
    table.text.push('\n');

    table.line("the whole run", names(), None);
    table.count("calls", |tally| tally.calls);
    table.count("  replies", |tally| tally.replies);
    table.count("  timeouts", |tally| tally.timeouts);
    table.count("  connection errors", |tally| tally.errors);
    table.count("replies that came too late", |tally| tally.late_replies);
    table.count("heartbeats", |tally| tally.heartbeats);
    table.row("silent connections closed as idle", |outcome| {
        format!("{} of {}", outcome.tally.silent_closed, outcome.silent)
    });
    table.count("other connections lost", |tally| tally.connections_lost);
    table.text.push('\n');
    table.text
}

struct Table<'a> {
    outcomes: &'a [Outcome],
    course: &'a Course,
    text: String,
}

/// The figures of a clock, one for each slice; `None` for a slice without one.
type Figures = Vec<Option<f64>>;

impl Table<'_> {
    /// A line with the median over the slices of each clock, and the ratio of the clocks.
    fn compared(&mut self, label: &str, shown: Shown, figure: impl Fn(&Window) -> Option<f64>) {
        let figures = self.figures(figure);
        let ratio = match &figures[..] {
            [ours, theirs] => Some(match Ratio::of(ours, theirs) {
                Some(ratio) => ratio.to_string(),
                None => DASH.into(),
            }),
            _ => None,
        };
        self.line(label, medians(&figures, shown), ratio);
    }

    /// A line with the median over the slices of each clock.
    fn measured(&mut self, label: &str, shown: Shown, figure: impl Fn(&Window) -> Option<f64>) {
        let figures = self.figures(figure);
        self.line(label, medians(&figures, shown), None);
    }

    fn rate(&mut self, label: &str, count: fn(&Tally) -> u64) {
        self.measured(label, per_second, |window| Some(window.a_second(count)));
    }

    /// A line with a figure of the whole run.
    fn row(&mut self, label: &str, cell: impl Fn(&Outcome) -> String) {
        self.line(label, self.outcomes.iter().map(cell), None);
    }

    fn count(&mut self, label: &str, count: fn(&Tally) -> u64) {
        self.row(label, |outcome| grouped(count(&outcome.tally)));
    }

    fn figures(&self, figure: impl Fn(&Window) -> Option<f64>) -> Vec<Figures> {
        let clocks = self.course.windows.iter();
        clocks
            .map(|windows| windows.iter().map(&figure).collect())
            .collect()
    }

    fn line(
        &mut self,
        label: &str,
        cells: impl IntoIterator<Item = String>,
        ratio: Option<String>,
    ) {
        let mut line = format!("{label:<34}");
        for cell in cells {
            let _ = write!(line, "{cell:>13}");
        }
        let ratio = ratio.unwrap_or_default();
        let _ = writeln!(self.text, "{}", format!("{line}  {ratio}").trim_end());
    }
}

type Shown = fn(f64) -> String;

fn medians(figures: &[Figures], shown: Shown) -> Vec<String> {
    let median = |figures: &Figures| match Spread::of_finite(figures.iter().copied().flatten()) {
        Some(spread) => shown(spread.median),
        None => DASH.into(),
    };
    figures.iter().map(median).collect()
}

pub(crate) fn per_second(rate: f64) -> String {
    grouped(rate.round() as u64)
}

pub(crate) fn microseconds(figure: f64) -> String {
    format!("{figure:.2} µs")
}

pub(crate) fn milliseconds(figure: f64) -> String {
    of_duration(Duration::from_secs_f64(figure / 1e3))
}
