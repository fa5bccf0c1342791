//! How a namespace is served, and how fast timers may be inserted.
//!
//! | file | question |
//! |---|---|
//! | `invalid` | which field has a value that is not allowed? |
//! | `rate` | how many per unit of time? |
//! | `backoff` | how long does a timer wait after a failure, with exponential backoff? |
//! | `retries` | when is a timer retried, and how often? |
//!
//! A policy is stored in the same words that users write, for example in a configuration file.

mod backoff;
mod invalid;
mod rate;
mod retries;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use backoff::{Backoff, LONGEST_DELAY};
pub use invalid::InvalidPolicy;
pub use rate::Rate;
pub use retries::Retries;

/// How many unclean ends of the process in a row are needed before starts are noted.
pub(crate) const NOTED_FROM: u32 = 2;

/// At how many unclean ends a timer may have been with its handler, unless its policy sets this.
pub(crate) const STARTS: u32 = 5;

/// The longest retention: ten years.
const LONGEST_RETENTION: u32 = 3_660;

/// The settings of a namespace: its retries, limits and retention.
///
/// A policy is stored with the timers. Settings that it does not contain are those of [`Policy::default`].
///
/// ```
/// use std::time::Duration;
/// # use waterwheel_durable_core::policy as waterwheel_durable;
/// use waterwheel_durable::{Backoff, Policy, Rate};
///
/// let policy = Policy::default()
///     .backoff(Backoff::new(Duration::from_secs(15), Duration::from_secs(3600)).max_attempts(12))
///     .concurrency(32)
///     .rate(Rate::per_second(100).burst(20))
///     .priority(3)
///     .insert_rate(Rate::per_second(5_000))
///     .retention(7);
/// ```
///
/// With serde, a policy is a map with the names of these methods as keys, for example in a configuration file. An
/// unknown field, or a value that `Durable::create_namespace` would refuse, is an error that
/// names the field.
///
/// ```
/// # use std::time::Duration;
/// # use waterwheel_durable_core::policy::{Policy, Rate};
/// let text = r#"{ "concurrency": 32, "rate": { "count": 100, "per": { "secs": 1, "nanos": 0 }, "burst": 20 } }"#;
/// let policy: Policy = serde_json::from_str(text)?;
/// assert_eq!(policy, Policy::default().concurrency(32).rate(Rate::per_second(100).burst(20)));
///
/// let error = serde_json::from_str::<Policy>(r#"{ "concurency": 32 }"#).unwrap_err();
/// assert!(error.to_string().contains("unknown field `concurency`"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
#[must_use]
pub struct Policy {
    pub(crate) retries: Option<Retries>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) rate: Option<Rate>,
    pub(crate) priority: Option<u32>,
    pub(crate) insert_rate: Option<Rate>,
    pub(crate) retention: Option<u32>,
    pub(crate) starts: Option<u32>,
}

impl Policy {
    /// Sets the retry schedule: the delays after the first, second, … failure of a timer. There are at most 1 000
    /// delays of at most a year each. A failure after the last delay makes the timer a dead letter. Replaces a
    /// [backoff](Policy::backoff).
    ///
    /// The retries of a timer, and those of its handler, take precedence. Default: the schedule of the service
    /// (`Builder::retry_delays`).
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Policy {
        self.retries = Some(Retries::RetryDelays(delays.into_iter().collect()));
        self
    }

    /// Sets exponential backoff in place of a retry schedule. `None` selects the schedule of the service
    /// (`Builder::retry_delays`). The retries of a timer, and those of its handler, take precedence.
    pub fn backoff(mut self, backoff: impl Into<Option<Backoff>>) -> Policy {
        self.retries = backoff.into().map(Retries::Backoff);
        self
    }

    /// Sets the number of concurrent deliveries of the namespace, across all of its handlers; at least one. Default,
    /// and `None`: limited only by its handlers.
    pub fn concurrency(mut self, deliveries: impl Into<Option<usize>>) -> Policy {
        self.concurrency = deliveries.into();
        self
    }

    /// Sets the rate at which deliveries start, including retries. A delivery that has to wait uses up no attempt, and
    /// delays no other namespace. Default, and `None`: no limit.
    pub fn rate(mut self, rate: impl Into<Option<Rate>>) -> Policy {
        self.rate = rate.into();
        self
    }

    /// Sets the namespace's share of the service's concurrency (`Builder::concurrency`) when that is exhausted,
    /// from 1 to 1 000: a namespace of priority 3 starts three deliveries for each one of a namespace of priority 1. No
    /// namespace starves. Default, and `None`: 1.
    pub fn priority(mut self, share: impl Into<Option<u32>>) -> Policy {
        self.priority = share.into();
        self
    }

    /// Sets a quota: the rate at which timers may be inserted. Inserts beyond it fail with
    /// `Error::Quota`. The timers of calendars do not count. Default, and `None`: no quota.
    ///
    /// An insert uses up its part of the quota when it is called, even if it returns
    /// `Inserted::Existing` or fails later.
    pub fn insert_rate(mut self, rate: impl Into<Option<Rate>>) -> Policy {
        self.insert_rate = rate.into();
        self
    }

    /// Sets for how many days, up to 3 660, a record of each delivered timer is archived. During that time its
    /// key stays taken. Days are in UTC, and the day of the delivery is not counted. Default:
    /// 0, so that nothing is archived, and a key becomes free when its timer is settled.
    ///
    /// Lowering the retention, or setting another policy without it, immediately deletes the records that have been
    /// archived for longer, and frees their keys. This cannot be undone: to change a policy, start from
    /// `Namespace::policy`.
    ///
    /// Nothing expires during the first ten minutes after the store was opened, and after the wall clock was set by a
    /// second or more, so that a temporarily wrong clock deletes nothing. A timer that is settled while the clock is
    /// wrong is archived under that wrong day: the operator's guide, `docs/operators.md`, describes the consequences.
    pub fn retention(mut self, days: impl Into<Option<u32>>) -> Policy {
        self.retention = days.into();
        self
    }

    /// Sets at how many unclean exits of the process in a row, at least 4, a timer may have been with its handler
    /// before it becomes a dead letter, because it may be what ends the process. Default: 5.
    ///
    /// An exit is unclean if there was no shutdown before it: an abort, a kill, a power
    /// failure, or the `SIGTERM` of a deployment if the program does not handle it. The operator's guide,
    /// `docs/operators.md`, explains how to find such a timer.
    ///
    /// The only evidence against the timer is that it was with its handler at each of these exits. A timer that takes
    /// minutes may therefore become a dead letter because of another timer, or of something else that ends the process
    /// each time. Put handlers that take long into a namespace that allows more starts, for example 50.
    pub fn starts(mut self, starts: impl Into<Option<u32>>) -> Policy {
        self.starts = starts.into();
        self
    }

    /// Checks that the values are allowed.
    ///
    /// # Errors
    ///
    /// Returns an [`InvalidPolicy`] that names the first field whose value is not allowed.
    pub fn check(&self) -> Result<(), InvalidPolicy> {
        let Policy {
            retries,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        } = self;
        let wrong = |field, why| Err(InvalidPolicy { field, why });
        if let Some(retries) = retries {
            retries.check()?;
        }
        if *concurrency == Some(0) {
            return wrong(
                "concurrency",
                "it must be at least 1; to deliver nothing, pause the namespace",
            );
        }
        if insert_rate.is_some_and(|it| it.count == 0) {
            // A pause does not refuse inserts, so this message does not suggest one.
            return wrong("insert_rate", "it must allow at least 1 per period");
        }
        for (field, rate) in [("rate", *rate), ("insert_rate", *insert_rate)] {
            if let Some(why) = rate.and_then(Rate::wrong) {
                return wrong(field, why);
            }
        }
        if priority.is_some_and(|it| !(1..=1_000).contains(&it)) {
            return wrong("priority", "it must be from 1 to 1 000");
        }
        if retention.is_some_and(|days| days > LONGEST_RETENTION) {
            return wrong("retention", "it must be at most 3 660 days");
        }
        // Two that are not noted, one with other timers running, and one alone.
        if starts.is_some_and(|starts| starts < NOTED_FROM + 2) {
            return wrong(
                "starts",
                "it must be at least 4, or a timer could become a dead letter because of another one",
            );
        }
        Ok(())
    }
}

impl Policy {
    /// The stored form: JSON.
    pub fn to_stored(&self) -> Vec<u8> {
        // This cannot fail: JSON can represent all durations and numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the stored form. `None` if it is invalid. An unknown field comes from a newer version and may be a limit, so such a policy cannot be read.
    pub fn from_stored(value: &[u8]) -> Option<Policy> {
        serde_json::from_slice(value).ok()
    }
}

/// All fields that a policy may have. A misspelled field must be an error, or the namespace would lack the intended limit.
#[derive(Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Form {
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delays: Option<Vec<Duration>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<u32>,
}

impl From<Policy> for Form {
    fn from(policy: Policy) -> Form {
        let Policy {
            retries,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        } = policy;
        let (retry_delays, backoff) = match retries {
            Some(Retries::RetryDelays(delays)) => (Some(delays), None),
            Some(Retries::Backoff(backoff)) => (None, Some(backoff)),
            None => (None, None),
        };
        Form {
            retry_delays,
            backoff,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        }
    }
}

impl TryFrom<Form> for Policy {
    type Error = InvalidPolicy;

    fn try_from(form: Form) -> Result<Policy, InvalidPolicy> {
        let Form {
            retry_delays,
            backoff,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        } = form;
        let retries = match (retry_delays, backoff) {
            (None, None) => None,
            (Some(delays), None) => Some(Retries::RetryDelays(delays)),
            (None, Some(backoff)) => Some(Retries::Backoff(backoff)),
            (Some(_), Some(_)) => {
                return Err(InvalidPolicy {
                    field: "backoff",
                    why: "it replaces `retry_delays`, so give only one of them",
                });
            }
        };
        let policy = Policy {
            retries,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        };
        policy.check()?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_limit_of_a_policy_can_be_lifted() {
        let full = Policy::default()
            .backoff(Backoff::new(SECOND, SECOND))
            .concurrency(3)
            .rate(Rate::per_second(5))
            .priority(7)
            .insert_rate(Rate::per_minute(9))
            .retention(30)
            .starts(9);
        // Fields that are not set stay unchanged.
        let without_rate = full.clone().rate(None);
        assert_eq!(without_rate.rate(Rate::per_second(5)), full);
        let lifted = full
            .backoff(None)
            .concurrency(None)
            .rate(None)
            .priority(None)
            .insert_rate(None)
            .retention(None)
            .starts(None);
        assert_eq!(lifted, Policy::default());
    }

    #[test]
    fn a_policy_that_makes_no_sense_names_the_field() {
        let rate = |rate| (Policy::default().rate(rate), "rate");
        for (policy, expected) in [
            (Policy::default().concurrency(0), "concurrency"),
            rate(Rate::per_second(0)),
            rate(Rate::per_second(5).burst(0)),
            rate(Rate::new(1, Duration::ZERO)),
            rate(Rate::new(1, SECOND * 86_400 * 366)),
            rate(Rate::per_minute(1).burst(u32::MAX)),
            (
                Policy::default().insert_rate(Rate::per_second(0)),
                "insert_rate",
            ),
            (Policy::default().priority(0), "priority"),
            (Policy::default().priority(1_001), "priority"),
            (Policy::default().retention(3_661), "retention"),
            (Policy::default().starts(3), "starts"),
            (
                Policy::default().retry_delays(vec![SECOND; 1_001]),
                "retry_delays",
            ),
            (
                Policy::default().retry_delays([SECOND, Duration::MAX]),
                "retry_delays",
            ),
            (
                Policy::default().backoff(Backoff::new(SECOND, SECOND * 367 * 86_400)),
                "backoff",
            ),
            (
                Policy::default().backoff(Backoff::new(SECOND, SECOND).max_attempts(0)),
                "backoff",
            ),
            (
                Policy::default().backoff(Backoff::new(SECOND * 2, SECOND)),
                "backoff",
            ),
            (
                Policy::default().backoff(Backoff::new(Duration::ZERO, SECOND)),
                "backoff",
            ),
        ] {
            let Err(InvalidPolicy { field, .. }) = policy.check() else {
                panic!("{policy:?} is taken");
            };
            assert_eq!(field, expected, "{policy:?}");
        }
    }

    #[test]
    fn a_policy_is_read_as_it_is_stored() {
        let retry_delays = Policy::default()
            .retry_delays([SECOND, Duration::from_millis(1)])
            .starts(4);
        let backoff = Backoff::new(SECOND, SECOND * 60).max_attempts(7);
        let full = Policy::default()
            .backoff(backoff)
            .concurrency(3)
            .rate(Rate::new(5, SECOND).burst(9))
            .priority(7)
            .insert_rate(Rate::per_minute(9))
            .retention(30);
        // Configuration files use these words.
        for (policy, text) in [
            (Policy::default(), "{}"),
            (
                retry_delays,
                r#"{"retry_delays":[{"secs":1,"nanos":0},{"secs":0,"nanos":1000000}],"starts":4}"#,
            ),
            (
                full,
                r#"{"backoff":{"first":{"secs":1,"nanos":0},"max":{"secs":60,"nanos":0},"max_attempts":7},"concurrency":3,"rate":{"count":5,"per":{"secs":1,"nanos":0},"burst":9},"priority":7,"insert_rate":{"count":9,"per":{"secs":60,"nanos":0}},"retention":30}"#,
            ),
        ] {
            assert_eq!(std::str::from_utf8(&policy.to_stored()), Ok(text));
            assert_eq!(Policy::from_stored(text.as_bytes()), Some(policy));
        }
        // A newer version may have more limits, and ignoring a field could ignore a limit.
        let second = r#"{"secs":1,"nanos":0}"#;
        for wrong in [
            String::new(),
            r#"{"rate":1}"#.to_owned(),
            r#"{"concurrency":0}"#.to_owned(),
            r#"{"colour":1,"priority":2}"#.to_owned(),
            format!(r#"{{"rate":{{"count":2,"per":{second},"shape":3}}}}"#),
            format!(
                r#"{{"backoff":{{"first":{second},"max":{second},"max_attempts":9,"shape":3}}}}"#
            ),
        ] {
            assert_eq!(Policy::from_stored(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
