use std::sync::Arc;
use std::time::SystemTime;

use waterwheel_store::Due;

use super::stored::Definition;
use crate::engine::calendar::Shown;

/// A calendar as it is: see [`Durable::calendars`](crate::Durable::calendars).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalendarInfo {
    /// The name that it was declared by.
    pub name: Arc<str>,
    /// Its cron expression.
    pub pattern: Arc<str>,
    /// The IANA name of its time zone.
    pub zone: Arc<str>,
    /// The handler of its occurrences.
    pub handler: Arc<str>,
    /// When it comes next. `None` if it does not come any more.
    pub next: Option<SystemTime>,
    /// The last occurrence that has become a timer.
    pub last: Option<SystemTime>,
    /// Why it stands still, if it does: what the file has of it cannot be read, or the machine does not know its zone. The pattern, the zone and the handler
    /// are empty then. It stays as it is until the file is opened where it can be read, or it is declared anew.
    pub error: Option<Arc<str>>,
}

impl CalendarInfo {
    pub(crate) fn new(shown: Shown) -> CalendarInfo {
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
            pattern: text(|it| &it.pattern),
            zone: text(|it| &it.zone),
            handler: text(|it| &it.handler),
            next: shown.next.and_then(Due::time),
            last: shown.last.and_then(Due::time),
            error: definition.err(),
        }
    }
}
