//! Which deadline of a grid is next, and how many were missed on the way?

use std::time::Duration;

use tokio::time::Instant;

use super::plan::saturating_add;
use crate::policy::Missed;

impl Missed {
    /// The deadline that follows `last` on the grid of `period`, at `now`, and how many deadlines were missed on the way.
    pub(super) fn next(self, last: Instant, period: Duration, now: Instant) -> (Instant, u64) {
        self.next_at_or_after(saturating_add(last, period), period, now)
    }

    /// As `next`, where `next` is the first deadline that may be taken.
    pub(super) fn next_at_or_after(
        self,
        next: Instant,
        period: Duration,
        now: Instant,
    ) -> (Instant, u64) {
        // How many deadlines from `next` on have passed.
        let late = match now.checked_duration_since(next) {
            None => return (next, 0),
            Some(late) => late.as_nanos() / period.as_nanos() + 1,
        };
        let skip = match self {
            Missed::CatchUp => 0,
            Missed::CatchUpTo(most) => late.saturating_sub(u128::from(most)),
            Missed::Once => late - 1,
            Missed::Skip => late,
        };
        (
            saturating_add(next, times(period, skip)),
            u64::try_from(skip).unwrap_or(u64::MAX),
        )
    }
}

fn times(period: Duration, count: u128) -> Duration {
    let nanos = period.as_nanos().saturating_mul(count);
    let second = 1_000_000_000;
    match u64::try_from(nanos / second) {
        Ok(seconds) => Duration::new(seconds, (nanos % second) as u32),
        Err(_) => Duration::MAX,
    }
}
