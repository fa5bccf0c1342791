//! `churn`: drops the oldest of a ring of pending 30 s sleeps, and makes and polls a new one in its place.
//!
//! A server whose every connection has a timeout works like this: the number of timers stays the same, and each ends
//! long before its time. Two tasks share the ring's sleeps. With a million sleeps, the operation finds none of its
//! data in the cache.

use std::task::Context;

use waterwheel_suite::{Sample, Target, Want};

use crate::alt_timer;
use crate::contestant::{Measure, PINGORA, Sleeps, Start, Tokio, everyone};
use crate::engine::{self, Load};
use crate::operation::{LONG, Operation, TIME, arm};
use crate::ring::Ring;
use crate::targets::{both_beat, of_own};
use crate::workload::Workload;

const SMALL: usize = 1_000;
const LARGE: usize = 100_000;
const HUGE: usize = 1_000_000;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let mut all = Vec::new();
    for held in [SMALL, LARGE, HUGE] {
        for threads in [1, 2] {
            // Filling the ring takes longer than the sample.
            if quick && held == HUGE {
                continue;
            }
            let load = Load::new(threads, held, quick);
            all.push(load.workload(title(held, threads), everyone(Measured(load))));
        }
    }
    all
}

pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    for threads in [1, 2] {
        for held in [LARGE, HUGE] {
            let title = title(held, threads);
            let times = match (threads, held) {
                (1, HUGE) => [1.2, 1.2],
                (1, _) => [1.6, 1.3],
                _ => [4.5, 3.0],
            };
            let beat = |than, times| both_beat(than, &title, TIME, times);
            targets.extend(beat(Tokio::NAME, times));
            targets.extend(beat(alt_timer::NAME, [2.0, 1.5]));
            targets.push(of_own(&title, TIME, Want::times(PINGORA, 2.0)));
            // The cost must be flat, however many are pending.
            let (from, at_most) = (self::title(SMALL, threads), 1.2);
            targets.push(of_own(&title, TIME, Want::Grows { from, at_most }));
        }
    }
    targets
}

fn title(held: usize, threads: usize) -> String {
    format!("churn {held}, {}", engine::threads(threads))
}

#[derive(Clone, Copy)]
struct Measured(Load);

impl Measure for Measured {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        engine::sample(self.0, start, |sleeps, _| Churn {
            sleeps,
            ring: Ring::new(),
        })
    }
}

struct Churn<S: Sleeps> {
    sleeps: S,
    /// The pending sleeps. Each is an option, so that the oldest is dropped before the new one is made.
    ring: Ring<Option<S::Sleep>>,
}

impl<S: Sleeps> Operation for Churn<S> {
    fn once(&mut self, context: &mut Context<'_>) {
        let mut place = self.ring.turn();
        place.set(None);
        place.set(Some(self.sleeps.sleep(LONG)));
        arm(place.as_pin_mut().expect("just put there"), context);
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        let place = self.ring.add(Some(self.sleeps.sleep(LONG)));
        arm(place.as_pin_mut().expect("just put there"), context);
    }
}
