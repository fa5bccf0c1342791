use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{InvalidPolicy, LONGEST_DELAY};

/// Exponential backoff: delays that double with each failure, up to a maximum.
///
/// Each delay is randomized (jitter) to between half of its value and its full value, so that timers that fail together
/// are not retried together.
///
/// ```
/// use std::time::Duration;
/// use waterwheel_durable::{Backoff, Policy};
///
/// // At most 10 s, 20 s, 40 s … up to an hour; after the twelfth failure, the timer is a dead letter.
/// let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(3_600)).attempts(12);
/// let policy = Policy::default().backoff(backoff);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Backoff {
    pub(super) first: Duration,
    pub(super) longest: Duration,
    pub(super) attempts: u32,
}

impl Backoff {
    /// Creates a backoff from the `first` delay to the `longest`, which is at most a year, with 20 attempts.
    pub fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff {
            first,
            longest,
            attempts: 20,
        }
    }

    /// Sets the number of attempts, including the first: from 1 to 1 000. If the last attempt fails, the timer becomes
    /// a dead letter.
    pub fn attempts(mut self, attempts: u32) -> Backoff {
        self.attempts = attempts;
        self
    }

    pub(super) fn check(&self, max: u32) -> Result<(), InvalidPolicy> {
        let why = if self.attempts == 0 || self.attempts > max {
            "it must have 1 to 1 000 attempts"
        } else if self.first.is_zero() {
            "the first delay must be longer than 0"
        } else if self.longest < self.first {
            "the longest delay must not be shorter than the first"
        } else if self.longest > LONGEST_DELAY {
            "the longest delay must be at most a year"
        } else {
            return Ok(());
        };
        Err(InvalidPolicy {
            field: "backoff",
            why,
        })
    }

    /// The delay after so many failures before this one. `None` if it was the last attempt. `chance` is any number.
    pub(crate) fn delay(&self, failures: u32, chance: u64) -> Option<Duration> {
        if failures.saturating_add(1) >= self.attempts {
            return None;
        }
        let doubled = 1_u128
            .checked_shl(failures)
            .and_then(|times| self.first.as_nanos().checked_mul(times))
            .and_then(|nanos| u64::try_from(nanos).ok());
        let whole = doubled.map_or(self.longest, |nanos| {
            Duration::from_nanos(nanos).min(self.longest)
        });
        let half = whole / 2;
        // A part of 2¹⁶ is as even as is needed.
        let part = (chance & 0xffff) as u32;
        Some(half + half.mul_f64(f64::from(part) / 65_536.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_after_each_of_a_thousand_failures() {
        let year = LONGEST_DELAY;
        for first in [1, 999, 1_000_000, 3_000_000_007, 10_000_000_000] {
            for longest in [
                Duration::from_nanos(first),
                Duration::from_secs(3_600),
                year,
            ] {
                let longest = longest.max(Duration::from_nanos(first));
                let backoff = Backoff::new(Duration::from_nanos(first), longest).attempts(1_000);
                let mut whole = Duration::from_nanos(first);
                for failures in 0..999 {
                    let min = backoff.delay(failures, 0);
                    assert_eq!(min, Some(whole / 2), "{first} ns, after {failures}");
                    whole = (whole * 2).min(longest);
                }
                assert_eq!(backoff.delay(999, 0), None);
            }
        }
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let seconds = Duration::from_secs;
        let backoff = Backoff::new(seconds(10), seconds(100)).attempts(70);
        for (failures, whole) in [(0, 10), (1, 20), (3, 80), (4, 100), (40, 100), (68, 100)] {
            let min = backoff.delay(failures, 0).unwrap();
            let max = backoff.delay(failures, u64::MAX).unwrap();
            assert_eq!(min, seconds(whole) / 2, "after {failures}");
            assert!(max > seconds(whole).mul_f64(0.999) && max <= seconds(whole));
        }
        assert_eq!(backoff.delay(69, 0), None);
        assert_eq!(
            Backoff::new(seconds(1), seconds(1)).attempts(1).delay(0, 0),
            None
        );
    }
}
