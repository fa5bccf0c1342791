//! `postpone`: resets a pending sleep to 30 s from now, round-robin, without and with a poll after it.
//!
//! An idle timeout does this with every message. The operation reads the clock: a deadline relative to now
//! needs the current time.
//!
//! One sleep without a poll has no target. It used to be 1.5 times tokio, but the floor, a clock read and a store, is
//! only 1.3 to 1.4 times better.

use std::task::Context;

use waterwheel_suite::{Absent, Target};

use crate::contestant::{
    AsyncIo, Current, Floor, FuturesTimer, Own, PINGORA, Postpones, Sleeps, Start, Tokio, Watched,
};
use crate::engine::{self, Load};
use crate::entrant::Entrant;
use crate::operation::{LONG, Operation, TIME, arm};
use crate::ring::Ring;
use crate::targets::both_beat;
use crate::workload::Workload;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    vec![
        workload::<true>(1, quick),
        workload::<false>(100_000, quick),
        workload::<true>(100_000, quick),
    ]
}

pub(crate) fn targets() -> Vec<Target> {
    [(1, true, 1.3), (100_000, false, 1.5), (100_000, true, 1.3)]
        .into_iter()
        .flat_map(|(held, polled, times)| {
            both_beat(Tokio::NAME, &title(held, polled), TIME, [times, times])
        })
        .collect()
}

fn title(held: usize, polled: bool) -> String {
    let polled = if polled { ", then poll" } else { "" };
    format!("postpone {held}{polled}")
}

fn workload<const POLL: bool>(held: usize, quick: bool) -> Workload {
    let load = Load::new(1, held, quick);
    let entrants = vec![
        entrant::<_, POLL>(load, || Tokio),
        entrant::<_, POLL>(load, Own::<Watched>::start),
        entrant::<_, POLL>(load, || Current),
        entrant::<_, POLL>(load, || AsyncIo),
        entrant::<_, POLL>(load, || FuturesTimer),
        entrant::<_, POLL>(load, Floor::<false>::start),
    ];
    Workload {
        absent: vec![
            Absent::new(PINGORA, "has no reset"),
            Absent::new(Floor::<true>::NAME, "a reset looks nothing up"),
        ],
        ..load.workload(title(held, POLL), entrants)
    }
}

fn entrant<S: Postpones, const POLL: bool>(load: Load, start: impl Start<S>) -> Entrant {
    let operation = |sleeps, _| Postpone::<S, POLL>::new(sleeps);
    engine::entrant(S::NAME, load, start, operation)
}

pub(super) struct Postpone<S: Sleeps, const POLL: bool> {
    sleeps: S,
    ring: Ring<S::Sleep>,
}

impl<S: Sleeps, const POLL: bool> Postpone<S, POLL> {
    pub(super) fn new(sleeps: S) -> Self {
        Self {
            sleeps,
            ring: Ring::new(),
        }
    }
}

impl<S: Postpones, const POLL: bool> Operation for Postpone<S, POLL> {
    fn once(&mut self, context: &mut Context<'_>) {
        let mut sleep = self.ring.turn();
        S::postpone(sleep.as_mut(), LONG);
        if POLL {
            arm(sleep, context);
        }
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        arm(self.ring.add(self.sleeps.sleep(LONG)), context);
    }
}
