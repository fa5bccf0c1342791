//! A table: one workload, its contestants, and every sample of them.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use waterwheel_bench_kit::Spread;

/// The result of one workload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// The workload and its size, which filters and targets refer to.
    pub title: String,
    /// The work, in one line.
    pub work: String,
    /// The metrics, one for each value of a sample.
    pub metrics: Vec<Metric>,
    /// The contestants. The others are compared with the first.
    pub series: Vec<Series>,
    /// The contestants that cannot take part.
    pub absent: Vec<Absent>,
    /// How long all its rounds took.
    pub seconds: f64,
    /// Samples that ended without a result.
    pub failures: Vec<Failure>,
}

/// A sample that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The contestant.
    pub name: String,
    /// The fault, in words.
    pub why: String,
}

/// A contestant that is not in a table, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// The contestant.
    pub name: Cow<'static, str>,
    /// The reason for its absence.
    pub why: Cow<'static, str>,
}

/// A column of figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// The name of the metric, which targets refer to.
    pub name: Cow<'static, str>,
    /// Its unit: `ns`, `us`, `ms`, `bytes`, `calls/s`, …
    pub unit: Cow<'static, str>,
    /// Which direction is better.
    pub better: Better,
}

/// The better of two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Better {
    /// The greater one: a throughput.
    Higher,
    /// The smaller one: a cost.
    Lower,
}

/// All samples of one contestant, by round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// The contestant.
    pub name: Cow<'static, str>,
    /// One sample for each round.
    pub samples: Vec<Sample>,
    /// The spread of each metric over the rounds, for readers of the file: the suite itself uses the samples.
    #[serde(default)]
    pub spreads: Vec<Spread>,
}

/// The result of one contestant in one round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// A value for each metric of the table, NaN if there is none (`null` in the file).
    #[serde(deserialize_with = "null_is_nan")]
    pub values: Vec<f64>,
    /// Timers that fired before their deadline.
    pub early: u64,
    /// Timers that never fired.
    pub lost: u64,
    /// How often the sample was discarded and taken again.
    pub retaken: u64,
    /// Results that are lines instead of figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

/// A named line, for instance the lateness in µs (`x`) that a share of the timers (`y`) stays below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The label of the line, the same in all samples of a table.
    pub name: Cow<'static, str>,
    /// The points from left to right, as (x, y).
    pub points: Vec<(f64, f64)>,
}

impl Table {
    /// The index of a metric in each sample's values.
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }

    /// The samples of one contestant.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// How many times better `this` is than `other` in a metric: the median of the rounds' ratios.
    ///
    /// The two samples of one round were taken within seconds of each other. The median of the ratios differs from the
    /// ratio of the medians, and suffers less from the drift of a machine.
    pub fn times_better(&self, this: &Series, other: &Series, metric: usize) -> Spread {
        let better = self.metrics[metric].better;
        paired(this, other, metric, |this, other| better.times(this, other))
    }

    /// How much more `this` takes than `other` in a metric: the median of the rounds' differences.
    pub fn more(&self, this: &Series, other: &Series, metric: usize) -> Spread {
        paired(this, other, metric, |this, other| this - other)
    }

    /// The number of timers that fired early or never, of all contestants, and of samples that failed.
    pub fn faults(&self) -> u64 {
        let failures = self.failures.len() as u64;
        failures + self.series.iter().map(Series::faults).sum::<u64>()
    }
}

fn paired(a: &Series, b: &Series, metric: usize, figure: impl Fn(f64, f64) -> f64) -> Spread {
    let pairs = a.samples.iter().zip(&b.samples);
    Spread::of(
        pairs
            .map(|(a, b)| figure(a.values[metric], b.values[metric]))
            .collect(),
    )
}

impl Sample {
    /// A sample without faults.
    pub fn of(values: Vec<f64>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }
}

impl Absent {
    /// An absent contestant, and the reason.
    pub const fn new(name: &'static str, why: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            why: Cow::Borrowed(why),
        }
    }
}

impl Metric {
    /// A cost: less is better.
    pub const fn lower(name: &'static str, unit: &'static str) -> Self {
        Self::new(name, unit, Better::Lower)
    }

    /// A throughput: more is better.
    pub const fn higher(name: &'static str, unit: &'static str) -> Self {
        Self::new(name, unit, Better::Higher)
    }

    const fn new(name: &'static str, unit: &'static str, better: Better) -> Self {
        Self {
            name: Cow::Borrowed(name),
            unit: Cow::Borrowed(unit),
            better,
        }
    }
}

impl Better {
    /// How many times better `this` is than `other`: above 1 it is better, below 1 worse.
    pub fn times(self, this: f64, other: f64) -> f64 {
        match self {
            Self::Higher => this / other,
            Self::Lower => other / this,
        }
    }
}

impl Series {
    /// A series that has no samples yet.
    pub fn new(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            samples: Vec::new(),
            spreads: Vec::new(),
        }
    }

    /// The spread of one metric over the rounds.
    pub fn spread(&self, metric: usize) -> Spread {
        let values = self.samples.iter().map(|sample| sample.values[metric]);
        Spread::of(values.collect())
    }

    /// The sum of one of the counts, over the rounds.
    pub fn count(&self, of: impl Fn(&Sample) -> u64) -> u64 {
        self.samples.iter().map(of).sum()
    }

    /// The number of timers that fired early or never.
    pub fn faults(&self) -> u64 {
        self.count(|sample| sample.early + sample.lost)
    }
}

/// JSON has no NaN.
fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
}
