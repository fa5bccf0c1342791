//! `growth`: what happens to the cost when something else grows. A cliff would show here.
//!
//! | table | what grows | in steps |
//! |:--|:--|:--|
//! | `growth: population` | timers that are pending throughout | 1 k … 10 M |
//! | `growth: threads` | threads that arm and cancel | 1 … twice the processors |
//! | `growth: share that fires` | timers that are left to fire | 0 … 100 % |
//! | `growth: delay spread` | how far apart the deadlines are | all equal … 1 ms to 30 days |
//!
//! Each step is a metric of the table, so that a row is a curve and a sample of it has all its points.

mod fired;
mod population;
mod spread;
mod threads;

use waterwheel_suite::{Absent, Metric, Sample};

use crate::contestant::{Ambient, AsyncIo, FuturesTimer, Own, PINGORA, Sleeps, Start, Tokio};
use crate::entrant::Entrant;
use crate::workloads::Workload;

pub(crate) const NAME: &str = "growth";
/// Each has many samples in it.
pub(crate) const ROUNDS: usize = 5;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    vec![
        population::workload(quick),
        threads::workload(quick),
        fired::workload(quick),
        spread::workload(quick),
    ]
}

/// Takes one point of the curve after the other.
trait Climb: Copy + 'static {
    fn steps<S: Sleeps>(self, start: impl Start<S>) -> Vec<Sample>;
}

fn workload(what: &str, work: String, metrics: &'static [Metric], climb: impl Climb) -> Workload {
    Workload {
        title: format!("{NAME}: {what}"),
        work,
        metrics,
        entrants: vec![
            entrant(Tokio::start, climb),
            entrant(Own::<true>::start, climb),
            entrant(Ambient::start, climb),
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
