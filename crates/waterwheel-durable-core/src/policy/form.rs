//! What do users write as a policy, in a file of settings for example?

use std::time::Duration;

use serde::Deserialize;

use super::{BackOff, InvalidPolicy, Policy, Rate};

/// All that a policy may have. A field with a slip in its name would leave a namespace without the limit that was meant.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Form {
    retry_delays: Option<Vec<Duration>>,
    back_off: Option<BackOff>,
    concurrency: Option<usize>,
    rate: Option<Rate>,
    priority: Option<u32>,
    insert_rate: Option<Rate>,
    retention: Option<u32>,
    starts: Option<u32>,
}

impl TryFrom<Form> for Policy {
    type Error = InvalidPolicy;

    fn try_from(form: Form) -> Result<Policy, InvalidPolicy> {
        let Form {
            retry_delays,
            back_off,
            concurrency,
            rate,
            priority,
            insert_rate,
            retention,
            starts,
        } = form;
        if retry_delays.is_some() && back_off.is_some() {
            return Err(InvalidPolicy {
                field: "back_off",
                why: "it replaces `retry_delays`, so give only one of them",
            });
        }
        let policy = Policy {
            retry_delays,
            back_off,
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
