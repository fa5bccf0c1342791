use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::backoff::{Backoff, LONGEST_DELAY};
use super::invalid::InvalidPolicy;

/// The maximum number of retry delays, and of attempts.
const MAX_ATTEMPTS: u32 = 1_000;

/// When a failed timer is retried, and how often.
///
/// The setting of a timer takes precedence over that of its handler, which takes precedence over that of its namespace, and
/// that over the default of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retries {
    /// The delays after the first, second, … failure. A failure after the last delay is final.
    RetryDelays(Vec<Duration>),
    /// Exponential backoff.
    Backoff(Backoff),
}

impl Retries {
    /// Returns the delay after another failure, or `None` if that was the last attempt. `failures` counts those before it,
    /// and `chance` is a random number.
    pub(crate) fn delay(&self, failures: u32, chance: u64) -> Option<Duration> {
        match self {
            Retries::RetryDelays(delays) => delays.get(failures as usize).copied(),
            Retries::Backoff(backoff) => {
                backoff.delay_with_jitter(failures.saturating_add(1), chance)
            }
        }
    }

    /// Checks that the values are allowed.
    ///
    /// # Errors
    ///
    /// [`InvalidPolicy`], for the field of a policy that would have these values.
    pub fn check(&self) -> Result<(), InvalidPolicy> {
        let field = "retry_delays";
        match self {
            Retries::RetryDelays(delays) if delays.len() > MAX_ATTEMPTS as usize => {
                let why = "it must have at most 1 000 delays";
                Err(InvalidPolicy { field, why })
            }
            Retries::RetryDelays(delays) if delays.iter().any(|it| *it > LONGEST_DELAY) => {
                let why = "each delay must be at most a year";
                Err(InvalidPolicy { field, why })
            }
            Retries::RetryDelays(_) => Ok(()),
            Retries::Backoff(backoff) => backoff.check(MAX_ATTEMPTS),
        }
    }

    /// Returns the stored form: JSON.
    #[must_use]
    pub fn to_stored(&self) -> Vec<u8> {
        // This cannot fail: JSON can represent all durations and numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the stored form. `None` if it is invalid, or of a newer version.
    #[must_use]
    pub fn from_stored(value: &[u8]) -> Option<Retries> {
        let retries: Retries = serde_json::from_slice(value).ok()?;
        retries.check().is_ok().then_some(retries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_read_as_they_are_stored() {
        let second = Duration::from_secs(1);
        for (retries, text) in [
            (Retries::RetryDelays(vec![]), r#"{"retry_delays":[]}"#),
            (
                Retries::RetryDelays(vec![second]),
                r#"{"retry_delays":[{"secs":1,"nanos":0}]}"#,
            ),
            (
                Retries::Backoff(Backoff::new(second, second * 60).max_attempts(7)),
                r#"{"backoff":{"first":{"secs":1,"nanos":0},"max":{"secs":60,"nanos":0},"max_attempts":7}}"#,
            ),
        ] {
            assert_eq!(std::str::from_utf8(&retries.to_stored()), Ok(text));
            assert_eq!(Retries::from_stored(text.as_bytes()), Some(retries));
        }
        let year = r#"{"retry_delays":[{"secs":999999999,"nanos":0}]}"#;
        for wrong in ["", "{}", r#"{"never":1}"#, r#"{"retry_delays":[1]}"#, year] {
            assert_eq!(Retries::from_stored(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
