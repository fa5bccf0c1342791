//! What the four curves have in common: the contestants, and a row made of one sample for each step.

use waterwheel_suite::{Absent, Metric, Sample};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Own, PINGORA, Sleeps, Start, Tokio, Watched,
};
use crate::entrant::Entrant;
use crate::workload::Workload;

pub(crate) const NAME: &str = "growth";

/// Takes one point of the curve after the other.
pub(super) trait Climb: Copy + 'static {
    fn steps<S: Sleeps>(self, start: impl Start<S>) -> Vec<Sample>;
}

/// The table of one curve.
pub(super) fn workload(
    what: &str,
    work: String,
    metrics: &'static [Metric],
    climb: impl Climb,
) -> Workload {
    Workload {
        title: format!("{NAME}: {what}"),
        work,
        metrics,
        entrants: vec![
            entrant(|| Tokio, climb),
            entrant(Own::<Watched>::start, climb),
            entrant(|| Current, climb),
        ],
        absent: [PINGORA, AsyncIo::NAME, FuturesTimer::NAME]
            .map(|name| Absent::new(name, "at two sizes it is in `cancel`, at three in `churn`"))
            .into(),
    }
}

fn entrant<S: Sleeps>(start: impl Start<S>, climb: impl Climb) -> Entrant {
    Entrant::new(S::NAME, move || joined(climb.steps(start)))
}

/// One sample of them all, each of which has one value.
fn joined(steps: Vec<Sample>) -> Sample {
    let mut all = Sample::default();
    for step in steps {
        all.values.extend(step.values);
        all.early += step.early;
        all.lost += step.lost;
        all.retaken += step.retaken;
    }
    all
}
