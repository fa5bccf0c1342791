use tokio::time::{Duration, Instant};

/// Defines what an [`Interval`](crate::Interval) does when it missed a tick because it was polled
/// too late.
///
/// A tick counts as missed when it is taken more than 5 ms after its time, or more than two ticks
/// of the timer's resolution if that is longer. Same as tokio's.
///
/// With a period of 100 ms, and a pause of 250 ms after the tick at 0:
///
/// | behaviour | ticks are taken at | and return |
/// |---|---|---|
/// | `Burst` | 0, 250, 250, 300, 400 | 0, 100, 200, 300, 400 |
/// | `Delay` | 0, 250, 350, 450 | 0, 100, 350, 450 |
/// | `Skip` | 0, 250, 300, 400 | 0, 100, 300, 400 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// Catches up: the missed ticks follow one another without a delay. This is the default.
    #[default]
    Burst,
    /// Starts over: the next tick comes one period after the late tick was taken.
    Delay,
    /// Keeps the phase: missed ticks are skipped, and the next tick comes when it would have come
    /// anyway.
    Skip,
}

impl MissedTickBehavior {
    /// The tick after a late one, and how many were left out between them; `None` if it is
    /// beyond the range of `Instant`.
    pub(super) fn after_late(
        self,
        tick: Instant,
        now: Instant,
        period: Duration,
    ) -> (Option<Instant>, u64) {
        let late = now.saturating_duration_since(tick);
        let periods = late.as_nanos() / period.as_nanos();
        let left_out = u64::try_from(periods).unwrap_or(u64::MAX);
        match self {
            MissedTickBehavior::Burst => (tick.checked_add(period), 0),
            MissedTickBehavior::Delay => (now.checked_add(period), left_out),
            MissedTickBehavior::Skip => {
                let into = late.as_nanos() % period.as_nanos();
                (now.checked_add(period - nanos(into)), left_out)
            }
        }
    }
}

/// A duration of less than a `Duration::MAX`, of nanoseconds that do not fit 64 bits.
fn nanos(nanos: u128) -> Duration {
    const PER_SECOND: u128 = 1_000_000_000;
    Duration::new((nanos / PER_SECOND) as u64, (nanos % PER_SECOND) as u32)
}
