//! How many timers a turn serves of each shard.

use tokio::time::{Duration, Instant};

use crate::clock::Clock;
use crate::wheel::Tick;

/// How many timers are served with a shard's lock held. A turn serves so many of a shard, before it gives way to the tasks that
/// it woke, unless it came late or is the first.
///
/// In a model a few timers are a backlog.
pub(super) const BATCH: usize = if cfg!(waterwheel_loom) { 2 } else { 128 };

/// How many timers of a shard the first turn after a sleep serves, in order. So what is due in a millisecond on a busy service
/// is served in one turn. In turns of 128, an idle worker would be woken for each turn, and sleep again before the next.
pub(super) const FIRST_TURN: usize = if cfg!(waterwheel_loom) { 2 } else { 1024 };

/// A turn that had to wait for a worker serves one timer more for each time this has passed.
///
/// The driver waits behind all tasks that can run. Where those are many, a turn of fixed size would be all that fires in the
/// time that they take, and a busy service's timers would fall further and further behind. It is long enough that a herd of
/// small tasks, each of which runs in less, does not make the next turn larger.
const WAIT_PER_TIMER: Duration = Duration::from_micros(4);

/// After a longer wait the workers are behind, and the driver keeps all shards. (With 4 ms a herd of a million comes to it: the gap of
/// a heartbeat beside it is 9 to 13 ms in place of 8 to 9.)
pub(super) const LONG_WAIT: Duration = Duration::from_millis(20);

/// However long the turn had to wait.
const LARGEST: usize = 65_536;

/// Since when a turn should have come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waiting {
    /// It comes at once.
    Never,
    /// The driver gave way to the tasks that it had woken, and left timers that are due, or found that one came in.
    SinceWayWasGiven(Instant),
    /// The driver slept until then. [`Tick::MAX`] if it slept without end, or if the tick is not known.
    SinceTarget(Tick),
}

/// What a turn may do with one shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// At most so many timers.
    pub(super) timers: usize,
    /// It is the first turn after a sleep.
    pub(super) is_first: bool,
    /// The turn had to wait for long.
    pub(super) is_late: bool,
}

impl Waiting {
    /// What a turn may do that begins at `now`, which is in `tick`.
    pub(super) fn allowance(self, clock: &Clock, now: Instant, tick: Tick) -> Allowance {
        let (least, waited) = match self {
            Waiting::Never => (BATCH, Duration::ZERO),
            Waiting::SinceWayWasGiven(since) => (BATCH, now.duration_since(since)),
            Waiting::SinceTarget(target) => (FIRST_TURN, clock.duration_between(target, tick)),
        };
        let timers = (waited.as_micros() / WAIT_PER_TIMER.as_micros()) as usize;
        Allowance {
            timers: timers.clamp(least, LARGEST),
            is_first: matches!(self, Waiting::SinceTarget(_)),
            is_late: waited > LONG_WAIT,
        }
    }
}
