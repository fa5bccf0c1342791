//! Arm + cancel in a ring of pending timers, as in `churn`, with deadlines that are ever further apart.
//!
//! A wheel files near and far deadlines on different dials. "1 s" is evenly at random up to a second, and so on; from 1
//! ms to 30 days every power is as likely as the next, so that all dials have timers. The shortest of them fire before
//! their turn to be dropped comes: then the figure includes the firing.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_suite::{Metric, Sample};

use super::climb;
use crate::contestant::{Measure, Sleeps, Start};
use crate::engine::{self, Load};
use crate::operation::Operation;
use crate::ring::Ring;
use crate::workload::Workload;

const METRICS: &[Metric] = &[
    Metric::lower("all equal", "ns"),
    Metric::lower("1 s", "ns"),
    Metric::lower("1 min", "ns"),
    Metric::lower("1 h", "ns"),
    Metric::lower("1 ms to 30 days", "ns"),
];
/// The least and the greatest delay in milliseconds, and their distribution.
const SPREADS: [(f64, f64, Shape); 5] = [
    (30e3, 30e3, Shape::Even),
    (1.0, 1e3, Shape::Even),
    (1.0, 60e3, Shape::Even),
    (1.0, 3600e3, Shape::Even),
    (1.0, 30.0 * 86_400e3, Shape::EvenPowers),
];
const HELD: usize = 100_000;
const HELD_QUICK: usize = 10_000;
/// The number of delays, which are drawn beforehand: a logarithm costs as much as a timer.
const DELAYS: usize = 8192;

#[derive(Clone, Copy)]
enum Shape {
    Even,
    EvenPowers,
}

pub(super) fn workload(quick: bool) -> Workload {
    let held = if quick { HELD_QUICK } else { HELD };
    climb::workload(
        "delay spread",
        format!("drop the oldest of {held}, make a new one, 1 thread"),
        METRICS,
        Spread { held, quick },
    )
}

#[derive(Clone, Copy)]
struct Spread {
    held: usize,
    quick: bool,
}

impl Measure for Spread {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let load = Load::new(1, self.held, self.quick);
        let step = |(least, greatest, shape)| {
            engine::sample(load, start, |sleeps, seed| Turnover {
                sleeps,
                ring: Ring::new(),
                delays: delays(least, greatest, shape, seed),
                next: 0,
            })
        };
        climb::joined(SPREADS.map(step))
    }
}

fn delays(least: f64, greatest: f64, shape: Shape, seed: u64) -> Vec<Duration> {
    let mut random = Rng::with_seed(seed);
    let mut delay = || {
        let share = random.f64();
        let millis = match shape {
            Shape::Even => least + (greatest - least) * share,
            Shape::EvenPowers => least * (greatest / least).powf(share),
        };
        Duration::from_secs_f64(millis / 1e3)
    };
    (0..DELAYS).map(|_| delay()).collect()
}

struct Turnover<S: Sleeps> {
    sleeps: S,
    /// The pending sleeps. Each is an option, so that the oldest is dropped before the new one is made.
    ring: Ring<Option<S::Sleep>>,
    delays: Vec<Duration>,
    next: usize,
}

impl<S: Sleeps> Turnover<S> {
    fn next_delay(&mut self) -> Duration {
        self.next = (self.next + 1) % DELAYS;
        self.delays[self.next]
    }
}

impl<S: Sleeps> Operation for Turnover<S> {
    fn once(&mut self, context: &mut Context<'_>) {
        let delay = self.next_delay();
        let mut place = self.ring.turn();
        place.set(None);
        place.set(Some(self.sleeps.sleep(delay)));
        poll(place, context);
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        let delay = self.next_delay();
        poll(self.ring.add(Some(self.sleeps.sleep(delay))), context);
    }
}

/// Polls a sleep. One of a millisecond may be over at once, if the thread was held up.
fn poll(place: Pin<&mut Option<impl Future>>, context: &mut Context<'_>) {
    let sleep = place.as_pin_mut().expect("just put there");
    let _ = sleep.poll(context);
}
