//! `touch`: the idle deadline of a connection, 30 s after the last packet, postponed at each packet. `touch_at`: the same
//! for a caller that knows the time of the packet, like one that reads a batch of packets.
//!
//! Ours is `rpc::IdleTimeout`, whose guard is pending throughout: it writes a cell, once per tick, and moves no timer. In
//! *tick not new* all packets come at the same instant, in *tick new* each comes a tick after the previous one.
//!
//! The peers reset a pending sleep, as in `postpone`, without a poll; so does the row `own, set_deadline`. futures-timer only
//! accepts durations, and reads the clock in `touch_at` as well. The rows *timeout* make a timeout for each packet, around a
//! future that is pending once: pingora-timeout has nothing else for this.
//!
//! The floors are the cost of the packet's time: *clock read* in `touch`, *packet* in `touch_at`, where it is known. Both include
//! the loop, so the targets are differences.

use std::future::{Pending, pending};
use std::hint::black_box;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::rpc::{self, IdleTimeout};
use waterwheel_suite::{Absent, Target, Want};

use super::postpone::Postpone;
use super::timeout::Call;
use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Own, PINGORA, Postpones, Sleeps, Start, TimesOut, Tokio,
    Watched, pingora,
};
use crate::engine::{self, Load};
use crate::entrant::Entrant;
use crate::operation::{LONG, Operation, TIME, arm};
use crate::targets::of_both;
use crate::workload::Workload;

const TOUCH: &str = "touch";
const CLOCK_READ: &str = "clock read";
const PACKET: &str = "packet";
const OWN_RESETS: &str = "own, set_deadline";
/// The tick of the contestants.
const TICK: Duration = Duration::from_micros(100);

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let load = Load::new(1, 1, quick);
    vec![touch(load), touch_at::<false>(load), touch_at::<true>(load)]
}

pub(crate) fn targets() -> Vec<Target> {
    let more = |than, at_most| Want::More { than, at_most };
    [
        of_both(TOUCH, TIME, more(CLOCK_READ, 7.0)),
        of_both(title(false), TIME, more(PACKET, 6.0)),
        of_both(title(true), TIME, more(PACKET, 15.0)),
    ]
    .concat()
}

const fn title(is_new: bool) -> &'static str {
    if is_new {
        "touch_at, tick new"
    } else {
        "touch_at, tick not new"
    }
}

fn touch(load: Load) -> Workload {
    load.workload(
        TOUCH.to_owned(),
        vec![
            resets(Tokio::NAME, load, || Tokio),
            touches(Own::<Watched>::NAME, load, on_own, Touch),
            touches(Current::NAME, load, on_current, Touch),
            resets(OWN_RESETS, load, Own::<Watched>::start),
            resets(AsyncIo::NAME, load, || AsyncIo),
            resets(FuturesTimer::NAME, load, || FuturesTimer),
            times_out("tokio, timeout", load, || Tokio),
            times_out("own, timeout", load, Own::<Watched>::start),
            times_out(PINGORA, load, pingora),
            engine::entrant(CLOCK_READ, load, || (), |(), _| ClockRead),
        ],
    )
}

fn touch_at<const NEW: bool>(load: Load) -> Workload {
    let entrants = vec![
        resets_to::<_, NEW>(Tokio::NAME, load, || Tokio),
        touches(Own::<Watched>::NAME, load, on_own, TouchAt::<NEW>::new),
        touches(Current::NAME, load, on_current, TouchAt::<NEW>::new),
        resets_to::<_, NEW>(OWN_RESETS, load, Own::<Watched>::start),
        resets_to::<_, NEW>(AsyncIo::NAME, load, || AsyncIo),
        resets_to::<_, NEW>(FuturesTimer::NAME, load, || FuturesTimer),
        engine::entrant(PACKET, load, || (), |(), _| Packets::<NEW>::new()),
    ];
    Workload {
        absent: vec![Absent::new(PINGORA, "has no reset")],
        ..load.workload(title(NEW).to_owned(), entrants)
    }
}

fn on_own() -> IdleTimeout {
    IdleTimeout::on(&Own::<Watched>::start().timer, LONG)
}

fn on_current() -> IdleTimeout {
    IdleTimeout::new(LONG)
}

fn touches<O: Operation>(
    name: &'static str,
    load: Load,
    start: impl Start<IdleTimeout>,
    operation: fn(Connection) -> O,
) -> Entrant {
    let operation = move |idle, _| operation(Connection { idle, guard: None });
    engine::entrant(name, load, start, operation)
}

fn resets<S: Postpones>(name: &'static str, load: Load, start: impl Start<S>) -> Entrant {
    let operation = |sleeps, _| Postpone::<S, false>::new(sleeps);
    engine::entrant(name, load, start, operation)
}

fn resets_to<S: Postpones, const NEW: bool>(
    name: &'static str,
    load: Load,
    start: impl Start<S>,
) -> Entrant {
    let operation = |sleeps, _| ResetTo::<S, NEW> {
        sleeps,
        sleep: None,
        packets: Packets::new(),
    };
    engine::entrant(name, load, start, operation)
}

fn times_out<T: TimesOut>(name: &'static str, load: Load, start: impl Start<T>) -> Entrant {
    let operation = |timer, _| Call::<T, true>(timer);
    engine::entrant(name, load, start, operation)
}

/// A connection that is guarded throughout, like those of a server.
struct Connection {
    idle: IdleTimeout,
    guard: Option<Pin<Box<rpc::Guarded<Pending<()>>>>>,
}

impl Connection {
    fn open(&mut self, context: &mut Context<'_>) {
        let guard = Box::pin(self.idle.guard(pending()));
        arm(self.guard.insert(guard).as_mut(), context);
    }
}

struct Touch(Connection);

impl Operation for Touch {
    fn once(&mut self, _: &mut Context<'_>) {
        self.0.idle.touch();
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        self.0.open(context);
    }
}

struct TouchAt<const NEW: bool> {
    connection: Connection,
    packets: Packets<NEW>,
}

impl<const NEW: bool> TouchAt<NEW> {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            packets: Packets::new(),
        }
    }
}

impl<const NEW: bool> Operation for TouchAt<NEW> {
    fn once(&mut self, _: &mut Context<'_>) {
        self.connection.idle.touch_at(self.packets.next());
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        self.connection.open(context);
    }
}

struct ResetTo<S: Sleeps, const NEW: bool> {
    sleeps: S,
    sleep: Option<Pin<Box<S::Sleep>>>,
    packets: Packets<NEW>,
}

impl<S: Postpones, const NEW: bool> Operation for ResetTo<S, NEW> {
    fn once(&mut self, _: &mut Context<'_>) {
        let deadline = self.packets.next() + LONG;
        let sleep = self
            .sleep
            .as_mut()
            .expect("it is made before the first packet");
        S::postpone_to(sleep.as_mut(), deadline);
    }

    fn hold_one(&mut self, context: &mut Context<'_>) {
        let sleep = Box::pin(self.sleeps.sleep(LONG));
        arm(self.sleep.insert(sleep).as_mut(), context);
    }
}

/// Packets that all come at the same instant, or each a tick after the previous one.
struct Packets<const NEW: bool>(Instant);

impl<const NEW: bool> Packets<NEW> {
    fn new() -> Self {
        Self(Instant::now())
    }

    fn next(&mut self) -> Instant {
        if NEW {
            self.0 += TICK;
        }
        black_box(self.0)
    }
}

impl<const NEW: bool> Operation for Packets<NEW> {
    fn once(&mut self, _: &mut Context<'_>) {
        self.next();
    }
}

struct ClockRead;

impl Operation for ClockRead {
    fn once(&mut self, _: &mut Context<'_>) {
        black_box(Instant::now());
    }
}
