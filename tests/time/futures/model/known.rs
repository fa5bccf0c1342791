//! The oracle's state of a timer and of a future, and a naive arithmetic of ticks.

use std::time::Duration;

use waterwheel::MissedTickBehavior;

use super::Home;

/// The longest relative delay. Longer ones are capped to it.
pub(super) const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

/// A tick that is taken later than this was missed.
const LATE: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Timer {
    pub(super) start: Duration,
    pub(super) tick: Duration,
    pub(super) max_pending: Option<usize>,
    pub(super) permits: usize,
    pub(super) state: State,
    /// Whether its runtime has ended.
    pub(super) is_over: bool,
    pub(super) counts: Counts,
    pub(super) drain: Drain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Draining,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) armed: u64,
    pub(super) fired: u64,
    pub(super) cancelled: u64,
    pub(super) stopped: u64,
    pub(super) pending: u64,
}

/// A task that waits for the timer to be drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drain {
    None,
    Waits,
    Woken,
}

#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) home: Home,
    /// `None` if the future never times out.
    pub(super) deadline: Option<Duration>,
    pub(super) life: Life,
    pub(super) has_permit: bool,
    /// Whether a trap owns the future.
    pub(super) is_away: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Sleep,
    Timeout { is_ready: bool },
    Interval(Ticks),
}

#[derive(Debug, Clone)]
pub(super) struct Ticks {
    pub(super) period: Duration,
    pub(super) behavior: MissedTickBehavior,
    pub(super) missed: u64,
    pub(super) has_ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// The delay is not armed.
    New,
    /// The delay is not armed, and was reset since it was made or done.
    Reset,
    /// The delay is armed with this waker.
    Pending(By),
    /// The delay was fired or stopped, and not polled since then.
    Disarmed,
    Done {
        stopped: bool,
    },
}

/// The waker of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Probe(usize),
    Trap(usize),
    /// The runtime's main task.
    Main,
}

/// The output of a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Slept,
    InTime,
    Elapsed {
        stopped: bool,
    },
    Tick(Duration),
    Ended,
    /// A panic, since the runtime has ended.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Shutdown,
    AtCapacity,
}

impl Timer {
    pub(super) fn new(start: Duration, tick: Duration, max_pending: Option<usize>) -> Timer {
        Timer {
            start,
            tick,
            max_pending,
            permits: 0,
            state: State::Running,
            is_over: false,
            counts: Counts::default(),
            drain: Drain::None,
        }
    }

    /// The tick that a deadline is rounded up to.
    pub(super) fn tick_of(&self, deadline: Duration) -> u128 {
        let since = deadline.saturating_sub(self.start).as_nanos();
        since.div_ceil(self.tick.as_nanos())
    }

    /// Whether the tick of a deadline has come.
    pub(super) fn is_due(&self, deadline: Duration, now: Duration) -> bool {
        self.tick_of(deadline) <= self.hand(now)
    }

    /// The present, rounded down to a tick.
    pub(super) fn hand(&self, now: Duration) -> u128 {
        now.saturating_sub(self.start).as_nanos() / self.tick.as_nanos()
    }

    /// The first whole millisecond of tokio's clock that is not before the tick of a deadline.
    pub(super) fn due_at(&self, deadline: Duration) -> Duration {
        let tick = self.tick_of(deadline) * self.tick.as_nanos() + self.start.as_nanos();
        whole_millis(nanos(tick))
    }
}

impl Ticks {
    /// The deadline of the tick after `tick`, which is taken now.
    pub(super) fn next(&mut self, tick: Duration, now: Duration, resolution: Duration) -> Duration {
        let late = now - tick;
        if late <= (resolution * 2).max(LATE) {
            return tick + self.period;
        }
        let periods = late.as_nanos() / self.period.as_nanos();
        let left_out = u64::try_from(periods).unwrap_or(u64::MAX);
        let (next, left_out) = match self.behavior {
            MissedTickBehavior::Burst => (tick + self.period, 0),
            MissedTickBehavior::Delay => (now + self.period, left_out),
            MissedTickBehavior::Skip => {
                let in_step = (periods + 1) * self.period.as_nanos();
                (tick + nanos(in_step), left_out)
            }
        };
        self.missed = self.missed.saturating_add(left_out).saturating_add(1);
        next
    }
}

fn nanos(nanos: u128) -> Duration {
    const PER_SECOND: u128 = 1_000_000_000;
    Duration::new((nanos / PER_SECOND) as u64, (nanos % PER_SECOND) as u32)
}

/// Rounds up to whole milliseconds.
pub(super) fn whole_millis(time: Duration) -> Duration {
    nanos(time.as_nanos().div_ceil(1_000_000) * 1_000_000)
}
