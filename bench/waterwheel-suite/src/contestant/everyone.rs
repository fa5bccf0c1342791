//! All contestants that can sleep, in the order of the report.

use waterwheel_suite::Sample;

use super::{AsyncIo, Current, Floor, FuturesTimer, Own, Sleeps, Tokio, Watched, pingora};
use crate::entrant::Entrant;

/// Starts a contestant: called once per sample, on a worker.
pub(crate) trait Start<S>: Fn() -> S + Copy + Send + 'static {}

impl<S, F: Fn() -> S + Copy + Send + 'static> Start<S> for F {}

/// Takes a workload's sample of any contestant that can sleep.
pub(crate) trait Measure: Copy + 'static {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample;
}

/// An entrant for each contestant.
pub(crate) fn everyone(measure: impl Measure) -> Vec<Entrant> {
    vec![
        entrant(measure, || Tokio),
        entrant(measure, Own::<Watched>::start),
        entrant(measure, || Current),
        entrant(measure, pingora),
        entrant(measure, || AsyncIo),
        entrant(measure, || FuturesTimer),
        entrant(measure, Floor::<false>::start),
        entrant(measure, Floor::<true>::start),
    ]
}

/// An entrant for one contestant, possibly one that is only in a few workloads.
pub(crate) fn entrant<S: Sleeps>(measure: impl Measure, start: impl Start<S>) -> Entrant {
    Entrant::new(S::NAME, move || measure.sample(start))
}
