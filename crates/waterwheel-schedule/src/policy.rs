//! Policies for runs that were missed and for runs that failed.

use std::time::Duration;

/// The misfire policy of a repeating job: what happens to the runs that it missed.
///
/// A job at a fixed rate or by the calendar misses runs if one run takes longer than the period, if a concurrency limit
/// holds it up, or if the machine was suspended. Quartz calls this a *misfire*. No policy shifts the grid of a fixed
/// rate: it stays `t0`, `t0 + period`, `t0 + 2 × period`. A job with a fixed delay never misses a run.
///
/// A run that starts late, but before the next one is due, is not missed. At a fixed rate, the run that the job was
/// waiting for is not missed either, however late it starts.
///
/// The default is `Skip`: a job in memory misses runs while the process is busy or suspended, the next time of the grid
/// is near, and a run that makes up for a missed one would add to the load that delayed it. (The default of durable
/// timers is `Once`, because they also miss the times at which the service was down.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Misfire {
    /// Skips the missed runs: the next run is at the first time of the grid that is still to come.
    ///
    /// Quartz calls this `MISFIRE_INSTRUCTION_DO_NOTHING`.
    #[default]
    #[doc(alias = "DO_NOTHING")]
    Skip,
    /// Coalesces the missed runs: one run starts immediately and stands for all of them. The run after it is on the grid.
    ///
    /// Quartz calls this `MISFIRE_INSTRUCTION_FIRE_ONCE_NOW`, and `APScheduler` `coalesce`.
    #[doc(alias = "coalesce")]
    #[doc(alias = "FIRE_ONCE_NOW")]
    Once,
    /// Runs the latest of the missed runs, at most this many, one after the other without a pause. By the calendar, at most 100.
    CatchUpTo(u32),
    /// Runs every missed run, one after the other without a pause, as Java's `scheduleAtFixedRate` does.
    ///
    /// Quartz calls this `MISFIRE_INSTRUCTION_IGNORE_MISFIRE_POLICY`.
    #[doc(alias = "IGNORE_MISFIRE_POLICY")]
    CatchUp,
}

/// The policy for a job whose run failed: the run returned an error, panicked, or exceeded its time limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// The job ends, and its handle yields the error, as in Java.
    #[default]
    End,
    /// The job continues as if the run had succeeded.
    Continue,
    /// The run is retried, with a growing delay, until its [attempts](Backoff::max_attempts) are used up.
    Backoff(Backoff),
}

/// An exponential backoff: how long a job waits before it retries a failed run.
///
/// The delay is `first` after the first failure and doubles with every further failure, up to `max`. A run that
/// succeeds resets it, and a job at a fixed rate is then back on its grid.
///
/// The delays have no jitter of their own: the jitter of the job is added to them, as to every other wait of that job.
/// Apart from that, durable timers have the same backoff.
///
/// ```
/// use std::time::Duration;
/// use waterwheel_schedule::Backoff;
///
/// let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5)).max_attempts(5);
/// let delays: Vec<_> = (1..).map_while(|failures| backoff.delay(failures)).collect();
/// assert_eq!(delays, [1, 2, 4, 5].map(Duration::from_secs));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    max_attempts: u32,
}

impl Backoff {
    /// Creates a backoff that waits `first` after the first failure, and at most `max`, with 20 attempts.
    #[must_use]
    pub const fn new(first: Duration, max: Duration) -> Backoff {
        Backoff {
            first,
            max,
            max_attempts: 20,
        }
    }

    /// Sets the number of attempts, including the first. If the last attempt fails, the job ends with its error.
    ///
    /// The default is 20: what fails that often in a row usually fails for a reason that no retry removes, and should be
    /// noticed. With `u32::MAX`, a job practically never gives up: use it for a repeating job that has to outlast any
    /// outage.
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Backoff {
        self.max_attempts = attempts;
        self
    }

    /// Returns the delay after `failures` failures in a row, counted from 1, or `None` if that was the last attempt.
    #[must_use]
    pub fn delay(&self, failures: u32) -> Option<Duration> {
        if failures >= self.max_attempts {
            return None;
        }
        let doubled = 1_u128
            .checked_shl(failures.saturating_sub(1))
            .and_then(|factor| self.first.as_nanos().checked_mul(factor))
            .and_then(|nanos| u64::try_from(nanos).ok());
        Some(doubled.map_or(self.max, |nanos| Duration::from_nanos(nanos).min(self.max)))
    }
}
