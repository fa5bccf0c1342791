//! How does a policy lie in the store? Apart from what users write, so that either may change without the other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BackOff, Policy, Rate};

/// JSON. A field that is not known is one of a newer version: it may be a limit, so such a policy cannot be read.
#[derive(Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Stored {
    #[serde(skip_serializing_if = "Option::is_none")]
    ladder: Option<Vec<Duration>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    back_off: Option<StoredBackOff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<StoredRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_rate: Option<StoredRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBackOff {
    first: Duration,
    longest: Duration,
    attempts: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRate {
    count: u32,
    per: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u32>,
}

impl Policy {
    /// As it is stored.
    pub(crate) fn to_stored(&self) -> Vec<u8> {
        // Whole, here and below: a field that is forgotten does not compile.
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
        let stored = Stored {
            ladder: ladder.clone(),
            back_off: back_off.as_ref().map(StoredBackOff::of),
            concurrency: *concurrency,
            rate: rate.map(StoredRate::of),
            priority: *priority,
            insert_rate: insert_rate.map(StoredRate::of),
            retention: *retention,
            starts: *starts,
        };
        // Durations and numbers: there is nothing that JSON does not have.
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// As it was stored. `None` if that makes no sense.
    pub(crate) fn from_stored(value: &[u8]) -> Option<Policy> {
        let Stored {
            ladder,
            back_off,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        } = serde_json::from_slice(value).ok()?;
        let policy = Policy {
            ladder,
            back_off: back_off.map(StoredBackOff::back_off),
            concurrency,
            rate: rate.map(StoredRate::rate),
            priority,
            insert_rate: insert_rate.map(StoredRate::rate),
            retention,
            starts,
        };
        policy.check().is_ok().then_some(policy)
    }
}

impl StoredBackOff {
    fn of(back_off: &BackOff) -> StoredBackOff {
        let BackOff {
            first,
            longest,
            attempts,
        } = *back_off;
        StoredBackOff {
            first,
            longest,
            attempts,
        }
    }

    fn back_off(self) -> BackOff {
        let StoredBackOff {
            first,
            longest,
            attempts,
        } = self;
        BackOff {
            first,
            longest,
            attempts,
        }
    }
}

impl StoredRate {
    fn of(rate: Rate) -> StoredRate {
        let Rate { count, per, burst } = rate;
        StoredRate { count, per, burst }
    }

    fn rate(self) -> Rate {
        let StoredRate { count, per, burst } = self;
        Rate { count, per, burst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_policy_is_read_as_it_is_stored() {
        let ladder = Policy::default()
            .ladder([SECOND, Duration::from_millis(1)])
            .starts(4);
        let back_off = BackOff::new(SECOND, SECOND * 60).attempts(7);
        let full = Policy::default()
            .back_off(back_off)
            .concurrency(3)
            .rate(Rate::new(5, SECOND).burst(9))
            .priority(7)
            .insert_rate(Rate::per_minute(9))
            .retention(30);
        // Files have it in these words.
        for (policy, text) in [
            (Policy::default(), "{}"),
            (
                ladder,
                r#"{"ladder":[{"secs":1,"nanos":0},{"secs":0,"nanos":1000000}],"starts":4}"#,
            ),
            (
                full,
                r#"{"back_off":{"first":{"secs":1,"nanos":0},"longest":{"secs":60,"nanos":0},"attempts":7},"concurrency":3,"rate":{"count":5,"per":{"secs":1,"nanos":0},"burst":9},"priority":7,"insert_rate":{"count":9,"per":{"secs":60,"nanos":0}},"retention":30}"#,
            ),
        ] {
            assert_eq!(std::str::from_utf8(&policy.to_stored()), Ok(text));
            assert_eq!(Policy::from_stored(text.as_bytes()), Some(policy));
        }
        // A newer version may have more limits, and a limit that is left out is none.
        let second = r#"{"secs":1,"nanos":0}"#;
        for wrong in [
            String::new(),
            r#"{"rate":1}"#.to_owned(),
            r#"{"concurrency":0}"#.to_owned(),
            r#"{"colour":1,"priority":2}"#.to_owned(),
            format!(r#"{{"rate":{{"count":2,"per":{second},"shape":3}}}}"#),
            format!(
                r#"{{"back_off":{{"first":{second},"longest":{second},"attempts":9,"shape":3}}}}"#
            ),
        ] {
            assert_eq!(Policy::from_stored(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
