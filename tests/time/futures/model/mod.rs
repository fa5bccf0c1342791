//! A naive oracle for the futures: when each is ready, which waker is woken and how often, and what the metrics count.
//!
//! The fuzzer (`fuzz/targets/futures.rs`) makes the steps from bytes, and the properties make them at random. A new operation goes
//! into [`Op`] and, so that both reach it, into `decode` and `properties`.
//!
//! | file | contents |
//! |---|---|
//! | `oracle` | every future with its deadline: no wheel, no driver, no tokio |
//! | `known` | the oracle's state of a timer and of a future, and the arithmetic of ticks |
//! | `world` | a runtime with a paused clock, the real futures, and the comparison |
//! | `acts` | the steps, on the futures and on the oracle |
//! | `waker` | wakers that count, and wakers that re-enter |
//! | `decode` | steps from bytes |
//!
//! Futures are made, polled, reset and dropped at any nanosecond of the clock. The driver runs only at whole milliseconds, because
//! tokio wakes it there: tokio rounds deadlines up, and we promise nothing between two milliseconds. At these instants the oracle
//! knows everything exactly: each future whose tick has come has been woken, once, through its last waker, and no other future has.

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

/// The timers of one runtime, and the steps.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The resolution of the started timer. That of the runtime's timer is a millisecond.
    pub(crate) resolution: Duration,
    /// The bound of the started timer.
    pub(crate) max_pending: Option<usize>,
    /// How long after tokio's clock the two timers start.
    pub(crate) starts: [Duration; 2],
    pub(crate) ops: Vec<Op>,
}

/// The timer of a future: the runtime's, or the one that the test starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    Current,
    Own,
}

/// A time relative to the present.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    Ago(Duration),
    In(Duration),
}

/// One step. `which` picks one of the existing futures, `probe` one of a few wakers.
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
    /// Makes a timeout around a future that is pending until [`Op::Complete`].
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
    /// Polls all futures with one waker, like a task that waits for all of them.
    PollAll {
        probe: usize,
    },
    /// Makes a sleep, polled or not, and polls another future with a waker that owns the sleep. When the waker is woken, it does
    /// `act` to the sleep. When it is dropped, it drops the sleep.
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
    /// Completes the future within a timeout.
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
    /// Waits in the runtime's main task while no other task can run, so that the clock jumps.
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
    /// Drops the handle of the started timer, and keeps its futures.
    DropHandle,
    /// Drops the runtime. The steps after this one are done outside of it.
    DropRuntime,
}

/// The act of a waker on the sleep that it owns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Drop,
    Reset(When),
    Poll { probe: usize },
    Panic,
}
