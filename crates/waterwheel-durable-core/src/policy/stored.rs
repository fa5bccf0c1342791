//! How does a policy lie in the store? In the words in which users write it: files have these, and a test pins them.

use super::Policy;

impl Policy {
    /// As it is stored: JSON.
    pub(crate) fn to_stored(&self) -> Vec<u8> {
        // Durations and numbers: there is nothing that JSON does not have.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// As it was stored. `None` if that makes no sense. A field that is not known is one of a newer version: it may be a limit, so such a policy cannot be read.
    pub(crate) fn from_stored(value: &[u8]) -> Option<Policy> {
        serde_json::from_slice(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{BackOff, Rate};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_policy_is_read_as_it_is_stored() {
        let retry_delays = Policy::default()
            .retry_delays([SECOND, Duration::from_millis(1)])
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
                retry_delays,
                r#"{"retry_delays":[{"secs":1,"nanos":0},{"secs":0,"nanos":1000000}],"starts":4}"#,
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
