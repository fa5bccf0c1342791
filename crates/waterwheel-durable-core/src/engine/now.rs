use crate::store::Due;

use super::planted::{self, Planted};

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
    pub(super) fn offset(self) -> i64 {
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
