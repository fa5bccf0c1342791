//! What is wanted, and whether it is reached.

use crate::Spread;
use crate::results::Results;
use crate::sample::Sample;

/// A line of the table of targets.
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) row: &'static str,
    pub(crate) unit: Unit,
    pub(crate) figure: fn(&Sample) -> Option<f64>,
    pub(crate) must: Want,
    pub(crate) stretch: Want,
}

/// How a figure is written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Rate,
    /// Of the disk's syncs.
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
    /// Nothing beyond the other column.
    None,
}

use Unit::{Bytes, Count, Megabytes, Millis, Percent, Rate, Ratio};
use Want::{AtLeast, AtMost};

fn rate(sample: &Sample) -> Option<f64> {
    sample.value("a second")
}

fn of_syncs(sample: &Sample) -> Option<f64> {
    Some(sample.value("a second")? / sample.value("syncs a second")?)
}

fn bytes(sample: &Sample) -> Option<f64> {
    sample.value("bytes each")
}

fn beyond_the_thread(sample: &Sample) -> Option<f64> {
    Some(sample.value("late p99 ms")? - sample.value("thread p99 ms")?)
}

fn memory(sample: &Sample) -> Option<f64> {
    Some(sample.value("peak memory")? / 1e6)
}

pub(crate) const ALL: [Target; 26] = [
    target(
        "insert, 1 caller, beside the disk's syncs",
        "insert-1",
        Ratio,
        of_syncs,
        AtLeast(0.6),
        AtLeast(0.9),
    ),
    target(
        "insert, 64 callers",
        "insert-64",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(100e3),
    ),
    target(
        "insert, 1 024 callers",
        "insert-1024",
        Rate,
        rate,
        AtLeast(120e3),
        AtLeast(300e3),
    ),
    target(
        "insert, due over 30 days",
        "month",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    target(
        "the same, millions pending",
        "pending-month",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    target(
        "written an insert",
        "pending-month",
        Bytes,
        bytes,
        AtMost(3e3),
        AtMost(2e3),
    ),
    target(
        "insert, due over a year",
        "year",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    target(
        "the same, millions pending",
        "pending-year",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    target(
        "written an insert",
        "pending-year",
        Bytes,
        bytes,
        AtMost(3e3),
        AtMost(2e3),
    ),
    target(
        "written a timer by its cascades and its settle",
        "day",
        Bytes,
        bytes,
        Want::None,
        Want::None,
    ),
    target(
        "written a timer in its life, seven due a minute",
        "month-life",
        Bytes,
        |it| it.value("bytes of a life"),
        Want::None,
        Want::None,
    ),
    target(
        "cancel, of timers inserted before",
        "cancel",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(100e3),
    ),
    target(
        "cancel, anywhere among the millions",
        "pending-cancel",
        Rate,
        rate,
        Want::None,
        Want::None,
    ),
    target(
        "a burst, delivered and settled",
        "burst",
        Rate,
        rate,
        AtLeast(150e3),
        AtLeast(500e3),
    ),
    target(
        "20 000 in and 10 000 due a second: inserts",
        "steady",
        Rate,
        rate,
        AtLeast(19.9e3),
        Want::None,
    ),
    target(
        "p99 beyond the thread's that only sleeps",
        "steady",
        Millis,
        beyond_the_thread,
        AtMost(5.0),
        AtMost(1.0),
    ),
    target(
        "early",
        "steady",
        Count,
        |it| it.value("early"),
        AtMost(0.0),
        AtMost(0.0),
    ),
    target(
        "40 000 in and 20 000 due a second: inserts",
        "steady-2",
        Rate,
        rate,
        Want::None,
        AtLeast(39.8e3),
    ),
    target(
        "p99 beyond the thread's that only sleeps",
        "steady-2",
        Millis,
        beyond_the_thread,
        Want::None,
        AtMost(1.0),
    ),
    target(
        "restart, cold: the first is delivered",
        "restart",
        Millis,
        |it| it.value("first ms"),
        AtMost(500.0),
        AtMost(150.0),
    ),
    target(
        "all that are overdue",
        "restart",
        Millis,
        |it| it.value("all ms"),
        AtMost(3e3),
        AtMost(500.0),
    ),
    target(
        "memory, idle",
        "idle",
        Megabytes,
        memory,
        AtMost(150.0),
        AtMost(100.0),
    ),
    target(
        "memory, at 20 000 in and 10 000 due a second",
        "steady",
        Megabytes,
        memory,
        AtMost(150.0),
        AtMost(100.0),
    ),
    target(
        "memory, while they are inserted in batches",
        "pending",
        Megabytes,
        memory,
        AtMost(150.0),
        AtMost(100.0),
    ),
    target(
        "on disk a timer",
        "pending",
        Bytes,
        |it| it.value("bytes on disk each"),
        AtMost(130.0),
        AtMost(100.0),
    ),
    target(
        "idle, of a core",
        "idle",
        Percent,
        |it| it.value("% of a core"),
        AtMost(0.5),
        AtMost(0.5),
    ),
];

const fn target(
    what: &'static str,
    row: &'static str,
    unit: Unit,
    figure: fn(&Sample) -> Option<f64>,
    must: Want,
    stretch: Want,
) -> Target {
    Target {
        what,
        row,
        unit,
        figure,
        must,
        stretch,
    }
}

impl Target {
    pub(crate) fn spread(&self, results: &Results) -> Option<Spread> {
        results.spread(self.row, self.figure)
    }
}

impl Want {
    /// Whether the median is as wanted. A count is to be so in each round.
    pub(crate) fn is_met(self, spread: Spread) -> Option<bool> {
        match self {
            AtLeast(least) => Some(spread.median >= least),
            AtMost(0.0) => Some(spread.max <= 0.0),
            AtMost(most) => Some(spread.median <= most),
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
            AtLeast(least) => format!("≥ {}", self.show(least)),
            AtMost(0.0) => "0".to_owned(),
            AtMost(most) => format!("≤ {}", self.show(most)),
            Want::None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_of_a_row() {
        for target in &ALL {
            let mut rows = crate::rows::ALL.iter();
            assert!(rows.any(|row| row.name == target.row), "{}", target.row);
        }
    }

    #[test]
    fn a_median_is_held_against_what_is_wanted() {
        let spread = Spread {
            median: 2.0,
            min: 1.0,
            max: 9.0,
        };
        assert_eq!(AtLeast(2.0).is_met(spread), Some(true));
        assert_eq!(AtLeast(2.1).is_met(spread), Some(false));
        assert_eq!(AtMost(1.9).is_met(spread), Some(false));
        let rarely = Spread {
            median: 0.0,
            min: 0.0,
            max: 1.0,
        };
        assert_eq!(AtMost(0.0).is_met(rarely), Some(false));
        assert_eq!(Want::None.is_met(spread), None);
    }
}
