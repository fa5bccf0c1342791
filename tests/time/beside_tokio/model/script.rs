//! The steps of a script.
//!
//! Times are whole milliseconds since the script began, and futures have numbers. A step does nothing if its future does not exist
//! or its time has passed. So a script stays valid when steps are left out.

use std::time::Duration;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Makes a sleep, by `sleep` if `by_delay`, or else by `sleep_until`.
    Sleep {
        id: usize,
        at: u64,
        by_delay: bool,
    },
    Interval {
        id: usize,
        start: u64,
        period: u64,
        missed: Missed,
    },
    /// Makes a timeout around a future that is pending until [`Op::Complete`].
    Timeout {
        id: usize,
        at: u64,
        by_delay: bool,
    },
    /// Polls a future. A timeout that is ready is dropped, as `await` does.
    Poll {
        id: usize,
    },
    /// Resets a sleep or an interval.
    Reset {
        id: usize,
        to: u64,
    },
    /// `Interval::reset`, `reset_immediately` and `reset_after`.
    Restart {
        id: usize,
        how: Restart,
    },
    /// Completes the future within a timeout.
    Complete {
        id: usize,
    },
    Drop {
        id: usize,
    },
    /// Calls `tokio::time::advance`, which lets the driver run once. If the clock `settles`, the driver runs until it has nothing
    /// more to do.
    Advance {
        to: u64,
        settles: bool,
    },
    /// Sleeps while no other task can run, so that the clock moves by itself.
    Await {
        to: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    Period,
    Now,
    After(u64),
}

/// Stands for tokio's `MissedTickBehavior` and for ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missed {
    Burst,
    Delay,
    Skip,
}

impl Missed {
    /// The tick after one that was due at `tick` and is taken now, by tokio's documentation.
    pub(crate) fn next(self, tick: u64, now: u64, period: u64) -> u64 {
        /// A tick that is taken later than this was missed.
        const LATE: u64 = 5;
        match self {
            _ if now <= tick + LATE => tick + period,
            Missed::Burst => tick + period,
            Missed::Delay => now + period,
            Missed::Skip => now + period - (now - tick) % period,
        }
    }
}

impl Op {
    /// The future that this step makes or uses.
    pub(crate) fn id(&self) -> Option<usize> {
        match *self {
            Op::Sleep { id, .. }
            | Op::Interval { id, .. }
            | Op::Timeout { id, .. }
            | Op::Poll { id }
            | Op::Reset { id, .. }
            | Op::Restart { id, .. }
            | Op::Complete { id }
            | Op::Drop { id } => Some(id),
            Op::Advance { .. } | Op::Await { .. } => None,
        }
    }
}

/// A duration of this many milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
