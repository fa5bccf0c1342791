use std::time::Duration;

/// What becomes of a job whose run failed: it gave an error, panicked, or ran out of its time limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// The job ends, and its handle gives the error: Java's way.
    #[default]
    End,
    /// The job goes on as if the run had gone well.
    Continue,
    /// The run is tried again, later each time.
    BackOff(BackOff),
}

/// How long a job waits before it tries a failed run again: `first`, then twice as long after each failure, at most `most`.
///
/// After a run that goes well, it begins anew, and a job at a fixed rate is back on its grid.
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
    /// Waits `first` after the first failure, and at most `most`. There is no bound on the number of retries.
    #[must_use]
    pub const fn new(first: Duration, most: Duration) -> BackOff {
        BackOff {
            first,
            most,
            retries: None,
        }
    }

    /// At most so many retries of a run. Then the job ends with the last error.
    #[must_use]
    pub const fn retries(mut self, most: u32) -> BackOff {
        self.retries = Some(most);
        self
    }

    /// The wait after so many failures in a row, from 1 on; `None` if the job ends instead.
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
