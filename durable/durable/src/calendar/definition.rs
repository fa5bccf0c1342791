use std::sync::Arc;
use std::time::SystemTime;

use waterwheel_schedule::calendar::Schedule;
use waterwheel_store::Due;

use super::error::{CalendarError, CalendarField};
use super::stored::Definition;
use super::zone::timestamp;
use crate::engine::calendar::{self, FIRST, Plan};
use crate::limits::{CALENDAR_PAYLOAD_LIMIT, MISFIRE_LIMIT, NAME_LIMIT, is_handler_name};

/// When timers recur, and what is delivered then: a cron expression in a time zone. It is declared by
/// [`Durable::calendar`](crate::Durable::calendar).
///
/// ```
/// use waterwheel_durable::{Calendar, Misfire};
///
/// let nightly = Calendar::cron("0 3 * * *").zone("Europe/Berlin").misfire(Misfire::Once);
/// ```
///
/// Expressions, zones, and what becomes of a time that the wall clock leaves out or shows twice, are those of
/// [`waterwheel_schedule::calendar`].
#[derive(Debug, Clone)]
#[must_use = "a calendar has to be declared"]
pub struct Calendar {
    pattern: Arc<str>,
    zone: Arc<str>,
    misfire: Misfire,
    from: Option<SystemTime>,
    until: Option<SystemTime>,
    handler: Option<Arc<str>>,
    payload: Result<Arc<[u8]>, Arc<str>>,
}

/// What becomes of occurrences that are more than a minute late when the service notices them, because it was off, or its store refused.
///
/// What is a minute late or less counts as in time. If the first that was not noticed is in time, all of them are delivered, by any of these. If it is late,
/// [`Once`](Misfire::Once) and [`All`](Misfire::All) count those in time that follow it with the late ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Misfire {
    /// The last one is delivered, for all of them, in time or not. The default.
    #[default]
    Once,
    /// The last so many are delivered, in time or not, from 1 to [`MISFIRE_LIMIT`](crate::MISFIRE_LIMIT).
    All(u32),
    /// None that is late is. What is in time is delivered.
    Skip,
}

impl Calendar {
    /// By a cron expression of five fields, or of six with the second first: `0 3 * * *` is each day at 3:00.
    pub fn cron(pattern: &str) -> Calendar {
        Calendar {
            pattern: pattern.into(),
            zone: "UTC".into(),
            misfire: Misfire::default(),
            from: None,
            until: None,
            handler: None,
            payload: Ok(Arc::from([])),
        }
    }

    /// The time zone, by its IANA name. Default: `UTC`.
    pub fn zone(mut self, name: &str) -> Calendar {
        self.zone = name.into();
        self
    }

    /// What becomes of what was missed. Default: [`Misfire::Once`].
    pub fn misfire(mut self, misfire: Misfire) -> Calendar {
        self.misfire = misfire;
        self
    }

    /// Nothing comes before this time.
    pub fn from(mut self, time: SystemTime) -> Calendar {
        self.from = Some(time);
        self
    }

    /// Nothing comes after this time.
    pub fn until(mut self, time: SystemTime) -> Calendar {
        self.until = Some(time);
        self
    }

    /// The handler that it is delivered to, by its full name, or by its name in the namespace for [`Namespace::calendar`](crate::Namespace::calendar). Default: the
    /// calendar's own name.
    pub fn handler(mut self, name: &str) -> Calendar {
        self.handler = Some(name.into());
        self
    }

    /// What the handler is handed each time, as JSON: it reads it by [`Delivery::json`](crate::Delivery::json).
    pub fn payload(mut self, value: &(impl serde::Serialize + ?Sized)) -> Calendar {
        self.payload = match serde_json::to_vec(value) {
            Ok(json) => Ok(json.into()),
            Err(error) => Err(error.to_string().into()),
        };
        self
    }

    /// What the handler is handed each time, as it is. At most [`CALENDAR_PAYLOAD_LIMIT`](crate::CALENDAR_PAYLOAD_LIMIT) bytes.
    pub fn bytes(mut self, payload: impl Into<Arc<[u8]>>) -> Calendar {
        self.payload = Ok(payload.into());
        self
    }

    /// The same for another handler, whose name follows from this one's, if it has one.
    pub(crate) fn handled_by(mut self, name: impl FnOnce(&str) -> String) -> Calendar {
        self.handler = self.handler.map(|handler| name(&handler).into());
        self
    }

    /// As the engine has it, if nothing is wrong with it.
    pub(crate) fn ready(self, name: &str) -> Result<Plan, CalendarError> {
        use CalendarField as Field;

        match name.len() {
            1..=NAME_LIMIT => {}
            length => {
                let message = format!("it has 1 to {NAME_LIMIT} bytes, and not {length}");
                return Err(CalendarError::new(Field::Name, message));
            }
        }
        let schedule = Schedule::parse(&self.pattern, &self.zone);
        let schedule = schedule.map_err(|error| CalendarError::of_schedule(&error))?;
        if timestamp(FIRST)
            .and_then(|it| schedule.next_after(it))
            .is_none()
        {
            return Err(CalendarError::never());
        }
        let misfire = self.misfire.ready()?;
        let from = self.from.map(|it| millis(it, Field::From)).transpose()?;
        let until = self.until.map(|it| millis(it, Field::Until)).transpose()?;
        if let (Some(from), Some(until)) = (from, until)
            && until < from
        {
            let message = "it is before `from`, so that nothing would come";
            return Err(CalendarError::new(Field::Until, message));
        }
        let handler = self.handler.as_deref().unwrap_or(name);
        if !is_handler_name(handler) {
            let message = format!("it is `name` or `namespace/name`, of 1 to {NAME_LIMIT} bytes");
            return Err(CalendarError::new(Field::Handler, message));
        }
        let payload = self.payload.as_ref();
        let payload = payload.map_err(|error| {
            let message = format!("it cannot be written as JSON: {error}");
            CalendarError::new(Field::Payload, message)
        })?;
        if payload.len() > CALENDAR_PAYLOAD_LIMIT {
            let length = payload.len();
            let message =
                format!("it has {length} bytes, and at most {CALENDAR_PAYLOAD_LIMIT} are kept");
            return Err(CalendarError::new(Field::Payload, message));
        }
        let mut definition = Definition::new(&schedule, &self.zone, misfire, handler, payload);
        (definition.from, definition.until) = (from, until);
        Ok(definition.plan(schedule))
    }
}

impl Misfire {
    fn ready(self) -> Result<calendar::Misfire, CalendarError> {
        match self {
            Misfire::Once => Ok(calendar::Misfire::Once),
            Misfire::Skip => Ok(calendar::Misfire::Skip),
            Misfire::All(count @ 1..=MISFIRE_LIMIT) => Ok(calendar::Misfire::All(count)),
            Misfire::All(count) => Err(CalendarError::new(
                CalendarField::Misfire,
                format!("`All` has 1 to {MISFIRE_LIMIT}, and not {count}"),
            )),
        }
    }
}

/// Rounded up, as due times are.
fn millis(time: SystemTime, field: CalendarField) -> Result<i64, CalendarError> {
    let due = Due::at_or_after(time).map(Due::as_millis);
    due.ok_or_else(|| CalendarError::new(field, "it is more than 292 million years from 1970"))
}
