//! `slack`: the savings when timers come due together, and the cost of moving a deadline.
//!
//! The timers of idle connections (the first title names their number) are due at random, evenly distributed over the 4 s that
//! a connection may be idle, without slack, with 5 % of that time, or with 25 %. The sample is that of `fire`. Lateness is
//! relative to the requested deadline, so it includes the slack; in return the CPU time should be lower. Half of it is spent in
//! the wakers of the sample, in every row: a million of them, each in its own memory, read the clock. Timers that come due
//! together were armed one after the other, so with slack those are adjacent. There are five rounds, since a sample takes 6 s.
//!
//! *Cancel* is the operation of `cancel`, one task and nothing else pending, with a slack of 5 % and 25 % of its 30 s: a separate
//! timer has it by `Timer::sleep_within`, the runtime's by `Sleep::with_slack`.

use std::time::Duration;

use waterwheel_suite::{Absent, Target, Want};

use super::cancel;
use super::fire::{self, CPU, QUICK_TO_ARM};
use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Lenient, Measure, Own, PINGORA, Sleeps, Tokio, Watched, entrant,
};
use crate::engine::Load;
use crate::entrant::Entrant;
use crate::operation::{LONG, TIME};
use crate::workload::Workload;

/// The beginning of the titles with fewer rounds.
pub(crate) const FIRED: &str = "slack, ";
pub(crate) const ROUNDS: usize = 5;

/// The time over which the timers are due. The slack is a share of it.
const IDLE: Duration = Duration::from_secs(4);
const TIMERS: usize = 1_000_000;
const CANCEL: &str = "slack/cancel";

type OwnLenient<const PERCENT: u32> = Lenient<Own<Watched>, PERCENT>;
type CurrentLenient<const PERCENT: u32> = Lenient<Current, PERCENT>;

/// The contestant with a slack, the one without, and the maximum shares of its cost: for a timer that fires, and for one that is cancelled.
const TARGETS: [(&str, &str, f64, f64); 4] = [
    (OwnLenient::<5>::NAME, Own::<Watched>::NAME, 0.8, 1.1),
    (OwnLenient::<25>::NAME, Own::<Watched>::NAME, 0.4, 1.1),
    (CurrentLenient::<5>::NAME, Current::NAME, 0.8, 1.1),
    (CurrentLenient::<25>::NAME, Current::NAME, 0.4, 1.1),
];

fn title(timers: usize) -> String {
    format!("{FIRED}{timers} timers")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    // The quick run has as many timers per second.
    let share = if quick { 20 } else { 1 };
    vec![fired(TIMERS / share, IDLE / share as u32), cancelled(quick)]
}

pub(crate) fn targets() -> Vec<Target> {
    let fired = TARGETS.map(|(of, other, at_most, _)| {
        Target::new(title(TIMERS), CPU, of, Want::share(other, at_most))
    });
    let cancelled = TARGETS
        .map(|(of, other, _, at_most)| Target::new(CANCEL, TIME, of, Want::share(other, at_most)));
    fired.into_iter().chain(cancelled).collect()
}

fn fired(timers: usize, idle: Duration) -> Workload {
    let load = fire::Load {
        timers,
        window: idle,
        to_arm: QUICK_TO_ARM,
    };
    Workload {
        title: title(timers),
        work: format!(
            "spread over {} ms, of which the slack is a share",
            idle.as_millis()
        ),
        metrics: fire::METRICS,
        entrants: with_slack(load, idle),
        absent: absent(),
    }
}

fn cancelled(quick: bool) -> Workload {
    let load = Load::new(1, 0, quick);
    let entrants = with_slack(cancel::Measured(load), LONG);
    Workload {
        absent: absent(),
        ..load.workload(CANCEL.to_owned(), entrants)
    }
}

/// Ours with a slack and without, and tokio's timers.
fn with_slack(measure: impl Measure, idle: Duration) -> Vec<Entrant> {
    let own = Own::<Watched>::start;
    let current = || Current;
    vec![
        entrant(measure, || Tokio),
        entrant(measure, own),
        entrant(measure, move || OwnLenient::<5>::new(own(), idle)),
        entrant(measure, move || OwnLenient::<25>::new(own(), idle)),
        entrant(measure, current),
        entrant(measure, move || CurrentLenient::<5>::new(current(), idle)),
        entrant(measure, move || CurrentLenient::<25>::new(current(), idle)),
    ]
}

fn absent() -> Vec<Absent> {
    [PINGORA, AsyncIo::NAME, FuturesTimer::NAME]
        .map(|name| Absent::new(name, "has no slack; `cancel` and `fire` have its figures"))
        .into()
}
