//! Finds the data for a chart in the results, and reports missing data.

use std::fmt;

use waterwheel_bench_kit::Spread;
use waterwheel_suite::{Results, Series, Table};

/// Why a chart cannot be drawn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) String);

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the results have no {}", self.0)
    }
}

/// The table of this title.
pub(crate) fn table<'a>(results: &'a Results, title: &str) -> Result<&'a Table, Missing> {
    let found = results.tables.iter().find(|table| table.title == title);
    found.ok_or_else(|| Missing(format!("workload {title:?}")))
}

/// The tables whose titles are a number between these two, from the smallest number up. At least one.
pub(crate) fn sizes<'a>(
    results: &'a Results,
    before: &str,
    after: &str,
) -> Result<Vec<(usize, &'a Table)>, Missing> {
    let size = |table: &'a Table| {
        let number = table.title.strip_prefix(before)?.strip_suffix(after)?;
        Some((number.parse().ok()?, table))
    };
    let mut found: Vec<_> = results.tables.iter().filter_map(size).collect();
    found.sort_by_key(|(number, _)| *number);
    if found.is_empty() {
        return Err(Missing(format!("workload \"{before}…\"")));
    }
    Ok(found)
}

/// The index of a metric.
pub(crate) fn metric(table: &Table, name: &str) -> Result<usize, Missing> {
    let found = table.metric(name);
    found.ok_or_else(|| Missing(format!("metric {name:?} in {:?}", table.title)))
}

/// The median and the range of the measured values; `None` if there are none.
pub(crate) fn spread(series: &Series, metric: usize) -> Option<Spread> {
    let values = series
        .samples
        .iter()
        .filter_map(|sample| sample.values.get(metric));
    Spread::of_finite(values.copied())
}
