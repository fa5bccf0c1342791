//! What is measured: one file a workload, each at the sizes that BENCH asks for, and with the targets set for it.

mod cancel;
mod churn;
mod fire;
mod fresh_task;
mod herd;
mod postpone;
mod timeout;

use waterwheel_suite::{Absent, Metric};

use crate::rounds::Entrant;
use crate::targets::Target;

/// One workload at one size.
pub(crate) struct Workload {
    pub(crate) title: String,
    /// What is done, in one line.
    pub(crate) work: String,
    pub(crate) metrics: &'static [Metric],
    /// The first is the one that the others are held against.
    pub(crate) entrants: Vec<Entrant>,
    /// Who cannot take part.
    pub(crate) absent: Vec<Absent>,
}

/// Every workload at every size, in the order of the report; smaller and fewer if `quick`.
pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let all = [
        cancel::all(quick),
        fresh_task::all(quick),
        churn::all(quick),
        postpone::all(quick),
        timeout::all(quick),
        herd::all(quick),
        fire::all(quick),
    ];
    all.into_iter().flatten().collect()
}

/// What the project set itself, in the same order.
pub(crate) fn targets() -> Vec<Target> {
    let all = [
        cancel::targets(),
        fresh_task::targets(),
        churn::targets(),
        postpone::targets(),
        timeout::targets(),
        herd::targets(),
        fire::targets(),
    ];
    all.into_iter().flatten().collect()
}
