//! The clocks, as the engine is told them: was the wall clock set, and which tick of the wheel is a time of it?
//!
//! Due times are whole milliseconds of the wall clock, and so are the ticks. The milliseconds of the clock since boot begin at other moments: by ticks of that clock,
//! each timer would be late by the same part of a millisecond, which each start draws anew.
//!
//! The wheel goes forward only. So when the wall clock is set, ticks are counted from the present one by the clock as it is then, and timers are filed again. A clock
//! that is slewed needs nothing: each turn reads it.

use crate::store::Due;
use waterwheel::wheel::Tick;

use super::planted::{self, Planted};

/// A wall clock that moves so far against the other was set, and not slewed.
const JUMP_MICROS: u64 = 1_000_000;

/// Both clocks, read at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since the machine was started, also while it was suspended. It never goes back.
    pub boot_micros: u64,
    /// Microseconds of the wall clock since 1970, which may be set.
    pub wall_micros: i64,
}

impl Now {
    /// By how much the wall clock is ahead of the other.
    fn offset(self) -> i64 {
        self.wall_micros.saturating_sub_unsigned(self.boot_micros)
    }

    /// The wall clock's millisecond, rounded down.
    pub(super) fn due(self) -> Due {
        Due::from_millis(self.wall_micros.div_euclid(1_000))
    }

    /// Whether the wall clock shows this time, or a later one.
    pub(super) fn is_past(self, due: Due) -> bool {
        let wall = match planted::is(Planted::RoundedDown) {
            true => self.wall_micros.saturating_add(999),
            false => self.wall_micros,
        };
        wall >= due.as_millis().saturating_mul(1_000)
    }

    /// Microseconds since boot at which the wall clock shows this time, if it is not set in between. At once, if it is past.
    pub(super) fn boot_at(self, due: Due) -> u64 {
        let left = due.as_millis().saturating_mul(1_000);
        let left = left.saturating_sub(self.wall_micros).max(0);
        self.boot_micros.saturating_add(left.unsigned_abs())
    }
}

/// The engine's view of the clocks.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The reading by which the timers in memory were filed.
    filed_by: Now,
    /// When the engine was made, in microseconds since boot.
    pub(super) begun: u64,
    /// How often the wall clock has jumped against the time since boot.
    pub(super) jumps: u64,
}

/// How the wall clock has moved against the time since boot, if it has moved so far that timers are to be filed again.
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

    /// Takes a reading.
    pub(super) fn read(&mut self, now: Now, largest_drift_micros: u64) -> Option<Moved> {
        // Since then, and not since the last turn: a clock that is slewed moves a little each time.
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

/// The ticks of the wheel, by the wall clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    /// The millisecond of the wall clock that is tick 0.
    zero: i64,
}

impl Ticks {
    /// By the clock as it is now, which is at this tick.
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

    /// Microseconds since boot at which a tick begins, if the wall clock is not set in between. At once, if it has begun.
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
            // 1 544 us are left until then.
            assert_eq!(turn, start.boot_micros + 1_544);
            let wall = |before: u64| start.wall_micros + (1_544 - before).cast_signed();
            assert_eq!(ticks.at(now(turn, wall(0))), ticks.of(due));
            assert!(ticks.at(now(turn, wall(1))) < ticks.of(due));
            // The turn of a tick that has begun is due.
            assert_eq!(ticks.boot_at(Tick::new(3), start), start.boot_micros);
        }
    }
}
