//! Which namespaces does the file have, and how are they served?

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use waterwheel_durable_core::limits::{PAUSED_SETTING, POLICY_SETTING};
use waterwheel_durable_core::store::{Due, Scope, Setting};
use waterwheel_durable_sqlite::{Count, Reader};

use super::stats::Counts;
use crate::arguments::Json;
use crate::failure::Failure;
use crate::output::Output;
use crate::submit::namespaces;
use crate::table::{self, Column};
use crate::{text, time};

/// The prefix of a calendar's name in the name of its setting.
const CALENDAR: &str = "calendar/";

/// The field of a policy that is a number of days.
const RETENTION: &str = "retention";

const COLUMNS: [Column; 7] = [
    Column::cut("NAMESPACE", 12),
    Column::number("PENDING"),
    Column::number("OVERDUE"),
    Column::text("OLDEST"),
    Column::number("DEAD"),
    Column::text("PAUSED"),
    Column::cut("POLICY", 12),
];

const CALENDAR_COLUMNS: [Column; 5] = [
    Column::cut("CALENDAR", 12),
    Column::cut("EXPRESSION", 12),
    Column::cut("ZONE", 12),
    Column::cut("HANDLER", 12),
    Column::text("LAST"),
];

#[derive(Serialize)]
struct Listed {
    namespaces: Vec<Namespace>,
    calendars: Vec<Calendar>,
}

#[derive(Serialize)]
struct Namespace {
    namespace: String,
    is_created: bool,
    is_paused: bool,
    policy: Option<Value>,
    #[serde(flatten)]
    counts: Counts,
    handlers: Vec<String>,
}

#[derive(Serialize)]
struct Calendar {
    calendar: String,
    expression: Option<String>,
    zone: Option<String>,
    handler: Option<String>,
    last: Option<String>,
    setting: Value,
}

impl Calendar {
    /// Reads the fields of a calendar's setting. A setting in an unknown format is shown as it is, without fields.
    fn new(name: &str, value: &[u8]) -> Calendar {
        let setting = json(value);
        let field = |field| Some(setting.get("calendar")?.get(field)?.as_str()?.to_owned());
        let last = setting.get("last").and_then(Value::as_i64);
        Calendar {
            calendar: name.to_owned(),
            expression: field("expression"),
            zone: field("zone"),
            handler: field("handler"),
            last: last.map(|last| time::iso(Due::from_millis(last))),
            setting,
        }
    }

    fn cells(&self) -> Vec<String> {
        let cell = |text: &Option<String>| text::clean(text.as_deref().unwrap_or("-"));
        vec![
            text::clean(&self.calendar),
            cell(&self.expression),
            cell(&self.zone),
            cell(&self.handler),
            cell(&self.last),
        ]
    }
}

pub(crate) fn run(reader: &Reader, args: &Json, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let settings = reader.settings()?;
    let counts = reader.count(now)?;
    let created: Vec<_> = namespaces(settings.iter().map(|it| &*it.name)).collect();
    let of_handlers = counts.iter().map(|it| Scope::namespace_of(&it.handler));
    let names: BTreeSet<&str> = created.iter().copied().chain(of_handlers).collect();
    let list = names.into_iter().map(|name| {
        let scope = Scope::Namespace(name);
        let own = counts
            .iter()
            .filter(move |count| scope.contains(&count.handler));
        Namespace {
            namespace: name.to_owned(),
            is_created: created.contains(&name),
            is_paused: value(&settings, PAUSED_SETTING, name).is_some(),
            policy: value(&settings, POLICY_SETTING, name).map(json),
            counts: Counts::of(own.clone(), now),
            handlers: own.map(|count: &Count| count.handler.to_string()).collect(),
        }
    });
    let list: Vec<_> = list.collect();
    let calendars = settings.iter().filter_map(|setting| {
        let name = setting.name.strip_prefix(CALENDAR)?;
        Some(Calendar::new(name, &setting.value))
    });
    let calendars: Vec<_> = calendars.collect();
    if args.json {
        return output.json(&Listed {
            namespaces: list,
            calendars,
        });
    }
    let cells = |it: &Namespace| {
        vec![
            text::clean(&it.namespace),
            it.counts.pending.to_string(),
            it.counts.overdue.to_string(),
            it.counts.oldest(now),
            it.counts.dead.to_string(),
            if it.is_paused { "yes" } else { "-" }.to_owned(),
            match &it.policy {
                Some(policy) => text::clean(&summary(policy)),
                None if it.is_created => "-".to_owned(),
                None => "not created".to_owned(),
            },
        ]
    };
    let rows: Vec<_> = list.iter().map(cells).collect();
    table::print(output, &COLUMNS, &rows)?;
    if !calendars.is_empty() {
        output.line("")?;
        let rows: Vec<_> = calendars.iter().map(Calendar::cells).collect();
        table::print(output, &CALENDAR_COLUMNS, &rows)?;
    }
    Ok(())
}

fn value<'a>(settings: &'a [Setting], prefix: &str, name: &str) -> Option<&'a [u8]> {
    let is_it = |setting: &&Setting| setting.name.strip_prefix(prefix) == Some(name);
    settings.iter().find(is_it).map(|setting| &*setting.value)
}

/// Parses a value. If it is not JSON, it is shown as text.
fn json(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| text::of_bytes(value).0.into())
}

/// The fields of a policy on one line: `concurrency 32, rate 100 in 1 s`.
fn summary(policy: &Value) -> String {
    match policy {
        Value::Object(fields) if fields.is_empty() => "-".to_owned(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| match (name.as_str(), value.as_u64()) {
                (RETENTION, Some(1)) => format!("{name} 1 day"),
                (RETENTION, Some(days)) => format!("{name} {days} days"),
                _ => format!("{name} {}", of_field(value)),
            });
            fields.collect::<Vec<_>>().join(", ")
        }
        other => of_field(other),
    }
}

fn of_field(value: &Value) -> String {
    if let Some(millis) = duration(value) {
        return time::span(millis);
    }
    match value {
        Value::String(text) => text.clone(),
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
