//! The common parts of the four curves: the contestants, and a row from one sample for each step.

use waterwheel_suite::{Absent, Metric, Sample};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Measure, Own, PINGORA, Sleeps, Tokio, Watched, entrant,
};
use crate::workload::Workload;

pub(crate) const NAME: &str = "growth";

/// The table of one curve.
pub(super) fn workload(
    what: &str,
    work: String,
    metrics: &'static [Metric],
    climb: impl Measure,
) -> Workload {
    Workload {
        title: format!("{NAME}: {what}"),
        work,
        metrics,
        entrants: vec![
            entrant(climb, || Tokio),
            entrant(climb, Own::<Watched>::start),
            entrant(climb, || Current),
        ],
        absent: [PINGORA, AsyncIo::NAME, FuturesTimer::NAME]
            .map(|name| Absent::new(name, "at two sizes it is in `cancel`, at three in `churn`"))
            .into(),
    }
}

/// Joins samples of one value each.
pub(super) fn joined(steps: impl IntoIterator<Item = Sample>) -> Sample {
    let mut all = Sample::default();
    for step in steps {
        all.values.extend(step.values);
        all.early += step.early;
        all.lost += step.lost;
        all.retaken += step.retaken;
    }
    all
}
