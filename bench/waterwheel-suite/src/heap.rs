//! The heap that pending sleeps take: the program that the suite's `memory` workload starts instead of the suite itself.
//!
//! ```text
//! heap --sample SLEEPS CONTESTANT
//! ```
//!
//! This is a separate program, since a counting allocator adds some nanoseconds to each allocation, which would affect
//! every figure of the suite. It prints the sample like the suite's own child processes.

#![forbid(unsafe_code)]
#![expect(
    dead_code,
    unused_imports,
    reason = "shares the suite's modules and needs a part of each"
)]

mod contestant;
mod crew;
mod crowd;
mod entrant;
mod operation;
mod stage;

use std::alloc::System;
use std::mem::size_of;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use cap::Cap;
use clap::Parser;
use waterwheel_bench_kit::machine::resident;
use waterwheel_suite::Sample;

use contestant::{Measure, Sleeps, Start, everyone};
use crowd::Crowd;
use stage::Stage;

/// An allocator with no limit: only the count is used. It counts the requested bytes, without those that the
/// system's allocator adds to each allocation.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const DELAYS: Range<Duration> = Duration::from_secs(3600)..Duration::from_secs(2 * 3600);
/// The memory of a sleep in the list that holds it.
const IN_THE_LIST: usize = size_of::<usize>();
/// The sleeps are increased by a hundredth at a time, until the contestant's memory grows.
const STEPS: usize = 100;

#[derive(Parser)]
struct Flags {
    /// How many sleeps, and the contestant
    #[arg(long, num_args = 2, required = true)]
    sample: Vec<String>,
}

fn main() -> ExitCode {
    match sample(&Flags::parse().sample) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("heap: {message}");
            ExitCode::from(2)
        }
    }
}

fn sample(arguments: &[String]) -> Result<String, String> {
    let [sleeps, name] = arguments else {
        return Err("not `heap --sample SLEEPS CONTESTANT`".to_owned());
    };
    let sleeps = sleeps
        .parse()
        .map_err(|error| format!("{sleeps:?}, for SLEEPS: {error}"))?;
    let entrant = everyone(Heap { sleeps })
        .into_iter()
        .find(|entrant| entrant.name == name)
        .ok_or_else(|| format!("no contestant {name:?}"))?;
    serde_json::to_string(&entrant.sample()).map_err(|error| error.to_string())
}

#[derive(Clone, Copy)]
struct Heap {
    sleeps: usize,
}

impl Measure for Heap {
    /// The values, in the order of the metrics of `memory`.
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let stage = Stage::new();
        let sleeps = stage.run(async move { start() });
        // The first sleep on each worker allocates threads, shards and queues, which are not counted.
        arm(&stage, &sleeps, &mut Crowd::room_for(2));

        let mut crowd = Crowd::room_for(self.sleeps);
        let before = (HEAP.allocated(), resident());
        arm(&stage, &sleeps, &mut crowd);
        let live = self.of_one(HEAP.allocated(), before.0);
        let peak = self.of_one(HEAP.max_allocated(), before.0);
        // The list has its capacity from the start, but its pages only where it has been written.
        let list = self.sleeps * IN_THE_LIST;
        let resident = self.of_one(resident(), before.1 + list);
        drop(crowd);
        let kept = self.of_one(HEAP.allocated() + list, before.0);
        let room = self.room(&stage, &sleeps);
        Sample::of(vec![
            live,
            live - size_of::<S::Sleep>() as f64,
            room,
            kept,
            peak,
            resident,
        ])
    }
}

impl Heap {
    /// The number of bytes per sleep.
    fn of_one(self, after: usize, before: usize) -> f64 {
        after.saturating_sub(before) as f64 / self.sleeps as f64
    }

    /// How many times as many sleeps there is room for, until the memory beyond their boxes grows; 1 if that grows with
    /// every few sleeps, NaN if it has not grown with twice as many.
    fn room<S: Sleeps>(self, stage: &Stage, sleeps: &S) -> f64 {
        let step = self.sleeps / STEPS;
        // The box and the entry in the list.
        let one = size_of::<S::Sleep>() + IN_THE_LIST;
        let mut crowds = Vec::with_capacity(1 + STEPS);
        let before = HEAP.allocated();
        let mut beside = |count: usize| {
            let mut crowd = Crowd::room_for(count);
            arm(stage, sleeps, &mut crowd);
            crowds.push(crowd);
            let boxes = step * (STEPS + crowds.len() - 1) * one;
            (HEAP.allocated() - before).saturating_sub(boxes)
        };
        let mut last = beside(step * STEPS);
        for more in 1..=STEPS {
            let now = beside(step);
            // More than the two arming tasks, which the wakers keep alive, and less than any entry.
            if now > last + step * 4 {
                return 1.0 + (more - 1) as f64 / STEPS as f64;
            }
            last = now;
        }
        f64::NAN
    }
}

fn arm<S: Sleeps>(stage: &Stage, sleeps: &S, crowd: &mut Crowd<S::Sleep>) {
    crowd.arm(stage, sleeps, &DELAYS);
}
