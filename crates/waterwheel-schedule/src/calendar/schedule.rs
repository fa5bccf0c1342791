use std::fmt;
use std::sync::Arc;

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

/// When something is due by the calendar and the clock on the wall: a cron expression in a time zone.
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
/// [The module](super) says what an expression may have, and what happens when the clock is put forward or back.
///
/// A schedule takes some 500 bytes beside its zone, which jiff shares between schedules. A clone counts a reference. Two schedules are
/// equal if their fields mean the same and they are in the same zone: `@daily` is `0 0 * * *`. `Display` gives the expression as it was
/// written.
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
    /// Reads an expression of five or six fields, or a nickname such as `@daily`, in the zone of that IANA name.
    ///
    /// Zones are looked up in jiff's database: the system's if there is one, else the copy in the program, with the feature
    /// `bundled-zones`. Names are compared without case; `UTC` is always known. The zone is read once: a later update of the
    /// system's database shows in schedules that are parsed after it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], which names the field that is wrong, and says what to write. An expression that never comes, as `0 0 30 2 *`, is
    /// an error too.
    pub fn parse(expression: &str, zone: &str) -> Result<Schedule, ScheduleError> {
        Schedule::parse_in(expression, zones::find(tz::db(), zone)?)
    }

    /// [`parse`](Schedule::parse) in a zone of jiff's: from another database, by a POSIX rule, or with a fixed offset.
    ///
    /// ```
    /// use jiff::tz::{TimeZone, offset};
    /// use waterwheel_schedule::calendar::Schedule;
    ///
    /// let schedule = Schedule::parse_in("30 8 * * *", TimeZone::fixed(offset(2)))?;
    /// assert_eq!(schedule.next_after("2026-07-01T12:00Z".parse()?), Some("2026-07-02T06:30Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`parse`](Schedule::parse), but for those of the zone.
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

    /// The first instant after `after`, which itself is never given: a whole second, or the end of a gap.
    ///
    /// A search allocates nothing and takes some 0.1 to 0.5 µs, for lists as for single times (two cores of an AMD EPYC, a virtual machine). A
    /// certain weekday on 29 February takes 10 µs, and it takes 50 µs to find that nothing comes any more.
    ///
    /// `None` if nothing comes any more: after the last of listed [years](super::ScheduleOptions::years), towards the end of jiff's calendar in
    /// 9999, or if all times of wildcards fall into gaps, as those of `*/30 2 8-14 3 +SUN` do in New York.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let inner = &*self.inner;
        policy::next_after(&inner.pattern, inner.is_fixed, &inner.zone, after)
    }

    /// The instants after `after`, one after the other; `take(n)` gives the next n.
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

    /// The expression, as it was written but for blanks around it.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.inner.expression
    }

    /// The zone.
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
