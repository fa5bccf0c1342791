use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::invalid::InvalidPolicy;

/// The longest delay after a failure: 366 days.
pub const LONGEST_DELAY: Duration = Duration::from_secs(366 * 86_400);

/// An exponential backoff: how long a timer waits before a failed delivery is retried.
///
/// The delay is `first` after the first failure and doubles with every further failure, up to `max`. Each delay is
/// randomized (jitter) to between half of its value and its full value, so that timers that fail together are not
/// retried together: unlike the jobs of a scheduler, thousands of timers share one policy. Apart from that,
/// `waterwheel-schedule` has the same backoff.
///
/// ```
/// use std::time::Duration;
/// # use waterwheel_durable_core::policy as waterwheel_durable;
/// use waterwheel_durable::{Backoff, Policy};
///
/// let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5)).max_attempts(5);
/// let delays: Vec<_> = (1..).map_while(|failures| backoff.delay(failures)).collect();
/// assert_eq!(delays, [1, 2, 4, 5].map(Duration::from_secs));
///
/// let policy = Policy::default().backoff(backoff);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Backoff {
    first: Duration,
    max: Duration,
    max_attempts: u32,
}

impl Backoff {
    /// Creates a backoff that waits `first` after the first failure, and at most `max`, with 20 attempts. Both are longer
    /// than 0 and at most a year.
    pub fn new(first: Duration, max: Duration) -> Backoff {
        Backoff {
            first,
            max,
            max_attempts: 20,
        }
    }

    /// Sets the number of attempts, including the first: from 1 to 1 000. If the last attempt fails, the timer becomes
    /// a dead letter.
    ///
    /// The default is 20: after that many failures in a row, the reason is usually one that no retry removes, and should be
    /// noticed.
    pub fn max_attempts(mut self, attempts: u32) -> Backoff {
        self.max_attempts = attempts;
        self
    }

    /// Returns the delay after `failures` failures in a row, counted from 1, before the jitter shortens it, or `None` if
    /// that was the last attempt.
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

    /// Returns a [delay](Backoff::delay) with its jitter, given an arbitrary number `chance`.
    pub(crate) fn delay_with_jitter(&self, failures: u32, chance: u64) -> Option<Duration> {
        let half = self.delay(failures)? / 2;
        // A fraction with 16 bits is fine enough.
        let part = (chance & 0xffff) as u32;
        Some(half + half.mul_f64(f64::from(part) / 65_536.0))
    }

    pub(super) fn check(&self, max_attempts: u32) -> Result<(), InvalidPolicy> {
        let why = if self.max_attempts == 0 || self.max_attempts > max_attempts {
            "it must have 1 to 1 000 attempts"
        } else if self.first.is_zero() {
            "the first delay must be longer than 0"
        } else if self.max < self.first {
            "the maximum delay must not be shorter than the first"
        } else if self.max > LONGEST_DELAY {
            "the maximum delay must be at most a year"
        } else {
            return Ok(());
        };
        Err(InvalidPolicy {
            field: "backoff",
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_after_each_of_a_thousand_failures() {
        let year = LONGEST_DELAY;
        for first in [1, 999, 1_000_000, 3_000_000_007, 10_000_000_000] {
            for max in [
                Duration::from_nanos(first),
                Duration::from_secs(3_600),
                year,
            ] {
                let max = max.max(Duration::from_nanos(first));
                let backoff = Backoff::new(Duration::from_nanos(first), max).max_attempts(1_000);
                let mut whole = Duration::from_nanos(first);
                for failures in 1..1_000 {
                    assert_eq!(
                        backoff.delay(failures),
                        Some(whole),
                        "{first} ns, {failures}"
                    );
                    let min = backoff.delay_with_jitter(failures, 0);
                    assert_eq!(min, Some(whole / 2), "{first} ns, after {failures}");
                    whole = (whole * 2).min(max);
                }
                assert_eq!(backoff.delay(1_000), None);
                assert_eq!(backoff.delay_with_jitter(1_000, 0), None);
            }
        }
    }

    #[test]
    fn delays_double_up_to_the_maximum() {
        let seconds = Duration::from_secs;
        let backoff = Backoff::new(seconds(10), seconds(100)).max_attempts(70);
        for (failures, whole) in [(1, 10), (2, 20), (4, 80), (5, 100), (41, 100), (69, 100)] {
            let min = backoff.delay_with_jitter(failures, 0).unwrap();
            let max = backoff.delay_with_jitter(failures, u64::MAX).unwrap();
            assert_eq!(min, seconds(whole) / 2, "after {failures}");
            assert!(max > seconds(whole).mul_f64(0.999) && max <= seconds(whole));
        }
        assert_eq!(backoff.delay_with_jitter(70, 0), None);
        let once = Backoff::new(seconds(1), seconds(1)).max_attempts(1);
        assert_eq!(once.delay_with_jitter(1, 0), None);
    }
}
