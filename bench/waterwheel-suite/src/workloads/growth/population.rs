//! Arm + cancel, with ever more timers pending beside: one task makes a sleep, polls it and drops it.
//!
//! The others are due evenly at random in one to three hours and the measured one in two, so that it is never the
//! earliest of all (what it costs then is in `cancel`).

use std::ops::Range;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_bench_kit::random;
use waterwheel_suite::{Metric, Sample};

use super::climb::{self, Climb};
use crate::contestant::{Sleeps, Start};
use crate::engine::{self, Load};
use crate::operation::{Operation, arm};
use crate::ring::Ring;
use crate::workload::Workload;

const POPULATIONS: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const METRICS: &[Metric] = &[
    Metric::lower("1000 pending", "ns"),
    Metric::lower("10000 pending", "ns"),
    Metric::lower("100000 pending", "ns"),
    Metric::lower("1000000 pending", "ns"),
    Metric::lower("10000000 pending", "ns"),
];
const MEASURED: Duration = Duration::from_secs(2 * 3600);
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

impl Climb for Population {
    fn steps<S: Sleeps>(self, start: impl Start<S>) -> Vec<Sample> {
        let step = |&held: &usize| {
            let load = Load {
                threads: 1,
                held,
                quick: self.quick,
            };
            engine::sample(load, start, |sleeps, seed| ArmAndCancel {
                sleeps,
                others: Ring::new(),
                random: Rng::with_seed(seed),
            })
        };
        POPULATIONS[..self.points].iter().map(step).collect()
    }
}

/// What `growth: threads` does as well, with none beside.
pub(super) struct ArmAndCancel<S: Sleeps> {
    pub(super) sleeps: S,
    pub(super) others: Ring<S::Sleep>,
    pub(super) random: Rng,
}

impl<S: Sleeps> Operation for ArmAndCancel<S> {
    fn once(&mut self, context: &mut Context<'_>) {
        arm(pin!(self.sleeps.sleep(MEASURED)), context);
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        let delay = random::duration(&mut self.random, OTHERS);
        arm(self.others.add(self.sleeps.sleep(delay)), context);
    }
}
