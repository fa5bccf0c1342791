use jiff::tz::{self, TimeZone};

use super::error::ScheduleError;
use super::schedule::Schedule;
use super::zones;

/// Options for parsing cron expressions. [`Schedule::parse`] uses the defaults.
///
/// # Examples
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
    /// Returns the default options: five or six fields, and no step that is as large as its field or larger.
    pub const fn new() -> ScheduleOptions {
        ScheduleOptions {
            years: false,
            wide_steps: false,
        }
    }

    /// Sets whether an expression may have a seventh field, the year (1–5000). The default is `false`.
    ///
    /// A schedule that lists years ends: after the last of them, [`next_after`](Schedule::next_after) returns `None`.
    pub const fn years(mut self, allow: bool) -> ScheduleOptions {
        self.years = allow;
        self
    }

    /// Sets whether a step may be as large as its field or larger, as in `*/60` for the minute, which matches only minute 0. The default is
    /// `false`.
    ///
    /// This option is meant for stored expressions that contain such steps and must continue to work. Without it, the
    /// [error](ScheduleError) says what was probably meant.
    ///
    /// # Examples
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

    /// Parses an expression with these options, like [`Schedule::parse`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Schedule::parse`].
    pub fn parse(&self, expression: &str, zone: &str) -> Result<Schedule, ScheduleError> {
        let zone = zones::find(tz::db(), zone)?;
        self.parse_in(expression, zone)
    }

    /// Parses an expression with these options, like [`Schedule::parse_in`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Schedule::parse_in`].
    pub fn parse_in(&self, expression: &str, zone: TimeZone) -> Result<Schedule, ScheduleError> {
        Schedule::new(expression, zone, self.years, self.wide_steps)
    }
}
