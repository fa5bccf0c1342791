//! The engine's view of the clocks: whether the wall clock was set, and which tick of the wheel corresponds to a wall-clock time.
//!
//! Due times are whole milliseconds of the wall clock, and so are the ticks. The milliseconds of the clock since boot begin at other moments: with ticks of it, every
//! timer would be late by the same fraction of a millisecond, which would differ from start to start.
//!
//! The wheel only goes forward. So when the wall clock is set, ticks are counted from the present one by the new time, and timers are filed again. A clock
//! that is slewed needs no action, because each turn reads it.

use crate::store::Due;
use waterwheel::wheel::Tick;

use super::planted::{self, Planted};

/// A wall clock that moves at least this far against the boot clock was set, not slewed.
const JUMP_MICROS: u64 = 1_000_000;

/// Both clocks, read at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since boot, including time suspended. It never goes back.
    pub boot_micros: u64,
    /// Microseconds of the wall clock since 1970. It may be set.
    pub wall_micros: i64,
}

impl Now {
    /// How far the wall clock is ahead of the boot clock.
    fn offset(self) -> i64 {
        self.wall_micros.saturating_sub_unsigned(self.boot_micros)
    }

    /// The wall clock in milliseconds, rounded down.
    pub(super) fn due(self) -> Due {
        Due::from_millis(self.wall_micros.div_euclid(1_000))
    }

    /// Whether the wall clock shows this time or a later one.
    pub(super) fn is_past(self, due: Due) -> bool {
        let wall = match planted::is(Planted::RoundedDown) {
            true => self.wall_micros.saturating_add(999),
            false => self.wall_micros,
        };
        wall >= due.as_millis().saturating_mul(1_000)
    }

    /// When the wall clock will show this time, in microseconds since boot, if it is not set in between. Now, if the time is past.
    pub(super) fn boot_at(self, due: Due) -> u64 {
        let left = due.as_millis().saturating_mul(1_000);
        let left = left.saturating_sub(self.wall_micros).max(0);
        self.boot_micros.saturating_add(left.unsigned_abs())
    }
}

/// The engine's view of the clocks.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The reading with which the timers in memory were filed.
    filed_by: Now,
    /// When the engine was made, in microseconds since boot.
    pub(super) begun: u64,
    /// The number of times the wall clock has jumped against the boot clock.
    pub(super) jumps: u64,
}

/// How the wall clock has moved against the boot clock, if far enough that timers have to be filed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Slewed,
    SetForward,
    SetBack,
}

impl Clocks {
    pub(super) fn new(now: Now) -> Clocks {
        Clocks {
            filed_by: now,
            begun: now.boot_micros,
            jumps: 0,
        }
    }

    /// Takes a reading of both clocks.
    pub(super) fn read(&mut self, now: Now, largest_drift_micros: u64) -> Option<Moved> {
        // Compared to that reading, not to the last turn: a slewed clock moves a little each time.
        let shift = now.offset() - self.filed_by.offset();
        if shift.unsigned_abs() < largest_drift_micros {
            return None;
        }
        self.filed_by = now;
        if shift.unsigned_abs() < JUMP_MICROS {
            return Some(Moved::Slewed);
        }
        self.jumps += 1;
        Some(match shift < 0 {
            true => Moved::SetBack,
            false => Moved::SetForward,
        })
    }
}

/// Maps wall-clock times to ticks of the wheel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    /// The millisecond of the wall clock that is tick 0.
    zero: i64,
}

impl Ticks {
    /// Ticks by the present reading of the clock, at which the wheel is at this tick.
    pub(super) fn from(now: Now, tick: Tick) -> Ticks {
        let zero = now.due().as_millis().saturating_sub_unsigned(tick.get());
        Ticks { zero }
    }

    /// The present tick, rounded down.
    pub(super) fn at(self, now: Now) -> Tick {
        self.tick(now.due())
    }

    /// The tick of a due time.
    pub(super) fn of(self, due: Due) -> Tick {
        let tick = self.tick(due);
        match planted::is(Planted::RoundedDown) {
            true => Tick::new(tick.get().saturating_sub(1)),
            false => tick,
        }
    }

    fn tick(self, due: Due) -> Tick {
        Tick::new(
            due.as_millis()
                .saturating_sub(self.zero)
                .max(0)
                .unsigned_abs(),
        )
    }

    /// When a tick begins, in microseconds since boot, if the wall clock is not set in between. Now, if it has begun.
    pub(super) fn boot_at(self, tick: Tick, now: Now) -> u64 {
        now.boot_at(Due::from_millis(
            self.zero.saturating_add_unsigned(tick.get()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(boot_micros: u64, wall_micros: i64) -> Now {
        Now {
            boot_micros,
            wall_micros,
        }
    }

    #[test]
    fn a_due_time_begins_its_tick_whatever_the_phase_of_the_clocks() {
        for phase in [0, 1, 499, 500, 999] {
            let start = now(5_000_000 + phase, 1_800_000_000_123_456);
            let ticks = Ticks::from(start, Tick::new(7));
            assert_eq!(ticks.at(start), Tick::new(7));
            let due = Due::from_millis(1_800_000_000_125);
            assert_eq!(ticks.of(due), Tick::new(9));
            let turn = ticks.boot_at(ticks.of(due), start);
            // 1 544 us are left until the next millisecond.
            assert_eq!(turn, start.boot_micros + 1_544);
            let wall = |before: u64| start.wall_micros + (1_544 - before).cast_signed();
            assert_eq!(ticks.at(now(turn, wall(0))), ticks.of(due));
            assert!(ticks.at(now(turn, wall(1))) < ticks.of(due));
            // The turn of a tick that has begun is due.
            assert_eq!(ticks.boot_at(Tick::new(3), start), start.boot_micros);
        }
    }
}
