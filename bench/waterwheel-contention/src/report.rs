//! The printed text: a table, a picture of the heartbeats, and whether all timers kept their promises.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use waterwheel_bench_kit::Spread;
use waterwheel_bench_kit::machine::{cores, locked, processor};

use crate::measure::{Beats, Measured};
use crate::timers::{Timers as _, Tokio, Waterwheel};

/// The columns of the picture.
const COLUMNS: usize = 72;
/// The part of the picture before the herd is due.
const BEFORE: usize = 6;

/// Formats a value with three digits.
fn digits(value: f64) -> String {
    match value {
        _ if value.is_nan() => "–".to_owned(),
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// One figure of both libraries.
pub(crate) struct Line {
    pub(crate) label: Cow<'static, str>,
    unit: &'static str,
    /// The medians of tokio and of waterwheel. Less is better.
    pub(crate) pairs: Vec<(f64, f64)>,
}

impl Line {
    pub(crate) fn new(label: impl Into<Cow<'static, str>>, unit: &'static str) -> Line {
        Line {
            label: label.into(),
            unit,
            pairs: Vec::new(),
        }
    }

    /// The figures of both libraries, and how many times better waterwheel is.
    fn cells(&self) -> [String; 3] {
        let spread =
            |figure: fn(&(f64, f64)) -> f64| Spread::of(self.pairs.iter().map(figure).collect());
        let times = spread(|(tokio, waterwheel)| tokio / waterwheel);
        let mut ratio = digits(times.median);
        if self.pairs.len() > 1 {
            let _ = write!(ratio, " ({}–{})", digits(times.min), digits(times.max));
            if !(times.max < 1.0 || times.min > 1.0) {
                ratio += " inconclusive";
            }
        }
        let median = |figure| format!("{} {}", digits(spread(figure).median), self.unit);
        [median(|pair| pair.0), median(|pair| pair.1), ratio]
    }
}

pub(crate) struct Report {
    workers: usize,
    pub(crate) lines: Vec<Line>,
    /// The heartbeats during the herd in the last round of each library.
    pub(crate) beats: [Beats; 2],
    pub(crate) failures: Vec<String>,
}

impl Report {
    pub(crate) fn new(workers: usize) -> Report {
        Report {
            workers,
            lines: Vec::new(),
            beats: [Beats::default(), Beats::default()],
            failures: Vec::new(),
        }
    }

    /// Measures both libraries this many times. They alternate in going first.
    pub(crate) fn measure(
        &mut self,
        label: impl Into<Cow<'static, str>>,
        unit: &'static str,
        pairs: u32,
        mut tokio: impl FnMut() -> io::Result<Measured<f64>>,
        mut waterwheel: impl FnMut() -> io::Result<Measured<f64>>,
    ) -> io::Result<()> {
        let mut line = Line::new(label, unit);
        for pair in 0..pairs {
            let (tokio, waterwheel) = if pair % 2 == 0 {
                let first = tokio()?;
                (first, waterwheel()?)
            } else {
                let first = waterwheel()?;
                (tokio()?, first)
            };
            line.pairs.push((tokio.figure, waterwheel.figure));
            for (name, measured) in [(Tokio::NAME, tokio), (Waterwheel::NAME, waterwheel)] {
                let failures = measured.failures.into_iter();
                let named = failures.map(|why| format!("{name}, {}: {why}", line.label));
                self.failures.extend(named);
            }
        }
        self.lines.push(line);
        Ok(())
    }

    /// The heading, which is printed before anything is measured.
    pub(crate) fn head(&self) -> String {
        let mut text = format!(
            "{}\nmeasuring both in turn: some 5 seconds\n\n",
            self.conditions()
        );
        if self.workers == 1 {
            text += "With one worker there is no contention: expect little difference.\n\n";
        }
        text
    }

    fn conditions(&self) -> String {
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        let version = |package| locked(&lock, package);
        format!(
            "waterwheel {}, tokio {}; {}, {} cores, {} workers; {} {}",
            version("waterwheel"),
            version("tokio"),
            processor(),
            cores(),
            self.workers,
            std::env::consts::OS,
            std::env::consts::ARCH,
        )
    }

    pub(crate) fn text(&self) -> String {
        let heads = ["", Tokio::NAME, Waterwheel::NAME, "tokio ÷ waterwheel"].map(str::to_owned);
        let mut rows = vec![heads];
        for line in &self.lines {
            let [tokio, waterwheel, times] = line.cells();
            rows.push([line.label.clone().into_owned(), tokio, waterwheel, times]);
        }
        let width = |column: usize| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2)];
        let mut text = String::new();
        for [label, tokio, waterwheel, times] in &rows {
            let _ = writeln!(
                text,
                "{label:<0$}  {tokio:>1$}  {waterwheel:>2$}  {times}",
                widths[0], widths[1], widths[2]
            );
        }
        text.push('\n');
        text += &self.picture();
        text.push('\n');
        text += &self.verdict();
        text
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "{}\n\n| | `{}` | {} | tokio ÷ waterwheel |\n|---|--:|--:|--:|\n",
            self.conditions(),
            Tokio::NAME,
            Waterwheel::NAME
        );
        for line in &self.lines {
            let [tokio, waterwheel, times] = line.cells();
            let _ = writeln!(
                text,
                "| {} | {tokio} | {waterwheel} | {times} |",
                line.label
            );
        }
        text.push('\n');
        text += &self.verdict();
        text
    }

    /// A timeline for each library: the beats of the heartbeat while the herd woke, and its stalls.
    fn picture(&self) -> String {
        let end = self
            .beats
            .iter()
            .filter_map(|beats| beats.at.last())
            .fold(1e-3, |a: f64, &b| a.max(b));
        let column = end / (COLUMNS - BEFORE) as f64;
        let mut text = format!(
            "a task with a 1 ms heartbeat, while the others wake (| beat, . no beat; one column is {} ms)\n",
            digits(column * 1e3)
        );
        for (name, beats) in [Tokio::NAME, Waterwheel::NAME].iter().zip(&self.beats) {
            let mut columns = ['.'; COLUMNS];
            for &at in &beats.at {
                let index = at / column + BEFORE as f64;
                if index >= 0.0 {
                    columns[(index as usize).min(COLUMNS - 1)] = '|';
                }
            }
            let over = beats
                .at
                .last()
                .map_or(0, |&last| (last / column) as usize + BEFORE + 1);
            let line: String = columns.iter().take(over).collect();
            let _ = writeln!(text, "{name:<11}  {line}");
        }
        let _ = writeln!(
            text,
            "{:<11}  {:>2$} the others are due",
            "",
            "^",
            BEFORE + 1
        );
        text
    }

    fn verdict(&self) -> String {
        if self.failures.is_empty() {
            return "self-check: ok: no timer fired early, and none was lost\n".to_owned();
        }
        let mut text = "self-check: FAILED\n".to_owned();
        for failure in &self.failures {
            let _ = writeln!(text, "  {failure}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pairs: &[(f64, f64)]) -> Report {
        let mut line = Line::new("arm and cancel", "ns");
        line.pairs = pairs.to_vec();
        let mut report = Report::new(2);
        report.lines.push(line);
        report
    }

    #[test]
    fn a_line_has_medians_and_the_ratio_of_the_pairs() {
        let cells = |pairs: &[_]| report(pairs).lines[0].cells();
        let three = [(400.0, 100.0), (900.0, 100.0), (500.0, 200.0)];
        assert_eq!(cells(&three), ["500 ns", "100 ns", "4.00 (2.50–9.00)"]);
        let row = "| arm and cancel | 500 ns | 100 ns | 4.00 (2.50–9.00) |\n";
        assert!(report(&three).markdown().contains(row));
        // A range that includes 1 is inconclusive.
        let ratio = |pairs: &[_]| cells(pairs)[2].clone();
        assert_eq!(
            ratio(&[(1.0, 2.0), (3.0, 2.0)]),
            "1.00 (0.50–1.50) inconclusive"
        );
        assert_eq!(
            ratio(&[(2.0, 2.0), (6.0, 2.0)]),
            "2.00 (1.00–3.00) inconclusive"
        );
        let unknown = ratio(&[(f64::NAN, 2.0), (1.0, 2.0)]);
        assert!(unknown.ends_with("inconclusive"), "{unknown}");
    }

    #[test]
    fn the_picture_shows_a_stall() {
        let mut report = report(&[(1.0, 1.0)]);
        report.beats[0].at = vec![-0.001, 0.0, 0.066];
        report.beats[1].at = (0..60).map(|beat| f64::from(beat) * 1e-3).collect();
        let picture = report.picture();
        let lines: Vec<_> = picture.lines().collect();
        assert!(lines[0].ends_with("one column is 1.00 ms)"), "{picture}");
        let stalled = format!("tokio::time  .....||{}|", ".".repeat(64));
        assert_eq!(lines[1], stalled, "{picture}");
        assert!(lines[2].ends_with(&"|".repeat(50)), "{picture}");
    }

    #[test]
    fn what_failed_is_named() {
        let mut report = report(&[(1.0, 1.0)]);
        assert!(report.text().contains("self-check: ok"));
        report
            .failures
            .push("tokio::time: 1 timer fired before its deadline".to_owned());
        assert!(
            report
                .text()
                .ends_with("FAILED\n  tokio::time: 1 timer fired before its deadline\n")
        );
    }
}
