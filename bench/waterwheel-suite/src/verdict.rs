//! The verdict on a target.

use serde::{Deserialize, Serialize};
use waterwheel_bench_kit::Spread;

/// A target, what was measured, and whether it is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// Title of the table.
    pub title: String,
    /// The metric of that table.
    pub metric: String,
    /// The contestant that is to reach the target.
    pub of: String,
    /// The target, in words.
    pub wanted: String,
    /// A ratio, a difference or a figure, as `wanted` says; none if the run has no such table or contestant.
    pub measured: Option<Spread>,
    /// The median against what is wanted; of a count that is to be 0, the greatest.
    pub outcome: Outcome,
}

/// How a target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Reached.
    Pass,
    /// Measured, and not reached.
    Miss,
    /// The workload did not run at its size, or a contestant was not there.
    NotRun,
    /// Timers of one of the compared fired early or never, or a sample of it failed: such a figure means nothing.
    Void,
}
