//! `memory`: the heap that a pending sleep takes, boxed as tasks hold it: the future, and the timer's own data for it.
//!
//! Each sample is taken by another program, `heap.rs`, whose allocator counts the requested bytes. *Resident* is the
//! memory from the system, which is more: an allocator rounds up, has a header for each block, and does not return a
//! thread's part of the heap.
//!
//! waterwheel keeps its entries in one slab per worker, which has free places after it has grown. So the bytes per sleep
//! depend on the population. *Room* is how many times as many sleeps the slabs have places for, to a hundredth. It is 1
//! for contestants that allocate for each sleep; tokio has no figure, since all its data is in its larger sleep. Two of
//! the three populations are on either side of a power of two per worker. A growing slab exists twice if the system cannot
//! extend it in place; Linux moves pages of blocks of this size and copies nothing, and *peak* counts them once. Room that
//! was never written to is not *resident*.
//!
//! One round: the figures only vary by a few kilobytes.

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
