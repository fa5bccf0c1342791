use std::sync::Arc;

use serde::{Deserialize, Serialize};
use waterwheel_cron::Schedule;
use waterwheel_durable_core::store::Due;

use super::cron::Cron;
use super::error::CalendarError;
use waterwheel_durable_core::engine::calendar::{Cursor, Misfire, Plan, Progress};

/// The version of the stored form. Newer versions are not read.
const VERSION: u32 = 1;

/// A calendar in the store: the definition and the progress. Times are milliseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct Form {
    version: u32,
    number: u32,
    cursor: i64,
    civil: i64,
    rules: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    aside: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<i64>,
    calendar: Definition,
}

/// The user's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    pub(super) expression: String,
    pub(super) zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<i64>,
    misfire: Misfire,
    pub(super) handler: String,
    payload: Payload,
}

/// Text payloads stay readable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Payload {
    Text(String),
    Bytes(Vec<u8>),
}

/// Why a stored form cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The calendar's number, which no other calendar may get.
    pub(crate) number: Option<u32>,
    pub(crate) why: String,
}

impl Definition {
    pub(super) fn new(
        schedule: &Schedule,
        zone: &str,
        misfire: Misfire,
        handler: &str,
        payload: &[u8],
    ) -> Definition {
        Definition {
            expression: schedule.expression().to_owned(),
            // In the spelling of the database: the case in which a user writes a zone makes no difference.
            zone: schedule.zone().iana_name().unwrap_or(zone).to_owned(),
            from: None,
            until: None,
            misfire,
            handler: handler.to_owned(),
            payload: match std::str::from_utf8(payload) {
                Ok(text) => Payload::Text(text.to_owned()),
                Err(_) => Payload::Bytes(payload.to_vec()),
            },
        }
    }

    /// Builds the engine's plan of the calendar.
    pub(super) fn plan(self, schedule: Schedule) -> Plan {
        Plan {
            definition: to_json(&self).into(),
            times: to_json(&(&self.expression, &self.zone, self.from, self.until)).into(),
            handler: self.handler.as_str().into(),
            payload: match &self.payload {
                Payload::Text(text) => text.as_bytes().into(),
                Payload::Bytes(bytes) => bytes.as_slice().into(),
            },
            misfire: self.misfire,
            occurrences: Arc::new(Cron {
                schedule,
                definition: self,
            }),
        }
    }
}

pub(super) fn write(definition: &Definition, progress: &Progress) -> Arc<[u8]> {
    let Progress { number, cursor } = progress;
    let form = Form {
        version: VERSION,
        number: *number,
        cursor: cursor.at.as_millis(),
        civil: cursor.civil,
        rules: cursor.rules,
        aside: cursor.aside.map(Due::as_millis),
        last: cursor.last.map(Due::as_millis),
        calendar: definition.clone(),
    };
    to_json(&form).into_bytes().into()
}

/// Reads a stored calendar.
///
/// # Errors
///
/// A message: the form is newer or invalid, or this machine does not know the time zone.
pub(crate) fn read(stored: &[u8]) -> Result<(Plan, Progress), Unreadable> {
    /// The fields that every version of the form has.
    #[derive(Deserialize)]
    struct Common {
        version: u32,
        number: u32,
    }
    let common = serde_json::from_slice(stored);
    let number = common.as_ref().ok().map(|it: &Common| it.number);
    let unreadable = |why| Unreadable { number, why };
    let damaged =
        |error: serde_json::Error| unreadable(format!("its stored form is damaged: {error}"));
    let version = common.map_err(damaged)?.version;
    if version > VERSION {
        return Err(unreadable(format!(
            "it is stored in format {version}, but this version reads formats up to {VERSION}"
        )));
    }
    let form: Form = serde_json::from_slice(stored).map_err(damaged)?;
    let Definition {
        expression, zone, ..
    } = &form.calendar;
    let schedule = Schedule::parse(expression, zone);
    let schedule =
        schedule.map_err(|it| unreadable(CalendarError::of_schedule(&it).to_string()))?;
    let cursor = Cursor {
        at: Due::from_millis(form.cursor),
        civil: form.civil,
        rules: form.rules,
        aside: form.aside.map(Due::from_millis),
        last: form.last.map(Due::from_millis),
    };
    let progress = Progress {
        number: form.number,
        cursor,
    };
    Ok((form.calendar.plan(schedule), progress))
}

/// These values are maps with strings as keys, so serializing them cannot fail.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
