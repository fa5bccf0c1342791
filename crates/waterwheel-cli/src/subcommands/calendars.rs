//! Which calendars does the file have, and when are their next occurrences?

use std::slice::from_ref;

use serde::Serialize;
use serde_json::Value;
use waterwheel_cron::Schedule;
use waterwheel_cron::jiff::Timestamp;
use waterwheel_durable_core::engine::calendar::SETTINGS;
use waterwheel_durable_core::store::{Due, Setting};
use waterwheel_durable_sqlite::Reader;

use crate::arguments::Calendars;
use crate::failure::{Failure, chain, say};
use crate::output::Output;
use crate::table::{self, Column};
use crate::{text, time};

/// The version of the stored form.
const VERSION: u32 = 1;

const UNREADABLE: &str =
    "its stored form cannot be read: use the `waterwheel` of the service's release";

const COLUMNS: [Column; 6] = [
    Column::cut("CALENDAR", 12),
    Column::cut("EXPRESSION", 12),
    Column::cut("ZONE", 12),
    Column::cut("HANDLER", 12),
    Column::text("LAST"),
    Column::text("NEXT"),
];

/// A calendar as it is stored.
#[derive(Serialize)]
pub(super) struct Calendar {
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

    /// Returns the cells of a table: the name, expression, zone, handler, and the time of the last occurrence.
    pub(super) fn cells(&self) -> Vec<String> {
        let cell = |text: &Option<String>| text::clean(text.as_deref().unwrap_or("-"));
        vec![
            text::clean(&self.calendar),
            cell(&self.expression),
            cell(&self.zone),
            cell(&self.handler),
            cell(&self.last),
        ]
    }

    /// Whether a service of this release can read it.
    fn is_readable(&self) -> bool {
        self.setting["version"] == VERSION
    }

    /// Returns the handler and the payload of the occurrences.
    pub(super) fn target(&self) -> Result<(&str, Vec<u8>), Failure> {
        let payload = self
            .setting
            .get("calendar")
            .and_then(|it| it.get("payload"));
        let payload = payload.and_then(|it| match it {
            Value::String(text) => Some(text.as_bytes().to_vec()),
            Value::Array(bytes) => {
                let bytes = bytes.iter();
                let byte = |it: &Value| u8::try_from(it.as_u64()?).ok();
                bytes.map(byte).collect()
            }
            _ => None,
        });
        match (&self.handler, payload, self.is_readable()) {
            (Some(handler), Some(payload), true) => Ok((handler, payload)),
            _ => Err(Failure::because(format!(
                "the calendar {:?}: {UNREADABLE}",
                self.calendar
            ))),
        }
    }

    /// Returns the times of the first occurrences after this time.
    fn next(&self, now: Due, count: usize) -> Result<Vec<Due>, String> {
        let (Some(expression), Some(zone), true) =
            (&self.expression, &self.zone, self.is_readable())
        else {
            return Err(UNREADABLE.to_owned());
        };
        let schedule = Schedule::parse(expression, zone).map_err(|error| chain(&error))?;
        let limit = |field| self.setting["calendar"][field].as_i64();
        let from = limit("from").unwrap_or(i64::MIN);
        let until = limit("until").unwrap_or(i64::MAX);
        let after = now.as_millis().max(from.saturating_sub(1));
        let after = Timestamp::from_millisecond(after).map_err(|error| error.to_string())?;
        let next = schedule.upcoming(after).map(|it| it.as_millisecond());
        let next = next.take_while(|it| *it <= until).take(count);
        Ok(next.map(Due::from_millis).collect())
    }
}

/// Parses a value. If it is not JSON, it is shown as text.
pub(super) fn json(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| text::of_bytes(value).0.into())
}

/// Returns the calendars among the settings, in order of their names.
pub(super) fn among(settings: &[Setting]) -> Vec<Calendar> {
    let calendar = |setting: &Setting| {
        let name = setting.name.strip_prefix(SETTINGS)?;
        Some(Calendar::new(name, &setting.value))
    };
    settings.iter().filter_map(calendar).collect()
}

/// Returns the calendar with this name.
pub(super) fn find(reader: &Reader, name: &str) -> Result<Calendar, Failure> {
    let all = among(&reader.settings()?);
    let found = all.into_iter().find(|it| it.calendar == name);
    let missing = || format!("there is no calendar {name:?}: `calendars` lists them");
    found.ok_or_else(|| Failure::because(missing()))
}

#[derive(Serialize)]
struct Listed {
    calendars: Vec<WithNext>,
}

#[derive(Serialize)]
struct WithNext {
    #[serde(flatten)]
    calendar: Calendar,
    occurrences: Vec<String>,
    error: Option<String>,
}

impl WithNext {
    fn new(calendar: Calendar, now: Due, count: usize) -> WithNext {
        let (occurrences, error) = match calendar.next(now, count) {
            Ok(next) => (next.into_iter().map(time::iso).collect(), None),
            Err(error) => (Vec::new(), Some(error)),
        };
        WithNext {
            calendar,
            occurrences,
            error,
        }
    }

    /// Returns the rows of a table: one for each time.
    fn rows(&self) -> Vec<Vec<String>> {
        let mut next = self.occurrences.iter();
        let first = next.next().map_or("-", |it| it);
        let mut cells = self.calendar.cells();
        let rest = vec![String::new(); cells.len()];
        cells.push(first.to_owned());
        let rest = next.map(|it| [&rest[..], from_ref(it)].concat());
        [cells].into_iter().chain(rest).collect()
    }
}

pub(crate) fn run(reader: &Reader, args: &Calendars, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let calendars = among(&reader.settings()?).into_iter();
    let calendars = calendars.map(|it| WithNext::new(it, now, args.next as usize));
    let calendars: Vec<_> = calendars.collect();
    if args.json.json {
        return output.json(&Listed { calendars });
    }
    if calendars.is_empty() {
        return output.line("there are no calendars");
    }
    let rows: Vec<_> = calendars.iter().flat_map(WithNext::rows).collect();
    table::print(output, &COLUMNS, &rows)?;
    for WithNext {
        calendar, error, ..
    } in &calendars
    {
        if let Some(error) = error {
            say(&format!("the calendar {:?}: {error}", calendar.calendar));
        }
    }
    Ok(())
}
