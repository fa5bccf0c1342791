//! Arm + cancel by ever more threads: each task makes a sleep, polls it and drops it, while ten thousand are
//! pending.
//!
//! The runtime has as many workers as there are tasks (at least two). Beyond the number of processors they take turns,
//! and a lock may be held by a thread that is not running. The figure is the throughput of all together: if nothing is
//! shared it grows with the processors and then stays.

use std::sync::LazyLock;
use std::thread;

use waterwheel_suite::{Better, Metric, Sample};

use super::climb;
use super::population::arm_and_cancel;
use crate::contestant::{Measure, Sleeps, Start};
use crate::engine::{self, Load};
use crate::workload::Workload;

/// 1, 2, 3, 4, 6, 8, 12, … up to twice the processors.
static THREADS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let most = 2 * thread::available_parallelism().map_or(1, usize::from);
    let doubled = |base: usize| std::iter::successors(Some(base), |n| Some(n * 2));
    let mut threads: Vec<usize> = [1, 3]
        .into_iter()
        .flat_map(|base| doubled(base).take_while(|&n| n <= most))
        .collect();
    threads.sort_unstable();
    threads
});
static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let metric = |threads: &usize| Metric {
        name: if *threads == 1 {
            "1 thread".into()
        } else {
            format!("{threads} threads").into()
        },
        unit: "million/s".into(),
        better: Better::Higher,
    };
    THREADS.iter().map(metric).collect()
});
const HELD: usize = 10_000;

pub(super) fn workload(quick: bool) -> Workload {
    let work = "arm + cancel, all threads together".to_owned();
    climb::workload("threads", work, &METRICS, Threads { quick })
}

#[derive(Clone, Copy)]
struct Threads {
    quick: bool,
}

impl Measure for Threads {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let step = |&threads: &usize| {
            let load = Load::new(threads, HELD, self.quick);
            engine::measure(load, start, arm_and_cancel, engine::throughput)
        };
        climb::joined(THREADS.iter().map(step))
    }
}
