//! The targets, and whether they are met.
//!
//! A line of `targets/engine.txt`, `targets/service.txt` or `targets/postgres.txt` is a target: `row | what | unit | figure | must | stretch`. A figure is a value of a round, or the
//! quotient or the difference of two. `name @row` is the value in the neighbouring round of that row. The last two may be empty.

use std::sync::LazyLock;

use waterwheel_bench_kit::Spread;

use crate::results::Results;
use crate::sample::Sample;

/// The tables, by their names on the page.
pub(crate) static ENGINE: LazyLock<Vec<Target>> =
    LazyLock::new(|| read(include_str!("targets/engine.txt")));
pub(crate) static SERVICE: LazyLock<Vec<Target>> =
    LazyLock::new(|| read(include_str!("targets/service.txt")));
pub(crate) static POSTGRES: LazyLock<Vec<Target>> =
    LazyLock::new(|| read(include_str!("targets/postgres.txt")));

/// A line of a table of targets.
pub(crate) struct Target {
    pub(crate) row: &'static str,
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    figure: Figure,
    pub(crate) must: Want,
    pub(crate) stretch: Want,
}

enum Figure {
    Of(Value),
    Quotient(Value, Value),
    Difference(Value, Value),
}

#[derive(Clone, Copy)]
struct Value {
    name: &'static str,
    /// The row whose round has the value, if not the target's own.
    row: Option<&'static str>,
}

/// How a figure is written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Rate,
    Ratio,
    Bytes,
    Megabytes,
    Micros,
    Millis,
    Percent,
    Count,
}

/// The range that the median or each round must be in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Want {
    least: Option<f64>,
    most: Option<f64>,
    in_each: bool,
}

fn read(table: &'static str) -> Vec<Target> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let target = |line| Target::read(line).unwrap_or_else(|| panic!("no target: {line}"));
    lines.map(target).collect()
}

impl Target {
    fn read(line: &'static str) -> Option<Target> {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [row, what, unit, figure, must, stretch] = cells[..] else {
            return None;
        };
        let two = |separator| figure.split_once(separator);
        Some(Target {
            row,
            what,
            unit: Unit::read(unit)?,
            figure: match (two(" / "), two(" - ")) {
                (Some((a, b)), _) => Figure::Quotient(Value::read(a), Value::read(b)),
                (_, Some((a, b))) => Figure::Difference(Value::read(a), Value::read(b)),
                _ => Figure::Of(Value::read(figure)),
            },
            must: Want::read(must)?,
            stretch: Want::read(stretch)?,
        })
    }

    pub(crate) fn spread(&self, results: &Results) -> Option<Spread> {
        match self.beside() {
            None => results.spread(self.row, |sample| self.figure(sample, sample)),
            Some(other) => results.spread_beside(self.row, other, |a, b| self.figure(a, b)),
        }
    }

    /// The other row whose rounds the target needs.
    pub(crate) fn beside(&self) -> Option<&'static str> {
        match self.figure {
            Figure::Of(value) => value.row,
            Figure::Quotient(a, b) | Figure::Difference(a, b) => a.row.or(b.row),
        }
    }

    fn figure(&self, sample: &Sample, other: &Sample) -> Option<f64> {
        let value = |value: Value| value.row.map_or(sample, |_| other).value(value.name);
        Some(match self.figure {
            Figure::Of(it) => value(it)?,
            Figure::Quotient(a, b) => value(a)? / value(b)?,
            Figure::Difference(a, b) => value(a)? - value(b)?,
        })
    }
}

impl Value {
    fn read(text: &'static str) -> Value {
        let (name, row) = text.split_once(" @").unzip();
        Value {
            name: name.unwrap_or(text),
            row,
        }
    }
}

impl Want {
    fn read(text: &str) -> Option<Want> {
        let (text, in_each) = match text.strip_suffix(" in each") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let number = |text: &str| text.parse().ok();
        let (least, most) = match (text.strip_prefix("≥ "), text.strip_prefix("≤ ")) {
            (Some(least), _) => (Some(number(least)?), None),
            (_, Some(most)) => (None, Some(number(most)?)),
            _ if text.is_empty() => (None, None),
            _ => {
                let (least, most) = text.split_once(" – ")?;
                (Some(number(least)?), Some(number(most)?))
            }
        };
        Some(Want {
            least,
            most,
            in_each,
        })
    }

    /// Whether the value is in the range. `None` if nothing is required.
    pub(crate) fn is_met(self, spread: Spread) -> Option<bool> {
        let (min, max) = match self.in_each {
            true => (spread.min, spread.max),
            false => (spread.median, spread.median),
        };
        let is_met = self.least.is_none_or(|it| min >= it) && self.most.is_none_or(|it| max <= it);
        (self.least.is_some() || self.most.is_some()).then_some(is_met)
    }
}

impl Unit {
    fn read(name: &str) -> Option<Unit> {
        Some(match name {
            "rate" => Unit::Rate,
            "ratio" => Unit::Ratio,
            "bytes" => Unit::Bytes,
            "megabytes" => Unit::Megabytes,
            "micros" => Unit::Micros,
            "millis" => Unit::Millis,
            "percent" => Unit::Percent,
            "count" => Unit::Count,
            _ => return None,
        })
    }

    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::Rate if value >= 9_950.0 => format!("{:.0} k/s", value / 1e3),
            Unit::Rate if value >= 995.0 => format!("{:.1} k/s", value / 1e3),
            Unit::Rate => format!("{value:.0}/s"),
            Unit::Ratio => format!("{value:.2} ×"),
            Unit::Bytes if value >= 9_950.0 => format!("{:.0} KB", value / 1e3),
            Unit::Bytes if value >= 995.0 => format!("{:.1} KB", value / 1e3),
            Unit::Bytes => format!("{value:.0} B"),
            Unit::Megabytes => format!("{:.0} MB", value / 1e6),
            Unit::Millis if value.abs() >= 99.5 => format!("{value:.0} ms"),
            Unit::Millis => format!("{value:.2} ms"),
            Unit::Micros => format!("{value:.1} µs"),
            Unit::Percent => format!("{value:.3} %"),
            Unit::Count => format!("{value:.0}"),
        }
    }

    pub(crate) fn wanted(self, want: Want) -> String {
        match (want.least, want.most) {
            (Some(least), Some(most)) => format!("{} – {}", self.show(least), self.show(most)),
            (Some(least), None) => format!("≥ {}", self.show(least)),
            (None, Some(0.0)) => "0".to_owned(),
            (None, Some(most)) => format!("≤ {}", self.show(most)),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_of_a_row() {
        let is_row = |name| crate::rows::ALL.iter().any(|row| row.name == name);
        for target in ENGINE.iter().chain(&*SERVICE) {
            for row in [Some(target.row), target.beside()].into_iter().flatten() {
                assert!(is_row(row), "{row}");
            }
        }
    }

    #[test]
    fn a_limit_that_is_not_used_up_misses_its_target() {
        for (row, limit) in [("limited", 100.0), ("outage-fails", 1_000.0)] {
            let mut sample = Sample::default();
            sample.set("limited a second", limit);
            let targets = SERVICE.iter().filter(|target| target.row == row);
            let known = targets.filter(|it| it.figure(&sample, &Sample::default()).is_some());
            let musts: Vec<Want> = known.map(|target| target.must).collect();
            let [must] = musts[..] else {
                panic!("{row} has {} targets of this figure", musts.len());
            };
            let is_met = |parts: &[f64]| {
                let rounds = parts.iter().map(|part| part * limit).collect();
                must.is_met(Spread::of(rounds))
            };
            assert_eq!(is_met(&[1.0, 0.95, 1.02]), Some(true), "{row}");
            for part in [0.0, 0.5, 0.94] {
                assert_eq!(is_met(&[1.0, part, 1.0]), Some(false), "{row}: {part}");
            }
        }
    }

    #[test]
    fn a_figure_may_be_of_two_rows() {
        let [mut ours, mut other] = [Sample::default(), Sample::default()];
        ours.set("a", 6.0);
        ours.set("b", 2.0);
        other.set("a", 4.0);
        let figure = |figure: &'static str| {
            let line = format!("row | what | count | {figure} | ≤ 1 |");
            Target::read(line.leak()).unwrap().figure(&ours, &other)
        };
        assert_eq!(
            ["a", "a / b", "a - b"].map(figure),
            [6.0, 3.0, 4.0].map(Some)
        );
        assert_eq!(["a - a @it", "a @it / b"].map(figure), [2.0; 2].map(Some));
        assert_eq!(figure("b / b @it"), None);
        for line in [
            "row | what | count | a | 1 |",
            "row | what | counts | a | |",
            "row | a",
        ] {
            assert!(Target::read(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_median_is_held_against_what_is_wanted() {
        let spread = Spread {
            median: 2.0,
            min: 1.0,
            max: 9.0,
        };
        let is_met = |want| Want::read(want).unwrap().is_met(spread);
        for (want, expected) in [
            ("≥ 2", Some(true)),
            ("≥ 2.1", Some(false)),
            ("≤ 2", Some(true)),
            ("≤ 1.9", Some(false)),
            ("≤ 9 in each", Some(true)),
            ("≤ 8 in each", Some(false)),
            ("≥ 1 in each", Some(true)),
            ("≥ 1.1 in each", Some(false)),
            ("1 – 9 in each", Some(true)),
            ("1.1 – 9 in each", Some(false)),
            ("1 – 8.9 in each", Some(false)),
            ("", None),
        ] {
            assert_eq!(is_met(want), expected, "{want}");
        }
    }
}
