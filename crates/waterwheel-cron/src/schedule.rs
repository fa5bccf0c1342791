//! A cron expression in a time zone, the options for parsing it, and the search for its instants.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::{self, TimeZone, TimeZoneDatabase};

use super::days::Days;
use super::dst;
use super::error::ScheduleError;
use super::expression::Fields;
use super::pattern::Pattern;

/// A cron schedule: a cron expression in a time zone.
///
/// [The module](super) describes the syntax of expressions, and what happens when daylight saving time begins or ends.
///
/// A schedule takes about 500 bytes in addition to its zone, which jiff shares between schedules. A clone only
/// increments a reference count. Two schedules are equal if their fields have the same meaning and they are in the same
/// zone: `@daily` equals `0 0 * * *`. `Display` writes the expression as it was given.
///
/// # Examples
///
/// ```
/// use waterwheel_cron::Schedule;
///
/// let schedule = Schedule::parse("0 9 * * TUE", "UTC")?; // every Tuesday at 9
/// let next = schedule.next_after("2026-07-01T12:00Z".parse()?);
/// assert_eq!(next, Some("2026-07-07T09:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
#[derive(Clone)]
pub struct Schedule {
    inner: Arc<Inner>,
}

struct Inner {
    expression: Box<str>,
    zone: TimeZone,
    pattern: Pattern,
    /// Whether the times of day are fixed, which decides what happens at a change of the clock.
    is_fixed: bool,
}

impl Schedule {
    /// Parses a cron expression of five or six fields, or a nickname such as `@daily`, in the time zone with this IANA name.
    ///
    /// The zone is looked up in jiff's database: the database of the system if there is one, otherwise the copy in the
    /// program, which the feature `bundled-zones` adds. Names are not case sensitive, and `UTC` is always known. The
    /// zone is read once: a later update of the system's database affects only schedules that are parsed after it.
    ///
    /// # Errors
    ///
    /// Returns a [`ScheduleError`] that names the invalid field and says what to write instead. An expression that never runs, such as
    /// `0 0 30 2 *`, is an error as well.
    pub fn parse(expression: &str, zone: &str) -> Result<Schedule, ScheduleError> {
        Schedule::parse_in(expression, find_zone(tz::db(), zone)?)
    }

    /// Parses an expression in one of jiff's time zones: from another database, by a POSIX rule, or with a fixed offset.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`parse`](Schedule::parse), apart from those about the zone.
    ///
    /// # Examples
    ///
    /// ```
    /// use jiff::tz::{TimeZone, offset};
    /// use waterwheel_cron::Schedule;
    ///
    /// let schedule = Schedule::parse_in("30 8 * * *", TimeZone::fixed(offset(2)))?;
    /// assert_eq!(schedule.next_after("2026-07-01T12:00Z".parse()?), Some("2026-07-02T06:30Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse_in(expression: &str, zone: TimeZone) -> Result<Schedule, ScheduleError> {
        // The defaults of `ScheduleOptions`.
        let (years, wide_steps) = (false, false);
        Schedule::new(expression, zone, years, wide_steps)
    }

    pub(super) fn new(
        expression: &str,
        zone: TimeZone,
        years: bool,
        wide_steps: bool,
    ) -> Result<Schedule, ScheduleError> {
        let (fields, cron) = Fields::read(expression, years, wide_steps)?;
        let mut days = Days::new(cron.pattern.clone(), fields.has_years());
        if !days.comes() {
            return Err(ScheduleError::Never);
        }
        Ok(Schedule {
            inner: Arc::new(Inner {
                expression: expression.trim().into(),
                zone,
                pattern: Pattern::new(&cron, days),
                is_fixed: fields.are_fixed_times(),
            }),
        })
    }

    /// Returns the first instant of the schedule that is later than `after`. It is a whole second, or the end of a gap.
    ///
    /// Returns `None` if there is none: after the last of the listed [years](super::ScheduleOptions::years), towards
    /// the end of jiff's calendar in 9999, or if all times of a wildcard fall into gaps, as those of
    /// `*/30 2 8-14 3 +SUN` do in New York.
    ///
    /// A search does not allocate and takes 0.1 to 0.5 µs, for lists as well as for single times (on a virtual machine
    /// with two cores of an AMD EPYC). A specific weekday on 29 February takes 10 µs, and finding that there is no
    /// instant left takes 50 µs.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let inner = &*self.inner;
        dst::next_after(&inner.pattern, inner.is_fixed, &inner.zone, after)
    }

    /// Returns the last instant of the schedule that is earlier than `before`: when it should have run last. At a change of the
    /// clock, the instants are those that [`next_after`](Schedule::next_after) returns.
    ///
    /// Returns `None` if there is none: before the first of the listed [years](super::ScheduleOptions::years), towards the
    /// beginning of jiff's calendar in -9999, or if all times of a wildcard fall into gaps, for 40 of them in a row. A search
    /// takes as long as one forward.
    ///
    /// # Examples
    ///
    /// ```
    /// use waterwheel_cron::Schedule;
    ///
    /// let schedule = Schedule::parse("30 2 * * *", "Europe/Berlin")?;
    /// // On 29 March 2026 the clock goes from 2:00 to 3:00, which is 1:00 UTC.
    /// let previous = schedule.previous_before("2026-03-29T12:00Z".parse()?);
    /// assert_eq!(previous, Some("2026-03-29T01:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn previous_before(&self, before: Timestamp) -> Option<Timestamp> {
        let inner = &*self.inner;
        dst::previous_before(&inner.pattern, inner.is_fixed, &inner.zone, before)
    }

    /// Returns whether `instant` is an instant of the schedule, to the nanosecond.
    ///
    /// At a change of the clock, the instants are those that [`next_after`](Schedule::next_after) returns: with `30 2 * * *`,
    /// the end of a gap from 2:00 to 3:00 is one, and the second 2:30 of a day is not. To know whether a run was due since
    /// some time, such as the last look, call [`previous_before`](Schedule::previous_before).
    ///
    /// # Examples
    ///
    /// ```
    /// use waterwheel_cron::Schedule;
    ///
    /// let schedule = Schedule::parse("*/15 9-17 * * MON-FRI", "Europe/Berlin")?;
    /// assert!(schedule.matches("2026-07-01T09:45+02:00".parse()?));
    /// assert!(!schedule.matches("2026-07-01T09:45:00.001+02:00".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn matches(&self, instant: Timestamp) -> bool {
        let just_before = instant.checked_sub(Duration::from_nanos(1)).ok();
        just_before.and_then(|it| self.next_after(it)) == Some(instant)
    }

    /// Returns an iterator over the instants that are later than `after`, in order; `take(n)` limits it to the next n.
    ///
    /// # Examples
    ///
    /// ```
    /// use waterwheel_cron::Schedule;
    ///
    /// let schedule = Schedule::parse("0 9 12 * *", "UTC")?; // every 12th at 9
    /// let next: Vec<_> = schedule.upcoming("2026-11-20T00:00Z".parse()?).take(3).map(|it| it.to_string()).collect();
    /// assert_eq!(next, ["2026-12-12T09:00:00Z", "2027-01-12T09:00:00Z", "2027-02-12T09:00:00Z"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upcoming(&self, after: Timestamp) -> Upcoming {
        Upcoming::new(self.clone(), after)
    }

    /// Returns the expression as it was given, without surrounding blanks.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.inner.expression
    }

    /// Returns the time zone.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.inner.zone
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Schedule) -> bool {
        let (ours, theirs) = (&*self.inner, &*other.inner);
        Arc::ptr_eq(&self.inner, &other.inner)
            || (ours.is_fixed == theirs.is_fixed
                && ours.pattern == theirs.pattern
                && ours.zone == theirs.zone)
    }
}

impl Eq for Schedule {}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.inner.expression)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("expression", &self.inner.expression)
            .field("zone", &self.inner.zone)
            .finish()
    }
}

/// Options for parsing cron expressions. [`Schedule::parse`] uses the defaults.
///
/// # Examples
///
/// ```
/// use waterwheel_cron::{Schedule, ScheduleOptions};
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
    /// use waterwheel_cron::{Schedule, ScheduleOptions};
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
        let zone = find_zone(tz::db(), zone)?;
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

/// An iterator over the instants of a schedule. Returned by [`Schedule::upcoming`].
#[derive(Debug, Clone)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Upcoming {
    schedule: Schedule,
    /// The instant that the next one follows. `None` after the last.
    after: Option<Timestamp>,
}

impl Upcoming {
    pub(super) fn new(schedule: Schedule, after: Timestamp) -> Upcoming {
        Upcoming {
            schedule,
            after: Some(after),
        }
    }
}

impl Iterator for Upcoming {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        self.after = self.schedule.next_after(self.after?);
        self.after
    }
}

impl FusedIterator for Upcoming {}

/// The time zone with this name.
pub(super) fn find_zone(zones: &TimeZoneDatabase, name: &str) -> Result<TimeZone, ScheduleError> {
    // Without a database, jiff does not know even this name.
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    zones.get(name).map_err(|_| {
        // No zone has a longer name, and the error message stays short.
        let name = name.chars().take(64).collect();
        if zones.is_definitively_empty() {
            ScheduleError::NoZoneData { name }
        } else {
            ScheduleError::UnknownZone { name }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_database_the_error_says_so() {
        let found = find_zone(&TimeZoneDatabase::none(), "Europe/Berlin");
        let error = found.unwrap_err();
        assert!(
            matches!(&error, ScheduleError::NoZoneData { name } if &**name == "Europe/Berlin"),
            "{error}"
        );
        assert!(error.to_string().contains("bundled-zones"), "{error}");
    }

    #[test]
    fn utc_needs_no_database() {
        assert_eq!(
            find_zone(&TimeZoneDatabase::none(), "utc"),
            Ok(TimeZone::UTC)
        );
    }
}
