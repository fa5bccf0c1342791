//! How is a namespace served, and what may be asked for?
//!
//! | file | question |
//! |---|---|
//! | `rate` | how many in a time? |
//! | `back_off` | how long does a timer wait after a failure? |
//! | `form` | what do users write as a policy, in a file of settings for example? |
//! | `stored` | how does it lie in the store? |

mod back_off;
mod form;
mod rate;
mod stored;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use back_off::BackOff;
pub use rate::Rate;

/// How many unclean ends of the process in a row are needed before starts are noted.
pub(crate) const NOTED_FROM: u32 = 2;

/// How many unclean ends a timer may be with its handler at, if its policy does not say.
pub(crate) const STARTS: u32 = 5;

/// The longest ladder, and the most attempts.
const MOST_ATTEMPTS: u32 = 1_000;

/// The longest delay after a failure.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(366 * 86_400);

/// How long what was delivered may be kept: ten years.
const LONGEST_RETENTION: u32 = 3_660;

/// A field of a policy that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) field: &'static str,
    pub(crate) why: &'static str,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { field, why } = self;
        write!(f, "the policy's `{field}`: {why}")
    }
}

/// How a [namespace](crate::Namespace) is served: its retries, its limits, and what is kept of it.
///
/// A policy is stored with the timers. What it does not set is as in [`Policy::default`].
///
/// ```
/// use std::time::Duration;
/// use waterwheel_durable::{BackOff, Policy, Rate};
///
/// let policy = Policy::default()
///     .back_off(BackOff::new(Duration::from_secs(15), Duration::from_secs(3600)).attempts(12))
///     .concurrency(32)
///     .rate(Rate::per_second(100).burst(20))
///     .priority(3)
///     .insert_rate(Rate::per_second(5_000))
///     .retention(7);
/// ```
///
/// By serde, a policy is a map with the names of these methods, for a file of settings. A field that there is not, and a value that
/// [`create_namespace`](crate::Durable::create_namespace) would refuse, are errors that name the field.
///
/// ```
/// # use std::time::Duration;
/// # use waterwheel_durable::{Policy, Rate};
/// let text = r#"{ "concurrency": 32, "rate": { "count": 100, "per": { "secs": 1, "nanos": 0 }, "burst": 20 } }"#;
/// let policy: Policy = serde_json::from_str(text)?;
/// assert_eq!(policy, Policy::default().concurrency(32).rate(Rate::per_second(100).burst(20)));
///
/// let error = serde_json::from_str::<Policy>(r#"{ "concurency": 32 }"#).unwrap_err();
/// assert!(error.to_string().contains("unknown field `concurency`"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "form::Form")]
#[must_use]
pub struct Policy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ladder: Option<Vec<Duration>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) back_off: Option<BackOff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insert_rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retention: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) starts: Option<u32>,
}

impl Policy {
    /// The delays after the first, second … failure of a timer, at most 1 000, of a year each at most. After the last one, a failure makes it a dead letter. In the place of a
    /// [back-off](Policy::back_off).
    ///
    /// Default: the [ladder](crate::Builder::ladder) of the service.
    pub fn ladder(mut self, delays: impl IntoIterator<Item = Duration>) -> Policy {
        self.ladder = Some(delays.into_iter().collect());
        self.back_off = None;
        self
    }

    /// Delays that double, in the place of a ladder. `None`: the [ladder](crate::Builder::ladder) of the service.
    pub fn back_off(mut self, back_off: impl Into<Option<BackOff>>) -> Policy {
        self.back_off = back_off.into();
        self.ladder = None;
        self
    }

    /// How many deliveries of the namespace, by all of its handlers, go on at a time, at least one. Default, and `None`: as many as its handlers take.
    pub fn concurrency(mut self, deliveries: impl Into<Option<usize>>) -> Policy {
        self.concurrency = deliveries.into();
        self
    }

    /// How many deliveries begin in a time. Retries are deliveries. What has to wait uses up no attempt, and delays no other namespace. Default, and
    /// `None`: no limit.
    pub fn rate(mut self, rate: impl Into<Option<Rate>>) -> Policy {
        self.rate = rate.into();
        self
    }

    /// The namespace's share of the [places](crate::Builder::concurrency) where they are short, from 1 to 1 000: one of priority 3 gets three for each one that
    /// another of priority 1 gets. None of them starves. Default, and `None`: 1.
    pub fn priority(mut self, share: impl Into<Option<u32>>) -> Policy {
        self.priority = share.into();
        self
    }

    /// How many timers may be inserted in a time: a quota. What is beyond it gets [`Error::Quota`](crate::Error::Quota). Timers of calendars do not count. Default,
    /// and `None`: no quota.
    ///
    /// An insert uses up its part of the quota as it is asked for, also if it turns out to be [`Existing`](crate::Inserted::Existing) or fails later.
    pub fn insert_rate(mut self, rate: impl Into<Option<Rate>>) -> Policy {
        self.insert_rate = rate.into();
        self
    }

    /// For so many days, up to 3 660, it is kept that and when a timer was delivered, and its [key](crate::NewTimer::key) stays taken. Days are those of UTC, and the day
    /// of the delivery is not counted. Default: 0, so nothing is kept, and a key is free when its timer is settled.
    ///
    /// A retention that is lowered, or that another policy leaves out, deletes at once what has been kept for longer, and frees its keys. There is no time in which a slip
    /// can be taken back: start another policy from [`Namespace::policy`](crate::Namespace::policy).
    ///
    /// Nothing expires in the first ten minutes after an opening, and after the wall clock was set by a second or more: a clock that is wrong for a while deletes nothing.
    /// What is settled while the clock is wrong is kept by that wrong day: the operator's guide, `docs/operators.md`, says what follows.
    pub fn retention(mut self, days: impl Into<Option<u32>>) -> Policy {
        self.retention = days.into();
        self
    }

    /// At how many unclean ends of the process in a row a timer may be with its handler, at least 4: then it is a dead letter, since it may be what ends the process. Default: 5.
    ///
    /// An end is unclean without a [shutdown](crate::Durable::shutdown): an abort, a kill, a power cut, and the `SIGTERM` of a deploy if the program does not listen to it. The
    /// operator's guide, `docs/operators.md`, says how such a timer is found.
    ///
    /// It is the timer's fault only by what can be seen: it was with its handler at each of those ends. So a timer that takes minutes may be given up for the fault of
    /// another, or of something else that ends the process each time. Handlers that take long belong in a namespace that bears more starts, 50 for example.
    pub fn starts(mut self, starts: impl Into<Option<u32>>) -> Policy {
        self.starts = starts.into();
        self
    }

    /// The first field that makes no sense.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        let Policy {
            ladder,
            back_off,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        } = self;
        let wrong = |field, why| Err(Wrong { field, why });
        if let Some(ladder) = ladder {
            if ladder.len() > MOST_ATTEMPTS as usize {
                return wrong("ladder", "it has at most 1 000 delays");
            }
            if ladder.iter().any(|delay| *delay > LONGEST_DELAY) {
                return wrong("ladder", "a delay is a year at most");
            }
        }
        if let Some(back_off) = back_off {
            back_off.check(MOST_ATTEMPTS)?;
        }
        if *concurrency == Some(0) {
            return wrong(
                "concurrency",
                "nothing would ever be delivered: at least 1, or pause the namespace",
            );
        }
        if insert_rate.is_some_and(|it| it.count == 0) {
            // A pause refuses no insert, and so it is no advice here.
            return wrong("insert_rate", "at least 1 in its time");
        }
        for (field, rate) in [("rate", *rate), ("insert_rate", *insert_rate)] {
            if let Some(why) = rate.and_then(Rate::wrong) {
                return wrong(field, why);
            }
        }
        if priority.is_some_and(|it| !(1..=1_000).contains(&it)) {
            return wrong("priority", "it is from 1 to 1 000");
        }
        if retention.is_some_and(|days| days > LONGEST_RETENTION) {
            return wrong("retention", "it is 3 660 days at most");
        }
        // Two that are not noted, one at which it was with others, and one alone.
        if starts.is_some_and(|starts| starts < NOTED_FROM + 2) {
            return wrong(
                "starts",
                "a timer would be given up for another one's fault: at least 4",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_limit_of_a_policy_can_be_lifted() {
        let full = Policy::default()
            .back_off(BackOff::new(SECOND, SECOND))
            .concurrency(3)
            .rate(Rate::per_second(5))
            .priority(7)
            .insert_rate(Rate::per_minute(9))
            .retention(30)
            .starts(9);
        // What is not named stays.
        let without_rate = full.clone().rate(None);
        assert_eq!(without_rate.rate(Rate::per_second(5)), full);
        let lifted = full
            .back_off(None)
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
            (Policy::default().ladder(vec![SECOND; 1_001]), "ladder"),
            (Policy::default().ladder([SECOND, Duration::MAX]), "ladder"),
            (
                Policy::default().back_off(BackOff::new(SECOND, SECOND * 367 * 86_400)),
                "back_off",
            ),
            (
                Policy::default().back_off(BackOff::new(SECOND, SECOND).attempts(0)),
                "back_off",
            ),
            (
                Policy::default().back_off(BackOff::new(SECOND * 2, SECOND)),
                "back_off",
            ),
            (
                Policy::default().back_off(BackOff::new(Duration::ZERO, SECOND)),
                "back_off",
            ),
        ] {
            let Err(Wrong { field, .. }) = policy.check() else {
                panic!("{policy:?} is taken");
            };
            assert_eq!(field, expected, "{policy:?}");
        }
    }
}
