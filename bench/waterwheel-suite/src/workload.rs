//! One workload at one size: what `rounds` runs, and what `process` takes one sample of.

use waterwheel_suite::{Absent, Metric};

use crate::entrant::Entrant;

/// A row of the report's tables for each entrant, with a figure for each metric.
pub(crate) struct Workload {
    pub(crate) title: String,
    /// The work, in one line.
    pub(crate) work: String,
    pub(crate) metrics: &'static [Metric],
    /// The report compares the others with the first.
    pub(crate) entrants: Vec<Entrant>,
    /// The contestants that cannot take part, each with the reason.
    pub(crate) absent: Vec<Absent>,
}
