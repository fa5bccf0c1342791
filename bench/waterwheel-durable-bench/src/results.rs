//! The file that a run writes.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use waterwheel_bench_kit::{Spread, read_json, write_json};

use crate::conditions::Conditions;
use crate::sample::Sample;

/// All results of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) conditions: Conditions,
    pub(crate) rows: Vec<Measured>,
    pub(crate) seconds: f64,
}

/// The rounds of a row.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) row: String,
    pub(crate) samples: Vec<Sample>,
    /// The reasons why rounds have failed.
    pub(crate) failures: Vec<String>,
}

impl Results {
    pub(crate) fn read(path: &Path) -> io::Result<Results> {
        read_json(path)
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        write_json(path, self)
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Measured> {
        self.rows.iter().find(|it| it.row == name)
    }

    /// The values that `figure` computes from each round of a row. `None` if there is none.
    pub(crate) fn spread(
        &self,
        row: &str,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of_finite(self.row(row)?.samples.iter().filter_map(figure))
    }

    /// The values that `figure` computes from each round of a row and the neighbouring round of another row.
    pub(crate) fn spread_beside(
        &self,
        row: &str,
        other: &str,
        figure: impl Fn(&Sample, &Sample) -> Option<f64>,
    ) -> Option<Spread> {
        let (row, other) = (self.row(row)?, self.row(other)?);
        // After a failure, it is unknown which rounds were neighbours.
        if !row.failures.is_empty() || !other.failures.is_empty() {
            return None;
        }
        let pairs = row.samples.iter().zip(&other.samples);
        Spread::of_finite(pairs.filter_map(|(sample, other)| figure(sample, other)))
    }

    /// The faults that do not depend on the machine.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for Measured {
            row,
            samples,
            failures,
        } in &self.rows
        {
            faults.extend(failures.iter().map(|why| format!("{row}: {why}")));
            for sample in samples {
                for fault in ["early", "lost", "twice", "commits without a sync"] {
                    let count = sample.value(fault).unwrap_or(0.0);
                    if count > 0.0 {
                        faults.push(format!("{row}: {count} {fault}"));
                    }
                }
            }
        }
        faults
    }
}
