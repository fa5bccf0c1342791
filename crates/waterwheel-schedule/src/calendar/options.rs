use jiff::tz::{self, TimeZone};

use super::error::ScheduleError;
use super::schedule::Schedule;
use super::zones;

/// How expressions are read. [`Schedule::parse`] reads them by the defaults.
///
/// ```
/// use waterwheel_schedule::calendar::{Schedule, ScheduleOptions};
///
/// let options = ScheduleOptions::new().years(true);
/// let schedule = options.parse("0 0 12 1 7 ? 2030-2032", "UTC")?;
/// let runs: Vec<String> = schedule.upcoming("2026-01-01T00:00Z".parse()?).map(|it| it.to_string()).collect();
/// assert_eq!(runs, ["2030-07-01T12:00:00Z", "2031-07-01T12:00:00Z", "2032-07-01T12:00:00Z"]);
///
/// assert!(Schedule::parse("0 0 12 1 7 ? 2030-2032", "UTC").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct ScheduleOptions {
    years: bool,
    wide_steps: bool,
}

impl ScheduleOptions {
    /// The defaults: five or six fields, and no step that is larger than its field.
    pub const fn new() -> ScheduleOptions {
        ScheduleOptions {
            years: false,
            wide_steps: false,
        }
    }

    /// Whether an expression may have a seventh field, the year: 1–5000. Default: no.
    ///
    /// A schedule with listed years ends: after the last of them, [`next_after`](Schedule::next_after) gives `None`.
    pub const fn years(mut self, allow: bool) -> ScheduleOptions {
        self.years = allow;
        self
    }

    /// Whether a step may be as large as its field, or larger, as in `*/60` for the minute, which matches minute 0 alone. Default: no.
    ///
    /// It is meant for expressions that were stored before such steps were refused, and that must go on. The [error](ScheduleError) of a
    /// strict reading says what was probably meant.
    ///
    /// ```
    /// use waterwheel_schedule::calendar::{Schedule, ScheduleOptions};
    ///
    /// assert!(Schedule::parse("*/60 * * * *", "UTC").is_err());
    /// let hourly = ScheduleOptions::new().wide_steps(true).parse("*/60 * * * *", "UTC")?;
    /// assert_eq!(hourly.next_after("2026-07-01T12:30Z".parse()?), Some("2026-07-01T13:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn wide_steps(mut self, allow: bool) -> ScheduleOptions {
        self.wide_steps = allow;
        self
    }

    /// [`Schedule::parse`] with these options.
    ///
    /// # Errors
    ///
    /// As [`Schedule::parse`].
    pub fn parse(&self, expression: &str, zone: &str) -> Result<Schedule, ScheduleError> {
        let zone = zones::find(tz::db(), zone)?;
        self.parse_in(expression, zone)
    }

    /// [`Schedule::parse_in`] with these options.
    ///
    /// # Errors
    ///
    /// As [`Schedule::parse_in`].
    pub fn parse_in(&self, expression: &str, zone: TimeZone) -> Result<Schedule, ScheduleError> {
        Schedule::new(expression, zone, self.years, self.wide_steps)
    }
}
