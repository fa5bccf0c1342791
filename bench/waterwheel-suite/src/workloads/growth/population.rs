//! Arm + cancel, with ever more other timers pending: one task makes a sleep, polls it and drops it.
//!
//! The others are due at random, evenly distributed over one to three hours, and the measured one in two, so that
//! it is never the earliest of all (`cancel` has the cost of that case).

use std::ops::Range;
use std::time::Duration;

use waterwheel_suite::{Metric, Sample};

use super::super::cancel::Cancel;
use super::climb;
use crate::contestant::{Measure, Sleeps, Start};
use crate::engine::{self, Load};
use crate::workload::Workload;

const POPULATIONS: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const METRICS: &[Metric] = &[
    Metric::lower("1000 pending", "ns"),
    Metric::lower("10000 pending", "ns"),
    Metric::lower("100000 pending", "ns"),
    Metric::lower("1000000 pending", "ns"),
    Metric::lower("10000000 pending", "ns"),
];
/// The delay of the measured sleep, in seconds.
const MEASURED: u64 = 2 * 3600;
const OTHERS: Range<Duration> = Duration::from_secs(3600)..Duration::from_secs(3 * 3600);

pub(super) fn workload(quick: bool) -> Workload {
    let points = if quick { 3 } else { POPULATIONS.len() };
    climb::workload(
        "population",
        "arm + cancel, 1 thread".to_owned(),
        &METRICS[..points],
        Population { points, quick },
    )
}

#[derive(Clone, Copy)]
struct Population {
    points: usize,
    quick: bool,
}

impl Measure for Population {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let step = |&held: &usize| {
            let load = Load::new(1, held, self.quick);
            engine::sample(load, start, arm_and_cancel)
        };
        climb::joined(POPULATIONS[..self.points].iter().map(step))
    }
}

/// The operation that `growth: threads` repeats as well.
pub(super) fn arm_and_cancel<S: Sleeps>(sleeps: S, seed: u64) -> Cancel<S, MEASURED> {
    Cancel::beside(sleeps, OTHERS, seed)
}
