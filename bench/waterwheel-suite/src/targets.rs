//! How a workload defines its targets, and how they are judged. They are verdicts, not gates.

use waterwheel_suite::{Table, Target, Verdict, Want};

use crate::contestant::{Current, Own, Sleeps, Watched};

/// A target for a separate timer.
pub(crate) fn of_own(title: &str, metric: &'static str, want: Want) -> Target {
    Target::new(title, metric, Own::<Watched>::NAME, want)
}

/// Targets for a separate timer and for the runtime's.
pub(crate) fn of_both(title: &str, metric: &'static str, want: Want) -> [Target; 2] {
    [Own::<Watched>::NAME, Current::NAME].map(|of| Target::new(title, metric, of, want.clone()))
}

/// How many times better than another contestant each must be: a separate timer, and the runtime's.
pub(crate) fn both_beat(
    than: &'static str,
    title: &str,
    metric: &'static str,
    [own, current]: [f64; 2],
) -> [Target; 2] {
    [(Own::<Watched>::NAME, own), (Current::NAME, current)]
        .map(|(of, at_least)| Target::new(title, metric, of, Want::times(than, at_least)))
}

/// A verdict on each target.
pub(crate) fn verdicts(targets: Vec<Target>, tables: &[Table]) -> Vec<Verdict> {
    let verdict = |target: Target| target.verdict(tables);
    targets.into_iter().map(verdict).collect()
}
