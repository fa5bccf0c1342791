//! A target: a figure, what it must be, and what would be better.

use waterwheel_bench_kit::Spread;

use crate::results::Results;
use crate::sample::Sample;

/// A line of a table of targets.
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) row: &'static str,
    pub(crate) unit: Unit,
    pub(crate) figure: Figure,
    pub(crate) must: Want,
    pub(crate) stretch: Want,
}

/// What is made of a round.
pub(crate) enum Figure {
    Of(fn(&Sample) -> Option<f64>),
    /// With the round of this row that was played beside it.
    Beside(&'static str, fn(&Sample, &Sample) -> Option<f64>),
}

/// How a figure is written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Rate,
    Ratio,
    Bytes,
    Megabytes,
    Millis,
    Percent,
    Count,
}

#[derive(Clone, Copy)]
pub(crate) enum Want {
    AtLeast(f64),
    AtMost(f64),
    /// Not only the median.
    AtLeastInEach(f64),
    AtMostInEach(f64),
    /// From the first to the second, in each round.
    WithinInEach(f64, f64),
    /// Nothing beyond the other column.
    None,
}

use Unit::{Bytes, Count, Megabytes, Millis, Percent, Rate, Ratio};
use Want::{AtLeast, AtLeastInEach, AtMost, AtMostInEach, WithinInEach};

pub(super) const fn of(
    row: &'static str,
    what: &'static str,
    unit: Unit,
    figure: fn(&Sample) -> Option<f64>,
    must: Want,
    stretch: Want,
) -> Target {
    Target {
        what,
        row,
        unit,
        figure: Figure::Of(figure),
        must,
        stretch,
    }
}

/// Of a row and the one that is played beside it.
pub(super) const fn beside(
    (row, other): (&'static str, &'static str),
    what: &'static str,
    unit: Unit,
    figure: fn(&Sample, &Sample) -> Option<f64>,
    must: Want,
    stretch: Want,
) -> Target {
    Target {
        what,
        row,
        unit,
        figure: Figure::Beside(other, figure),
        must,
        stretch,
    }
}

pub(super) fn rate(sample: &Sample) -> Option<f64> {
    sample.value("a second")
}

pub(super) fn p99_beyond_the_thread(sample: &Sample) -> Option<f64> {
    Some(sample.value("late p99 ms")? - sample.value("thread p99 ms")?)
}

pub(super) fn memory(sample: &Sample) -> Option<f64> {
    Some(sample.value("peak memory")? / 1e6)
}

impl Target {
    pub(crate) fn spread(&self, results: &Results) -> Option<Spread> {
        match self.figure {
            Figure::Of(figure) => results.spread(self.row, figure),
            Figure::Beside(other, figure) => results.spread_beside(self.row, other, figure),
        }
    }

    /// Whether it needs rounds of this row as well.
    pub(crate) fn is_beside(&self, row: &str) -> bool {
        matches!(self.figure, Figure::Beside(other, _) if other == row)
    }
}

impl Want {
    /// Whether the median is as wanted, or each round.
    pub(crate) fn is_met(self, spread: Spread) -> Option<bool> {
        match self {
            AtLeast(least) => Some(spread.median >= least),
            AtMost(most) => Some(spread.median <= most),
            AtLeastInEach(least) => Some(spread.min >= least),
            AtMostInEach(most) => Some(spread.max <= most),
            WithinInEach(least, most) => Some(least <= spread.min && spread.max <= most),
            Want::None => None,
        }
    }
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Rate if value >= 9_950.0 => format!("{:.0} k/s", value / 1e3),
            Rate if value >= 995.0 => format!("{:.1} k/s", value / 1e3),
            Rate => format!("{value:.0}/s"),
            Ratio => format!("{value:.2} ×"),
            Bytes if value >= 9_950.0 => format!("{:.0} KB", value / 1e3),
            Bytes if value >= 995.0 => format!("{:.1} KB", value / 1e3),
            Bytes => format!("{value:.0} B"),
            Megabytes => format!("{value:.0} MB"),
            Millis if value.abs() >= 99.5 => format!("{value:.0} ms"),
            Millis => format!("{value:.2} ms"),
            Percent => format!("{value:.3} %"),
            Count => format!("{value:.0}"),
        }
    }

    pub(crate) fn wanted(self, want: Want) -> String {
        match want {
            AtLeast(least) | AtLeastInEach(least) => format!("≥ {}", self.show(least)),
            WithinInEach(least, most) => format!("{} – {}", self.show(least), self.show(most)),
            AtMostInEach(0.0) => "0".to_owned(),
            AtMost(most) | AtMostInEach(most) => format!("≤ {}", self.show(most)),
            Want::None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_held_against_what_is_wanted() {
        let spread = Spread {
            median: 2.0,
            min: 1.0,
            max: 9.0,
        };
        assert_eq!(AtLeast(2.0).is_met(spread), Some(true));
        assert_eq!(AtLeast(2.1).is_met(spread), Some(false));
        assert_eq!(AtMost(2.0).is_met(spread), Some(true));
        assert_eq!(AtMost(1.9).is_met(spread), Some(false));
        assert_eq!(AtMostInEach(9.0).is_met(spread), Some(true));
        assert_eq!(AtMostInEach(8.0).is_met(spread), Some(false));
        assert_eq!(AtLeastInEach(1.0).is_met(spread), Some(true));
        assert_eq!(AtLeastInEach(1.1).is_met(spread), Some(false));
        assert_eq!(WithinInEach(1.0, 9.0).is_met(spread), Some(true));
        assert_eq!(WithinInEach(1.1, 9.0).is_met(spread), Some(false));
        assert_eq!(WithinInEach(1.0, 8.9).is_met(spread), Some(false));
        assert_eq!(Want::None.is_met(spread), None);
    }
}
