//! Interleaved rounds, and what is made of them.
//!
//! Every metric here is better when smaller. A ratio pairs the two samples of one round, which were taken within seconds of
//! each other; the median of the ratios is not the ratio of the medians, and stands the drift of a machine better.

use crate::contestant::{Contestant, Tokio};

/// What one contestant did in one round: a value for each metric of the workload (NaN where the system has none), and
/// the timers that broke the contract.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) values: Vec<f64>,
    pub(crate) early: u64,
    pub(crate) lost: u64,
    /// How often it was thrown away and taken again.
    pub(crate) retaken: u64,
}

/// A contestant and how to take one sample of it.
pub(crate) struct Entrant<'a> {
    name: &'static str,
    sample: Box<dyn FnMut() -> Sample + 'a>,
}

impl<'a> Entrant<'a> {
    /// Says how `name` is measured.
    pub(crate) fn new(name: &'static str, sample: impl FnMut() -> Sample + 'a) -> Self {
        Self {
            name,
            sample: Box::new(sample),
        }
    }
}

/// All samples of one contestant, by round.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) samples: Vec<Sample>,
}

/// The middle of the rounds, and their ends.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Takes the samples, A B C A B C ….
pub(crate) fn interleave(rounds: usize, mut entrants: Vec<Entrant<'_>>) -> Vec<Series> {
    let mut all: Vec<Series> = entrants
        .iter()
        .map(|e| Series {
            name: e.name,
            samples: Vec::new(),
        })
        .collect();
    for _ in 0..rounds {
        for (entrant, series) in entrants.iter_mut().zip(&mut all) {
            series.samples.push((entrant.sample)());
        }
    }
    all
}

/// How many times better than tokio, by metric; none for tokio itself.
pub(crate) fn against_tokio(all: &[Series], name: &str, metric: usize) -> Option<Spread> {
    let find = |name| all.iter().find(|series| series.name == name);
    let (tokio, other) = (find(Tokio::NAME)?, find(name)?);
    let pairs = tokio.samples.iter().zip(&other.samples);
    (name != Tokio::NAME).then(|| {
        Spread::of(
            pairs
                .map(|(tokio, other)| tokio.values[metric] / other.values[metric])
                .collect(),
        )
    })
}

impl Series {
    /// The spread of one metric over the rounds.
    pub(crate) fn spread(&self, metric: usize) -> Spread {
        Spread::of(
            self.samples
                .iter()
                .map(|sample| sample.values[metric])
                .collect(),
        )
    }

    /// One of the counts, over the rounds.
    pub(crate) fn count(&self, of: impl Fn(&Sample) -> u64) -> u64 {
        self.samples.iter().map(of).sum()
    }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self {
            median: f64::midpoint(low, high),
            min: values[0],
            max: values[values.len() - 1],
        }
    }
}
