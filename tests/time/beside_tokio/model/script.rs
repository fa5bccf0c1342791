//! The steps of a script by hand.
//!
//! Times are whole milliseconds since the script began, and futures have numbers, so a script from
//! which steps are left out is a script still: a step that names a future that is not there, or a time
//! that has passed, does nothing.

use std::time::Duration;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Made by `sleep` if `by_delay`, or else by `sleep_until`.
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
    /// Around a future that is ready once it is opened.
    Timeout {
        id: usize,
        at: u64,
        by_delay: bool,
    },
    /// A timeout that is ready is dropped, as `await` does.
    Poll {
        id: usize,
    },
    /// Of a sleep, or of an interval.
    Reset {
        id: usize,
        to: u64,
    },
    /// `Interval::reset`, `reset_immediately` and `reset_after`.
    Restart {
        id: usize,
        how: Restart,
    },
    /// Tells the future within a timeout that it is ready.
    Complete {
        id: usize,
    },
    Drop {
        id: usize,
    },
    /// `tokio::time::advance`, which lets the driver run once. If the clock `settles`, the driver runs
    /// until it has nothing more to do.
    Advance {
        to: u64,
        settles: bool,
    },
    /// Sleeps with everything else idle, so that the clock moves by itself.
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

/// `MissedTickBehavior`, of which there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missed {
    Burst,
    Delay,
    Skip,
}

impl Missed {
    /// The tick after one that was due at `tick` and is taken now, by tokio's documentation.
    pub(crate) fn next(self, tick: u64, now: u64, period: u64) -> u64 {
        /// A tick that is later than this was missed.
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
    /// The future that it makes or touches.
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

/// So many milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
