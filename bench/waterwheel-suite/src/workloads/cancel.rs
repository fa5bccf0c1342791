//! `cancel`: make a 30 s sleep, poll it once to `Pending` with the task's own context, drop it.
//!
//! With 1 or 2 tasks at it, and with 0 or 100 k other timers pending, which the tasks hold between them. Those are due evenly
//! at random 10 to 70 s from now: a third of them before the sleep that is measured, so with them the sleep is never
//! the earliest, and without them it always is.
//!
//! With one task and others pending, no target names tokio's default timer. They were 3.5 and 2.5 times, own and the
//! runtime's. tokio does not wake its driver then, and the floors are 1.6 to 2.1 and 1.4 to 1.9 times better.

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
use crate::operation::{LONG, METRICS, Operation, TIME, arm};
use crate::ring::Ring;
use crate::targets::{both_beat, of_own};
use crate::workload::Workload;

/// Threads, and other timers pending.
const SIZES: [(usize, usize); 4] = [(1, 0), (1, 100_000), (2, 0), (2, 100_000)];
const OTHERS: Range<Duration> = Duration::from_secs(10)..Duration::from_secs(70);

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let workload = |(threads, held)| {
        let load = Load {
            threads,
            held,
            quick,
        };
        Workload {
            title: title(threads, held),
            work: load.work(),
            metrics: METRICS,
            entrants: everyone(Measured(load)),
            absent: Vec::new(),
        }
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
            let from = self::title(1, held);
            targets.push(of_own(
                &title,
                TIME,
                Want::Grows {
                    from,
                    at_most: 1.15,
                },
            ));
        } else {
            if held == 0 {
                targets.extend(beat(Tokio::NAME, [3.5, 2.5]));
            }
            let of = Floor::<false>::NAME;
            targets.push(of_own(&title, TIME, Want::Share { of, at_most: 1.65 }));
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
        engine::sample(self.0, start, |sleeps, seed| Cancel {
            sleeps,
            others: Ring::new(),
            random: Rng::with_seed(seed),
        })
    }
}

struct Cancel<S: Sleeps> {
    sleeps: S,
    others: Ring<S::Sleep>,
    random: Rng,
}

impl<S: Sleeps> Operation for Cancel<S> {
    fn once(&mut self, context: &mut Context<'_>) {
        arm(pin!(self.sleeps.sleep(LONG)), context);
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        let delay = random::duration(&mut self.random, OTHERS);
        arm(self.others.add(self.sleeps.sleep(delay)), context);
    }
}
