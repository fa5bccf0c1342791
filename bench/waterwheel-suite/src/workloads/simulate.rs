//! `simulate`: the cost of a one-millisecond sleep on a paused clock, where time jumps from one to the next. Simulators
//! such as turmoil depend on it, and so do tests in virtual time. In the row `own, manual clock` the time does not jump
//! by itself: the program moves a `ManualClock` to the next deadline, step by step, and lets the tasks run in between.
//!
//! - *1 sleep* per `block_on`, over and over, as a simulator steps its hosts.
//! - *50 tasks* that sleep over and over, all at the same milliseconds, under the `block_on` of a long sleep.
//!
//! Each sample is taken by another program, the package `bench/waterwheel-paused-clock`: its build has tokio's feature `test-util`, with
//! which every clock may be paused, and each read of it costs more. Services are not built like that, nor are the other workloads. Tests
//! are usually built without optimisation, so the program is built in the profile `dev` as well.

use waterwheel_suite::{Absent, Metric, Target, Want};

use crate::alt_timer;
use crate::cargo;
use crate::contestant::{Current, Own, Sleeps, Tokio, Watched};
use crate::entrant::Entrant;
use crate::process::Program;
use crate::targets::of_both;
use crate::workload::Workload;

pub(crate) const NAME: &str = "simulate";

/// A `Timer` with its own clock.
const BY_HAND: &str = "own, manual clock";
const CPU: &str = "CPU a sleep";
const METRICS: &[Metric] = &[Metric::lower(CPU, "ns")];

const ALT_TIMER_NEEDS_WORKERS: &str =
    "it needs the multi-thread runtime, whose clock cannot be paused";

#[derive(Clone, Copy)]
struct Size {
    title: &'static str,
    work: &'static str,
    /// The folder of cargo's profile.
    folder: &'static str,
    /// The number of tasks. `None` for one sleep per `block_on`.
    tasks: usize,
    /// The maximum cost, in multiples of tokio's.
    at_most: f64,
}

const ONE: Size = Size {
    title: "simulate, 1 sleep",
    work: "a clock that is paused, 1 ms a block_on",
    folder: "release",
    tasks: 0,
    at_most: 1.2,
};
const TASKS: Size = Size {
    title: "simulate, 50 tasks",
    work: "a clock that is paused, 1 ms over and over",
    tasks: 50,
    at_most: 1.05,
    ..ONE
};
const SIZES: [Size; 4] = [
    ONE,
    TASKS,
    Size {
        title: "simulate, 1 sleep, profile dev",
        work: "a clock that is paused, 1 ms a block_on, not optimised",
        folder: "debug",
        at_most: 1.6,
        ..ONE
    },
    Size {
        title: "simulate, 50 tasks, profile dev",
        work: "a clock that is paused, 1 ms over and over, not optimised",
        folder: "debug",
        at_most: 1.5,
        ..TASKS
    },
];

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let workload = |size: Size| Workload {
        title: size.title.to_owned(),
        work: size.work.to_owned(),
        metrics: METRICS,
        entrants: [Tokio::NAME, Own::<Watched>::NAME, Current::NAME, BY_HAND]
            .map(|name| size.entrant(name, quick))
            .into(),
        absent: vec![Absent::new(alt_timer::NAME, ALT_TIMER_NEEDS_WORKERS)],
    };
    SIZES.map(workload).into()
}

pub(crate) fn targets() -> Vec<Target> {
    let target = |size: Size| of_both(size.title, CPU, Want::share(Tokio::NAME, size.at_most));
    SIZES.into_iter().flat_map(target).collect()
}

impl Size {
    fn entrant(self, name: &'static str, quick: bool) -> Entrant {
        Entrant::new(name, move || {
            let path = cargo::built(NAME, format!("{}/{NAME}", self.folder));
            let sample = Program::new(path.clone(), quick).sample(&self.tasks.to_string(), name);
            sample.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
    }
}

pub(crate) fn build() -> Result<(), String> {
    let package = ["--package", "waterwheel-paused-clock"];
    let features = ["--features", "paused-clock"];
    ["bench", "dev"].into_iter().try_for_each(|profile| {
        let profile = ["--profile", profile];
        cargo::build(NAME, &[package, features, profile].concat())
    })
}
