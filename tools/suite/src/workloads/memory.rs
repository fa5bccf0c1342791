//! `memory`: the heap that a pending sleep takes, in a box as tasks keep it: the future, and what the timer notes down
//! of it.
//!
//! Each sample is taken by another program, `heap.rs`, whose allocator counts. The bytes are those that were asked for;
//! *resident* is what the system gave: more than that, since an allocator rounds up and has a header for each block, and
//! since a thread's part of the heap is not given back.
//!
//! waterwheel keeps its records in a slab for each worker, which has room to spare whenever it has just grown. So the
//! bytes of a sleep depend on the population: *room* tells for how many times the sleeps the slabs have place (to a
//! hundredth; 1 for those who allocate sleep by sleep, and no figure for tokio, whose sleep is larger instead and has
//! nothing beside it). Two of the three populations are chosen to stand on either side of a power of two a worker.
//! While a slab grows, it is there twice if the system cannot extend it in its place; for blocks of this size Linux
//! moves pages and copies nothing, and *peak* counts it once. Room that was never written to is not *resident*.
//!
//! One round: nothing here varies but by a few kilobytes.

use waterwheel_suite::{Metric, Sample, Target, Want};

use crate::contestant::{Measure, Sleeps, Start, everyone};
use crate::process::Program;
use crate::targets::of_both;
use crate::workload::Workload;

pub(crate) const NAME: &str = "memory";
pub(crate) const ROUNDS: usize = 1;

const LIVE: &str = "live heap, future + entry";
const METRICS: &[Metric] = &[
    Metric::lower(LIVE, "bytes"),
    Metric::lower("live heap, entry alone", "bytes"),
    Metric::lower("room, times the sleeps", "x"),
    Metric::lower("kept when all are dropped", "bytes"),
    Metric::lower("peak heap", "bytes"),
    Metric::lower("resident", "bytes"),
];
const POPULATIONS: &[usize] = &[600_000, 1_000_000, 1_100_000];
const HEAP: &str = env!("CARGO_BIN_EXE_heap");

fn title(sleeps: usize) -> String {
    format!("{NAME}, {sleeps} timers")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let populations = if quick { &[60_000] } else { POPULATIONS };
    let workload = |&sleeps| Workload {
        title: title(sleeps),
        work: "all pending, each figure a timer".to_owned(),
        metrics: METRICS,
        entrants: everyone(Memory { sleeps }),
        absent: Vec::new(),
    };
    populations.iter().map(workload).collect()
}

pub(crate) fn targets() -> Vec<Target> {
    POPULATIONS
        .iter()
        .flat_map(|&sleeps| of_both(&title(sleeps), LIVE, Want::AtMost(80.0)))
        .collect()
}

#[derive(Clone, Copy)]
struct Memory {
    sleeps: usize,
}

impl Measure for Memory {
    fn sample<S: Sleeps>(self, _: impl Start<S>) -> Sample {
        let program = Program::new(HEAP.into(), false);
        let sample = program.sample(&self.sleeps.to_string(), S::NAME);
        sample.unwrap_or_else(|error| panic!("{HEAP}: {error}"))
    }
}
