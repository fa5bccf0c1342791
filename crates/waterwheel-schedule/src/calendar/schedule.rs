use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::{self, TimeZone};

use super::days::Days;
use super::error::ScheduleError;
use super::fields::Fields;
use super::never;
use super::pattern::Pattern;
use super::policy;
use super::upcoming::Upcoming;
use super::zones;

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
/// use waterwheel_schedule::calendar::Schedule;
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
    /// The times of day, and not the days: see the policy.
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
        Schedule::parse_in(expression, zones::find(tz::db(), zone)?)
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
    /// use waterwheel_schedule::calendar::Schedule;
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
        if !never::comes(&mut days) {
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
        policy::next_after(&inner.pattern, inner.is_fixed, &inner.zone, after)
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
    /// use waterwheel_schedule::calendar::Schedule;
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
        policy::previous_before(&inner.pattern, inner.is_fixed, &inner.zone, before)
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
    /// use waterwheel_schedule::calendar::Schedule;
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
    /// use waterwheel_schedule::calendar::Schedule;
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
