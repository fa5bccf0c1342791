//! The measurements of one round of a row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The figures of a round, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) values: BTreeMap<String, f64>,
    /// Lateness in µs, and the share of the timers that are no later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) curves: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Sample {
    pub(crate) fn set(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}
