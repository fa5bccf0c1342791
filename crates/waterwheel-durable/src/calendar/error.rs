use std::fmt;

use waterwheel_cron::ScheduleError;

/// An invalid [`Calendar`](super::Calendar): which field is invalid, and a message that says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarError {
    field: CalendarField,
    message: Box<str>,
}

/// A field of a [`Calendar`](super::Calendar).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CalendarField {
    /// The name of the calendar.
    Name,
    /// The cron expression; also if it has no occurrences.
    Expression,
    /// The time zone.
    Zone,
    /// The policy for missed occurrences.
    Misfire,
    /// The time before which there are no occurrences.
    From,
    /// The time after which there are no occurrences.
    Until,
    /// The name of the handler.
    Handler,
    /// The payload.
    Payload,
}

impl CalendarError {
    pub(super) fn new(field: CalendarField, message: impl Into<Box<str>>) -> CalendarError {
        CalendarError {
            field,
            message: message.into(),
        }
    }

    pub(super) fn of_schedule(error: &ScheduleError) -> CalendarError {
        let field = match error.is_zone() {
            true => CalendarField::Zone,
            false => CalendarField::Expression,
        };
        CalendarError::new(field, error.to_string())
    }

    /// The error for a schedule without occurrences, as if its fields excluded all times.
    pub(super) fn never() -> CalendarError {
        let message = "the schedule has no occurrences: its time zone skips all of its times: choose another time, or another time zone";
        CalendarError::new(CalendarField::Expression, message)
    }

    /// Returns the invalid field; the first one, if there are several.
    ///
    /// ```
    /// # use waterwheel_durable::{Calendar, CalendarField, Durable, Error};
    /// # async fn example(timers: &Durable, expression: &str) -> Result<(), Error> {
    /// match timers.calendar("report", Calendar::cron(expression)).await {
    ///     Err(Error::Calendar(error)) if error.field() == CalendarField::Expression => eprintln!("{expression}: {error}"),
    ///     declared => drop(declared?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn field(&self) -> CalendarField {
        self.field
    }
}

impl fmt::Display for CalendarField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CalendarField::Name => "name",
            CalendarField::Expression => "expression",
            CalendarField::Zone => "zone",
            CalendarField::Misfire => "misfire",
            CalendarField::From => "from",
            CalendarField::Until => "until",
            CalendarField::Handler => "handler",
            CalendarField::Payload => "payload",
        })
    }
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CalendarError { field, message } = self;
        write!(f, "the calendar's {field} is invalid: {message}")
    }
}

impl std::error::Error for CalendarError {}
