use std::sync::Arc;
use std::time::SystemTime;

use waterwheel_cron::Schedule;
use waterwheel_durable_core::store::Due;

use super::error::{CalendarError, CalendarField};
use super::stored::Definition;
use super::zone::timestamp;
use waterwheel_durable_core::engine::calendar::{FIRST, Misfire, Plan};
use waterwheel_durable_core::limits::{
    BEFORE_DEFAULT, CALENDAR_PAYLOAD_LIMIT, MISFIRE_LIMIT, NAME_LIMIT, is_handler_name, is_name,
    shown,
};

/// Recurring timers: a cron expression in a time zone, and what is delivered at its times. It is declared with
/// [`Durable::calendar`](crate::Durable::calendar).
///
/// ```
/// use waterwheel_durable::{Calendar, Misfire};
///
/// let nightly = Calendar::cron("0 3 * * *").zone("Europe/Berlin").misfire(Misfire::Once);
/// ```
///
/// For the syntax of expressions, time zones, and times that the wall clock skips or repeats, see
/// [`waterwheel_cron`].
#[derive(Debug, Clone)]
#[must_use = "a calendar does nothing until it is declared"]
pub struct Calendar {
    expression: Arc<str>,
    zone: Arc<str>,
    misfire: Misfire,
    from: Option<SystemTime>,
    until: Option<SystemTime>,
    handler: Option<Arc<str>>,
    payload: Result<Arc<[u8]>, Arc<str>>,
}

impl Calendar {
    /// Creates a calendar from a cron expression of five fields, or of six with the seconds first: `0 3 * * *` is every
    /// day at 3:00.
    pub fn cron(expression: &str) -> Calendar {
        Calendar {
            expression: expression.into(),
            zone: "UTC".into(),
            misfire: Misfire::default(),
            from: None,
            until: None,
            handler: None,
            payload: Ok(Arc::from([])),
        }
    }

    /// Sets the time zone, by its IANA name. Default: `UTC`.
    pub fn zone(mut self, name: &str) -> Calendar {
        self.zone = name.into();
        self
    }

    /// Sets what to do with missed occurrences. Default: [`Misfire::Once`].
    pub fn misfire(mut self, misfire: Misfire) -> Calendar {
        self.misfire = misfire;
        self
    }

    /// Sets the time before which there are no occurrences.
    pub fn from(mut self, time: SystemTime) -> Calendar {
        self.from = Some(time);
        self
    }

    /// Sets the time after which there are no occurrences. Default: the end of the year 2500, in UTC.
    pub fn until(mut self, time: SystemTime) -> Calendar {
        self.until = Some(time);
        self
    }

    /// Sets the handler of the occurrences, by its full name, or by its name within the namespace for
    /// [`Namespace::calendar`](crate::Namespace::calendar). Default: the name of the calendar.
    pub fn handler(mut self, name: &str) -> Calendar {
        self.handler = Some(name.into());
        self
    }

    /// Sets the payload of each occurrence to `value` as JSON. The handler reads it with
    /// [`Delivery::json`](crate::Delivery::json).
    pub fn payload(mut self, value: &(impl serde::Serialize + ?Sized)) -> Calendar {
        self.payload = match serde_json::to_vec(value) {
            Ok(json) => Ok(json.into()),
            Err(error) => Err(error.to_string().into()),
        };
        self
    }

    /// Sets the payload of each occurrence to these bytes; at most
    /// [`CALENDAR_PAYLOAD_LIMIT`].
    pub fn bytes(mut self, payload: impl Into<Arc<[u8]>>) -> Calendar {
        self.payload = Ok(payload.into());
        self
    }

    /// Returns the calendar with another handler, derived from the name of its own, if it has one.
    pub(crate) fn handled_by(mut self, name: impl FnOnce(&str) -> String) -> Calendar {
        self.handler = self.handler.map(|handler| name(&handler).into());
        self
    }

    /// Builds the engine's plan, or returns what is invalid.
    pub(crate) fn ready(self, name: &str) -> Result<Plan, CalendarError> {
        use CalendarField as Field;

        if !is_name(name) {
            let length = name.len();
            let message = format!("it must have 1 to {NAME_LIMIT} bytes, not {length}, and no NUL");
            return Err(CalendarError::new(Field::Name, message));
        }
        let schedule = Schedule::parse(&self.expression, &self.zone);
        let schedule = schedule.map_err(|error| CalendarError::of_schedule(&error))?;
        if timestamp(FIRST)
            .and_then(|it| schedule.next_after(it))
            .is_none()
        {
            return Err(CalendarError::never());
        }
        let misfire = self.misfire;
        if let Misfire::CatchUpTo(count) = misfire
            && !(1..=MISFIRE_LIMIT).contains(&count)
        {
            let message = format!("`CatchUpTo` must be from 1 to {MISFIRE_LIMIT}, not {count}");
            return Err(CalendarError::new(Field::Misfire, message));
        }
        let from = self.from.map(|it| millis(it, Field::From)).transpose()?;
        let until = self.until.map(|it| millis(it, Field::Until)).transpose()?;
        if let (Some(from), Some(until)) = (from, until)
            && until < from
        {
            let message = "it is before `from`, so there would be no occurrences";
            return Err(CalendarError::new(Field::Until, message));
        }
        let handler = self.handler.as_deref().unwrap_or(name);
        if !is_handler_name(handler) {
            let message = match handler.starts_with(BEFORE_DEFAULT) {
                true => format!(
                    "{:?}: handlers of the namespace `default` are named without the prefix `{BEFORE_DEFAULT}`",
                    shown(handler)
                ),
                false => {
                    format!(
                        "expected `name` or `namespace/name`, with 1 to {NAME_LIMIT} bytes and no NUL"
                    )
                }
            };
            return Err(CalendarError::new(Field::Handler, message));
        }
        let payload = self.payload.as_ref();
        let payload = payload.map_err(|error| {
            let message = format!("it cannot be serialized as JSON: {error}");
            CalendarError::new(Field::Payload, message)
        })?;
        if payload.len() > CALENDAR_PAYLOAD_LIMIT {
            let length = payload.len();
            let message = format!(
                "it has {length} bytes, but at most {CALENDAR_PAYLOAD_LIMIT} are allowed: store the data in a table of your own, and put its id into the payload"
            );
            return Err(CalendarError::new(Field::Payload, message));
        }
        let mut definition = Definition::new(&schedule, &self.zone, misfire, handler, payload);
        (definition.from, definition.until) = (from, until);
        Ok(definition.plan(schedule))
    }
}

/// Rounded up, like due times.
fn millis(time: SystemTime, field: CalendarField) -> Result<i64, CalendarError> {
    let due = Due::at_or_after(time).map(Due::as_millis);
    due.ok_or_else(|| CalendarError::new(field, "it is more than 292 million years from 1970"))
}
