use std::fmt;

use waterwheel_schedule::calendar::ScheduleError;

/// A [`Calendar`](super::Calendar) that cannot be: which part of it is wrong, and in the message, what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarError {
    field: CalendarField,
    message: Box<str>,
}

/// A part of a [`Calendar`](super::Calendar).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CalendarField {
    /// The name that it is declared by.
    Name,
    /// The cron expression, also if it never comes.
    Pattern,
    /// The time zone.
    Zone,
    /// The policy for what was missed.
    Misfire,
    /// The time before which nothing comes.
    From,
    /// The time after which nothing comes.
    Until,
    /// The handler's name.
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
            false => CalendarField::Pattern,
        };
        CalendarError::new(field, error.to_string())
    }

    /// As those of a schedule that never comes because of its fields.
    pub(super) fn never() -> CalendarError {
        let message = "the schedule never comes: the zone leaves out all its times";
        CalendarError::new(CalendarField::Pattern, message)
    }

    /// The part that is wrong; the first, if several are.
    ///
    /// ```
    /// # use waterwheel_durable::{Calendar, CalendarField, Durable, Error};
    /// # async fn example(timers: &Durable, pattern: &str) -> Result<(), Error> {
    /// match timers.calendar("report", Calendar::cron(pattern)).await {
    ///     Err(Error::Calendar(error)) if error.field() == CalendarField::Pattern => eprintln!("{pattern}: {error}"),
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
            CalendarField::Pattern => "pattern",
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
        write!(f, "the calendar's {field} is wrong: {message}")
    }
}

impl std::error::Error for CalendarError {}
