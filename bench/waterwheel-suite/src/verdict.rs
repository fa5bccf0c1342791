//! The verdict on a target.

use serde::{Deserialize, Serialize};
use waterwheel_bench_kit::Spread;

/// A target, the measured figure, and whether the target is met.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The title of the table.
    pub title: String,
    /// The metric of that table.
    pub metric: String,
    /// The contestant that should meet the target.
    pub of: String,
    /// The target, in words.
    pub wanted: String,
    /// The ratio, difference or figure that `wanted` describes; `None` if the run has no such table or contestant.
    pub measured: Option<Spread>,
    /// The verdict on the median; for a count that must be 0, on the greatest value.
    pub outcome: Outcome,
}

/// The outcome of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Measured, and met.
    Pass,
    /// Measured, but not met.
    Miss,
    /// The workload did not run at this size, or a contestant was missing.
    NotRun,
    /// Timers of one of the compared contestants fired early or never, or a sample of it failed: such a figure is meaningless.
    Void,
}
