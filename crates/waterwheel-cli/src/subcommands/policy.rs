//! Shows and changes the policy of a namespace.

use serde::Serialize;
use serde_json::Value;
use waterwheel_durable_core::limits::POLICY_SETTING;
use waterwheel_durable_core::policy::Policy;
use waterwheel_durable_core::store::{Command, PolicyChange, Setting};
use waterwheel_durable_sqlite::Reader;

use super::calendars::json;
use super::changes::{Verb, carry_out};
use crate::arguments::{PolicySet, PolicyShow};
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::submit::{namespaces, value};
use crate::{text, time};

/// The message about a policy that a newer release has written, or that is damaged.
const UNREADABLE: &str = "this release cannot read the policy, so a service of this release pauses the namespace: use the `waterwheel` of the service's release";

const VERB: Verb = Verb {
    name: "policy set",
    done: "changed the policy of",
};

/// The field of a policy that is a number of days.
const RETENTION: &str = "retention";

#[derive(Serialize)]
struct Shown<'a> {
    namespace: &'a str,
    policy: Option<Value>,
}

/// The stored policy of a namespace, or `None` if it has not been set.
fn stored<'a>(settings: &'a [Setting], namespace: &str) -> Result<Option<&'a [u8]>, Failure> {
    let mut known = namespaces(settings.iter().map(|it| &*it.name));
    if !known.any(|it| it == namespace) {
        return Err(Failure::because(format!(
            "there is no namespace {namespace:?}: `namespaces` lists them"
        )));
    }
    Ok(value(settings, POLICY_SETTING, namespace))
}

pub(crate) fn show(reader: &Reader, args: &PolicyShow, output: &mut Output) -> Result<(), Failure> {
    let settings = reader.settings()?;
    let policy = stored(&settings, &args.namespace)?;
    let is_unreadable = policy.is_some_and(|it| Policy::from_stored(it).is_none());
    let policy = policy.map(json);
    if args.json.json {
        let namespace = &args.namespace;
        return output.json(&Shown { namespace, policy });
    }
    let fields = match &policy {
        Some(policy) if !policy.is_object() => vec![("policy", of_field(policy))],
        Some(policy) => fields(policy),
        None => Vec::new(),
    };
    if fields.is_empty() {
        return output.line("all fields have their defaults");
    }
    for (name, value) in fields {
        output.line(&text::clean(&format!("{name:13} {value}")))?;
    }
    if is_unreadable {
        say(UNREADABLE);
    }
    Ok(())
}

pub(crate) fn set(reader: &Reader, args: &PolicySet, output: &mut Output) -> Result<(), Failure> {
    let settings = reader.settings()?;
    let before = match stored(&settings, &args.namespace)? {
        None => Policy::default(),
        Some(stored) => Policy::from_stored(stored).ok_or_else(|| Failure::because(UNREADABLE))?,
    };
    let policy = args.fields.set(before.clone());
    let checked = policy.check();
    checked.map_err(|error| Failure::because(error.to_string()))?;
    let commands = [Command::Policy(Box::new(PolicyChange {
        namespace: args.namespace.as_str().into(),
        before,
        policy,
    }))];
    carry_out(reader, &commands, VERB, &args.change, output)?.into_result()
}

/// Sums up a policy on one line: `concurrency 32, rate 100 per 1 s`.
pub(super) fn summary(policy: &Value) -> String {
    match policy {
        Value::Object(fields) if fields.is_empty() => "-".to_owned(),
        Value::Object(_) => {
            let fields = fields(policy).into_iter();
            let fields = fields.map(|(name, value)| format!("{name} {value}"));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => of_field(other),
    }
}

/// The fields of a policy that are set, and their values in words.
fn fields(policy: &Value) -> Vec<(&str, String)> {
    let fields = policy.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    let in_words = |(name, value)| {
        let name: &String = name;
        let value = match (name.as_str(), Value::as_u64(value)) {
            (RETENTION, Some(1)) => "1 day".to_owned(),
            (RETENTION, Some(days)) => format!("{days} days"),
            _ => of_field(value),
        };
        (name.as_str(), value)
    };
    fields.map(in_words).collect()
}

fn of_field(value: &Value) -> String {
    if let Some(millis) = duration(value) {
        return time::span(millis);
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => all.iter().map(of_field).collect::<Vec<_>>().join(" "),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| match name.as_str() {
                "count" => of_field(value),
                name => format!("{name} {}", of_field(value)),
            });
            fields.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// A duration in serde's format, in milliseconds.
fn duration(value: &Value) -> Option<u64> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    let (seconds, nanos) = (
        fields.get("secs")?.as_u64()?,
        fields.get("nanos")?.as_u64()?,
    );
    seconds.checked_mul(1_000)?.checked_add(nanos / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_summed_up_on_one_line() {
        let policy = json(
            br#"{"retry_delays":[{"secs":15,"nanos":0},{"secs":0,"nanos":5000000}],"concurrency":3,
            "rate":{"count":100,"per":{"secs":1,"nanos":0},"burst":9},"retention":null}"#,
        );
        let expected = "retry_delays 15 s 5 ms, concurrency 3, rate 100 per 1 s burst 9";
        assert_eq!(summary(&policy), expected);
        assert_eq!(summary(&json(br#"{"retention":7}"#)), "retention 7 days");
        assert_eq!(summary(&json(br#"{"retention":1}"#)), "retention 1 day");
        assert_eq!(summary(&json(b"{}")), "-");
        assert_eq!(summary(&json(b"not json")), "not json");
        assert_eq!(summary(&json(&[0xff, 7])), "ff07");
    }
}
