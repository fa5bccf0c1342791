//! `cancel`: makes a 30 s sleep, polls it once to `Pending` with the task's own context, and drops it.
//!
//! This runs in 1 or 2 tasks, with 0 or 100 k other timers pending, which the tasks share. These are due at random, evenly
//! distributed over 10 to 70 s from now: a third of them before the measured sleep. So with them the sleep is never the
//! earliest, and without them it always is.
//!
//! With one task and others pending, no target names tokio's default timer. Such targets used to be 3.5 and 2.5 times, for a separate timer and the
//! runtime's. tokio does not wake its driver then, and the floors are only 1.6 to 2.1 and 1.4 to 1.9 times better.

use std::ops::Range;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_bench_kit::random;
use waterwheel_suite::{Sample, Target, Want};

use crate::alt_timer;
use crate::contestant::{Floor, Measure, Sleeps, Start, Tokio, everyone};
use crate::engine::{self, Load};
use crate::operation::{LONG, Operation, TIME, arm};
use crate::ring::Ring;
use crate::targets::{both_beat, of_own};
use crate::workload::Workload;

/// The number of threads, and of other pending timers.
const SIZES: [(usize, usize); 4] = [(1, 0), (1, 100_000), (2, 0), (2, 100_000)];
const SECONDS: u64 = LONG.as_secs();
const OTHERS: Range<Duration> = Duration::from_secs(10)..Duration::from_secs(70);

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let workload = |(threads, held)| {
        let load = Load::new(threads, held, quick);
        load.workload(title(threads, held), everyone(Measured(load)))
    };
    SIZES.map(workload).into()
}

pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    for (threads, held) in SIZES {
        let title = title(threads, held);
        let beat = |than, times| both_beat(than, &title, TIME, times);
        if threads == 2 {
            targets.extend(beat(Tokio::NAME, [6.0, 4.0]));
            let (from, at_most) = (self::title(1, held), 1.15);
            targets.push(of_own(&title, TIME, Want::Grows { from, at_most }));
        } else {
            if held == 0 {
                targets.extend(beat(Tokio::NAME, [3.5, 2.5]));
            }
            let share = Want::share(Floor::<false>::NAME, 1.65);
            targets.push(of_own(&title, TIME, share));
        }
        targets.extend(beat(alt_timer::NAME, [2.0, 1.5]));
    }
    targets
}

fn title(threads: usize, held: usize) -> String {
    format!("cancel, {}, {held} pending", engine::threads(threads))
}

#[derive(Clone, Copy)]
pub(super) struct Measured(pub(super) Load);

impl Measure for Measured {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        engine::sample(self.0, start, Cancel::<S, SECONDS>::new)
    }
}

/// Makes a sleep of this many seconds, polls it and drops it, while others are pending that are due at random around it.
pub(super) struct Cancel<S: Sleeps, const SECONDS: u64> {
    sleeps: S,
    others: Ring<S::Sleep>,
    due: Range<Duration>,
    random: Rng,
}

impl<S: Sleeps, const SECONDS: u64> Cancel<S, SECONDS> {
    pub(super) fn new(sleeps: S, seed: u64) -> Self {
        Self::beside(sleeps, OTHERS, seed)
    }

    /// An operation with other timers that are due within this range.
    pub(super) fn beside(sleeps: S, due: Range<Duration>, seed: u64) -> Self {
        Self {
            sleeps,
            others: Ring::new(),
            due,
            random: Rng::with_seed(seed),
        }
    }
}

impl<S: Sleeps, const SECONDS: u64> Operation for Cancel<S, SECONDS> {
    fn once(&mut self, context: &mut Context<'_>) {
        arm(
            pin!(self.sleeps.sleep(Duration::from_secs(SECONDS))),
            context,
        );
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        let delay = random::duration(&mut self.random, self.due.clone());
        arm(self.others.add(self.sleeps.sleep(delay)), context);
    }
}
