//! The verdict on a target.

use serde::{Deserialize, Serialize};

/// A target, what was measured, and whether it is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// Title of the table.
    pub title: String,
    /// The metric of that table.
    pub metric: String,
    /// The contestant that is to reach the target.
    pub of: String,
    /// What is wanted, in words.
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

/// The middle of the rounds, and their ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle.
    #[serde(deserialize_with = "null_is_nan")]
    pub median: f64,
    /// The least.
    #[serde(deserialize_with = "null_is_nan")]
    pub min: f64,
    /// The greatest.
    #[serde(deserialize_with = "null_is_nan")]
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self {
            median: f64::midpoint(low, high),
            min: values[0],
            max: values[values.len() - 1],
        }
    }
}

fn null_is_nan<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
