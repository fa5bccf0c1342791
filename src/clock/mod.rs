//! Where time comes from, and how it becomes ticks.
//!
//! | file | concept |
//! |---|---|
//! | this one | [`Clock`]: the time of a timer's home runtime, and whether that can be paused |
//! | `ticks` | every conversion between instants, durations and ticks; the grid on which timers that allow slack come due together |
//! | `manual` | [`ManualClock`]: a clock of a timer's own, which its owner moves |
//!
//! A timer's time is that of the runtime it was started on, its *home*, whichever thread asks. On a multi-thread
//! runtime that is always the machine's monotonic clock. A current-thread runtime's clock can be paused and moved
//! (`tokio::time::pause`). tokio's `Instant::now` then depends on the runtime that the thread is in, so [`Clock::now`]
//! enters the home runtime before it reads such a clock. A timer may have a clock of its own instead, which stands still until it is moved.

use std::sync::Arc;

use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::time::{Duration, Instant};

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::wheel::{Divisor, Resolution, Tick, Ticks};

mod manual;
#[cfg(waterwheel_loom)]
pub(crate) mod model;
mod ticks;

pub use manual::ManualClock;
pub(crate) use manual::Turned;

/// How late a shard is at which a future that arms there spawns a catch-up; a tick, where that is more.
///
/// On a busy service each arm is a chance to serve what is due sooner than tokio's clock would. It costs a task. `benches/LOG.md` has the
/// lateness for other values.
const LATE: Duration = Duration::from_micros(300);

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// Tick zero.
    epoch: Instant,
    /// Where the grid of timers with slack begins.
    grid: Instant,
    resolution: Resolution,
    /// The resolution's nanoseconds.
    tick_nanos: Divisor,
    /// [`LATE`] in ticks.
    late: Ticks,
    home: Handle,
    /// In place of the home runtime's clock.
    manual: Option<ManualClock>,
    /// Whether the home runtime has one thread.
    has_one_thread: bool,
    /// Whether it may stand still and jump: a clock that can be paused, or a manual one.
    may_jump: bool,
    /// Whether a look at the clock has found it paused, or moved while it was. True of a manual clock. All clones share it.
    was_paused: Arc<AtomicBool>,
}

impl Clock {
    /// The clock of a runtime, or a manual one for a timer that is at home there. Tick zero is now.
    ///
    /// Without a resolution its ticks are the finest, unless it can be paused. Then they are milliseconds, as tokio's are: a test
    /// that moves its clock by milliseconds sees the same order as with tokio's timers.
    pub(crate) fn new(
        home: Handle,
        manual: Option<ManualClock>,
        resolution: Option<Resolution>,
    ) -> Clock {
        let epoch = match &manual {
            Some(manual) => manual.now(),
            None => {
                let _entered = home.enter();
                tokio_now()
            }
        };
        // A flavor that is not known to have more threads is taken to have one.
        let has_one_thread = !matches!(home.runtime_flavor(), RuntimeFlavor::MultiThread);
        let may_jump = manual.is_some() || CLOCKS_CAN_PAUSE && has_one_thread;
        let resolution = resolution.unwrap_or(if may_jump {
            Resolution::MILLISECOND
        } else {
            Resolution::FINEST
        });
        let grid = match &manual {
            Some(manual) => manual.start(),
            None if may_jump => epoch,
            None => Instant::from_std(start()),
        };
        let clock = Clock {
            epoch,
            grid,
            resolution,
            late: match manual {
                // Its owner turns it, and no future helps.
                Some(_) => Ticks::new(u64::MAX),
                None => Clock::ticks_in(resolution, LATE),
            },
            tick_nanos: Divisor::new(resolution.nanos()),
            home,
            has_one_thread,
            may_jump,
            was_paused: Arc::new(AtomicBool::new(manual.is_some())),
            manual,
        };
        clock.look_for_pause();
        clock
    }

    /// How long after `now + delay` others are due as well, as far as the slack allows.
    #[inline]
    pub(crate) fn wait_for_line(&self, now: Instant, delay: Duration, slack: Duration) -> Duration {
        ticks::wait_for_line(self.grid, now, delay, slack)
    }

    /// Whether what is due at `due` is late in the tick `now`, so that a thread that finds this has it served.
    #[inline]
    pub(crate) fn is_late(&self, due: Tick, now: Tick) -> bool {
        self.late <= now.saturating_since(due)
    }

    /// The runtime that this is the clock of.
    pub(crate) fn home(&self) -> &Handle {
        &self.home
    }

    /// Whether the home runtime has one thread, so that its clock can be paused in a build with `test-util`.
    pub(crate) fn is_of_one_thread(&self) -> bool {
        self.has_one_thread
    }

    /// Whether tokio may pause the home runtime's clock, which it does on one thread only.
    #[inline]
    pub(crate) fn is_pausable(&self) -> bool {
        CLOCKS_CAN_PAUSE && self.has_one_thread && !self.is_manual()
    }

    /// Whether the clock may jump: one that can be paused, or a manual one. An earlier read of it says little about now.
    #[inline]
    pub(crate) fn may_jump(&self) -> bool {
        self.may_jump
    }

    /// Whether its owner moves it, and turns the shards: no driver does.
    #[inline]
    pub(crate) fn is_manual(&self) -> bool {
        self.manual.is_some()
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if self.may_jump {
            return self.now_at_home();
        }
        Instant::from_std(machine_now())
    }

    /// [`now`](Clock::now), for a caller that is in the home runtime's context.
    #[inline]
    pub(crate) fn now_here(&self) -> Instant {
        if self.may_jump {
            return self.now_here_of_jumping();
        }
        Instant::from_std(machine_now())
    }

    #[cold]
    fn now_here_of_jumping(&self) -> Instant {
        match &self.manual {
            Some(manual) => manual.now(),
            None => tokio_now(),
        }
    }

    #[cold]
    fn now_at_home(&self) -> Instant {
        match &self.manual {
            Some(manual) => manual.now(),
            None => self.at_home(|now| now()),
        }
    }

    /// Whether [`look_for_pause`](Clock::look_for_pause) has ever found the clock paused. True of a manual clock.
    pub(crate) fn was_paused(&self) -> bool {
        // Relaxed: it guards no other data. A thread that misses the store looks itself at its next turn.
        self.was_paused.load(Ordering::Relaxed)
    }

    /// Compares the clock with the machine's: they differ if it is paused, or was. `true` from the first difference on.
    pub(crate) fn look_for_pause(&self) -> bool {
        if self.was_paused() {
            return true;
        }
        if !self.may_jump {
            return false;
        }
        let before = machine_now();
        let now = self.now().into_std();
        let differs = now < before || now > machine_now();
        if differs {
            self.was_paused.store(true, Ordering::Relaxed);
        }
        differs
    }

    /// Whether the clock may stand still: it was paused, or two reads of it are equal. Cheaper than
    /// [`look_for_pause`](Clock::look_for_pause).
    pub(crate) fn may_stand_still(&self) -> bool {
        self.was_paused() || self.stands_still()
    }

    #[cold]
    fn stands_still(&self) -> bool {
        self.may_jump
            && self.at_home(|now| {
                let before = now();
                now() == before
            })
    }

    /// Calls `read` in the home runtime's context, with what reads the clock there.
    #[inline]
    fn at_home<T>(&self, read: impl FnOnce(fn() -> Instant) -> T) -> T {
        match Handle::try_current() {
            Ok(here) if here.id() == self.home.id() => read(tokio_now),
            // A thread that is ending has no context to enter any more.
            Err(error) if error.is_thread_local_destroyed() => {
                read(|| Instant::from_std(machine_now()))
            }
            _ => {
                let _entered = self.home.enter();
                read(tokio_now)
            }
        }
    }
}

// The machine's clock and tokio's. In a model both are the model's, which stands still until it is moved.

#[cfg(waterwheel_loom)]
pub(crate) use model::{machine_now, start, tokio_now};
#[cfg(not(waterwheel_loom))]
pub(crate) use real::{machine_now, start, tokio_now};

/// An instant of the machine's clock as a number, the same for all timers of the process. Zero if it is before the first that was
/// asked for; at most `u64::MAX - 1`.
pub(crate) fn nanos_since_start(at: std::time::Instant) -> u64 {
    let nanos = at.saturating_duration_since(start()).as_nanos();
    u64::try_from(nanos).unwrap_or(u64::MAX).min(u64::MAX - 1)
}

#[cfg(not(waterwheel_loom))]
mod real {
    use std::sync::OnceLock;

    #[inline]
    pub(crate) fn machine_now() -> std::time::Instant {
        std::time::Instant::now()
    }

    pub(crate) fn start() -> std::time::Instant {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        *START.get_or_init(machine_now)
    }

    /// Now, by the clock of the runtime that the thread is in.
    #[inline]
    pub(crate) fn tokio_now() -> tokio::time::Instant {
        tokio::time::Instant::now()
    }
}

// Whether tokio's clocks can be paused in this build.
//
// They can if a crate of the build enables tokio's feature `test-util`, which services do not. A clock that can be paused
// costs more: each read of the clock looks up the runtime, and each drop of the last pending timer checks whether the clock
// was paused. Services do not pay for this.
//
// A crate cannot see which features another crate has. But with this feature tokio's `Builder` has a method `start_paused`, and
// a method call prefers the type's own methods to those of a trait. So the type of the call below depends on the feature. The
// call itself is never made.

/// Whether tokio has `pause`.
pub(crate) const CLOCKS_CAN_PAUSE: bool = {
    // The behaviour without the feature.
    assert!(!gives(
        &|other: &'static mut Other| other.start_paused(false)
    ));
    gives(&|builder: &'static mut Builder| builder.start_paused(false))
};

struct Other;

trait WithoutTestUtil {
    fn start_paused(&mut self, _: bool) -> Missing {
        Missing
    }
}

impl WithoutTestUtil for Builder {}
impl WithoutTestUtil for Other {}

struct Missing;

trait Given {
    const IS_TOKIOS: bool;
}

impl Given for &mut Builder {
    const IS_TOKIOS: bool = true;
}

impl Given for Missing {
    const IS_TOKIOS: bool = false;
}

const fn gives<B, G: Given>(_: &impl FnOnce(B) -> G) -> bool {
    G::IS_TOKIOS
}

#[cfg(test)]
mod can_pause_tests {
    // The tests' own tokio has the feature.
    #[test]
    fn a_build_with_test_util_can_pause_clocks() {
        const { assert!(super::CLOCKS_CAN_PAUSE) }
    }
}
