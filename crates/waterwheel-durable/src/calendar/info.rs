use std::sync::Arc;
use std::time::SystemTime;

use waterwheel_durable_core::store::Due;

use super::stored::Definition;
use waterwheel_durable_core::engine::calendar::Info;

/// The state of a calendar: see [`Durable::calendars`](crate::Durable::calendars).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalendarInfo {
    /// The full name of the calendar.
    pub name: Arc<str>,
    /// The cron expression.
    pub expression: Arc<str>,
    /// The IANA name of its time zone.
    pub zone: Arc<str>,
    /// The handler of its occurrences.
    pub handler: Arc<str>,
    /// The time of the next occurrence. `None` if there are no more.
    pub next: Option<SystemTime>,
    /// The time of the last occurrence that has become a timer.
    pub last: Option<SystemTime>,
    /// Why the calendar does not advance, if that is so: its stored form cannot be read, or its time zone is unknown on
    /// this machine. The expression, the zone and the handler are empty then. The calendar stays as it is until the file
    /// is opened by a program that can read it, or it is declared again.
    pub error: Option<Arc<str>>,
}

impl CalendarInfo {
    pub(crate) fn new(shown: Info) -> CalendarInfo {
        let definition = shown.definition.and_then(|json| {
            let definition: Result<Definition, _> = serde_json::from_str(&json);
            definition.map_err(|error| error.to_string().into())
        });
        let text = |part: fn(&Definition) -> &str| match &definition {
            Ok(definition) => part(definition).into(),
            Err(_) => Arc::default(),
        };
        CalendarInfo {
            name: shown.name,
            expression: text(|it| &it.expression),
            zone: text(|it| &it.zone),
            handler: text(|it| &it.handler),
            next: shown.next.and_then(Due::time),
            last: shown.last.and_then(Due::time),
            error: definition.err(),
        }
    }
}
