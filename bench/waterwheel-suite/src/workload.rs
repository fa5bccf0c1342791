//! One workload at one size: `rounds` runs it, and `process` takes one sample of it.

use waterwheel_suite::{Absent, Metric};

use crate::entrant::Entrant;

/// A workload, with a row in the report's tables for each entrant, and a figure for each metric.
pub(crate) struct Workload {
    pub(crate) title: String,
    /// The work, in one line.
    pub(crate) work: String,
    pub(crate) metrics: &'static [Metric],
    /// The entrants. The report compares the others with the first.
    pub(crate) entrants: Vec<Entrant>,
    /// The contestants that cannot take part, each with the reason.
    pub(crate) absent: Vec<Absent>,
}
