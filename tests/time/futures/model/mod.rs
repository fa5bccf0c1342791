//! What futures must do, said by a naive oracle: who is ready when, who is woken and how often, and
//! what is counted.
//!
//! Shared with the fuzzer (`fuzz/targets/futures.rs`), which makes the steps of bytes; the properties
//! make them at random. A new operation goes into [`Op`] and, so that both reach it, into `decode` and
//! `properties`.
//!
//! | file | what is there |
//! |---|---|
//! | `oracle` | every future with its deadline: no wheel, no driver, no tokio |
//! | `known` | what the oracle knows of a timer and of a future, and the arithmetic of ticks |
//! | `world` | a runtime with a paused clock, the real futures, and the comparison |
//! | `acts` | what is done, step by step, to both |
//! | `waker` | wakers that count, and wakers that re-enter |
//! | `decode` | steps from bytes |
//!
//! The clock stands wherever a step has left it, to the nanosecond, when futures are made, polled,
//! reset and dropped. The driver runs at whole milliseconds of tokio's clock, because that is where
//! tokio wakes it: between two of them it would be late by what tokio rounds up, which is not ours to
//! promise. At those moments everything is known exactly: a future whose tick has come has been
//! woken, once, through its last waker; no other has.

mod acts;
mod decode;
mod known;
mod oracle;
mod waker;
mod world;

use std::time::Duration;

use waterwheel::MissedTickBehavior;

pub(crate) use decode::decode;
pub(crate) use world::run;

/// The timers of one runtime, and what is done with them.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Of the timer of one's own; the runtime's is a millisecond.
    pub(crate) resolution: Duration,
    /// The bound of the timer of one's own.
    pub(crate) max_pending: Option<usize>,
    /// How long after tokio's clock the two timers start.
    pub(crate) starts: [Duration; 2],
    pub(crate) ops: Vec<Op>,
}

/// On which timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    Current,
    Own,
}

/// A time, from the present.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    Ago(Duration),
    In(Duration),
}

/// One step. `which` picks one of the futures that are there, `probe` one of a few wakers.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Sleep {
        home: Home,
        delay: Duration,
    },
    SleepUntil {
        home: Home,
        at: When,
    },
    /// Around a future that is ready once it is opened.
    Timeout {
        home: Home,
        limit: Duration,
    },
    Interval {
        home: Home,
        start: When,
        period: Duration,
        missed: MissedTickBehavior,
    },
    Poll {
        which: usize,
        probe: usize,
    },
    /// As a task does that waits for all of them.
    PollAll {
        probe: usize,
    },
    /// Makes a sleep, polled or not, and polls another future with a waker that owns it. Woken, the
    /// waker does this with it; let go, it drops it.
    PollWithTrap {
        which: usize,
        delay: Duration,
        armed: Option<usize>,
        act: Act,
    },
    Reset {
        which: usize,
        to: When,
    },
    SetPeriod {
        which: usize,
        period: Duration,
    },
    /// Tells the future within a timeout that it is ready.
    Complete {
        which: usize,
    },
    Drop {
        which: usize,
    },
    /// Moves the clock while no task runs.
    Jump {
        by: Duration,
    },
    /// Lets the driver run, at the next whole millisecond.
    Run,
    /// Waits in the runtime's main task, with everything else idle, so that the clock jumps.
    Await {
        which: usize,
    },
    Shutdown {
        home: Home,
    },
    Drain {
        home: Home,
    },
    PollDrain {
        home: Home,
    },
    /// Drops the handle of the timer of one's own, and leaves its futures.
    DropHandle,
    /// Drops the runtime; what comes after is done outside.
    DropRuntime,
}

/// What a waker does to the sleep that it owns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Drop,
    Reset(When),
    Poll { probe: usize },
    Panic,
}
