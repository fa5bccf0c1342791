use std::time::Duration;

/// The policy for a job whose run failed: the run returned an error, panicked, or exceeded its time limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// The job ends, and its handle yields the error, as in Java.
    #[default]
    End,
    /// The job continues as if the run had succeeded.
    Continue,
    /// The run is retried, with a growing delay.
    BackOff(BackOff),
}

/// An exponential backoff: how long a job waits before it retries a failed run.
///
/// The delay is `first` after the first failure and doubles with every further failure, up to `most`. A run that
/// succeeds resets it, and a job at a fixed rate is then back on its grid.
///
/// ```
/// use std::time::Duration;
/// use waterwheel_schedule::BackOff;
///
/// let back_off = BackOff::new(Duration::from_secs(1), Duration::from_secs(5)).retries(4);
/// let delays: Vec<_> = (1..).map_while(|failures| back_off.delay(failures)).collect();
/// assert_eq!(delays, [1, 2, 4, 5].map(Duration::from_secs));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackOff {
    first: Duration,
    most: Duration,
    retries: Option<u32>,
}

impl BackOff {
    /// Creates a backoff that waits `first` after the first failure, and at most `most`. The number of retries is not limited.
    #[must_use]
    pub const fn new(first: Duration, most: Duration) -> BackOff {
        BackOff {
            first,
            most,
            retries: None,
        }
    }

    /// Limits the number of retries of a run. When they are used up, the job ends with the last error.
    #[must_use]
    pub const fn retries(mut self, most: u32) -> BackOff {
        self.retries = Some(most);
        self
    }

    /// Returns the delay after `failures` failures in a row, counted from 1, or `None` if the job ends instead.
    #[must_use]
    pub fn delay(&self, failures: u32) -> Option<Duration> {
        if self.retries.is_some_and(|most| failures > most) {
            return None;
        }
        let doublings = failures.saturating_sub(1);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.most))
    }
}
