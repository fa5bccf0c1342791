use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The due time of a timer: whole milliseconds of the wall clock since 1970 (UTC), negative before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Due(i64);

impl Due {
    /// Creates a time from milliseconds since the start of 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Due {
        Due(millis)
    }

    /// Returns the first millisecond that is not before `time`, or `None` if it is out of the range of `Due`, 292
    /// million years.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use waterwheel_durable_core::store::Due;
    ///
    /// let due = Due::at_or_after(UNIX_EPOCH + Duration::from_micros(1_001)).unwrap();
    /// assert_eq!(due.as_millis(), 2); // never early
    /// ```
    #[must_use]
    pub fn at_or_after(time: SystemTime) -> Option<Due> {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => {
                let up = after.checked_add(Duration::from_nanos(999_999))?;
                i64::try_from(up.as_millis()).ok().map(Due)
            }
            Err(before) => {
                let down = i64::try_from(before.duration().as_millis()).ok()?;
                Some(Due(-down))
            }
        }
    }

    /// Returns the start of this second, counted from the start of 1970.
    #[must_use]
    pub const fn from_second(second: i64) -> Due {
        Due(second.saturating_mul(1_000))
    }

    /// Returns the milliseconds since the start of 1970.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the second that contains this time, counted from the start of 1970.
    #[must_use]
    pub const fn second(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Returns the day (UTC) that contains this time, counted from the start of 1970.
    #[must_use]
    pub const fn day(self) -> i64 {
        self.0.div_euclid(86_400_000)
    }

    /// Converts to a `SystemTime`, or returns `None` if the platform cannot represent it.
    #[must_use]
    pub fn time(self) -> Option<SystemTime> {
        let distance = Duration::from_millis(self.0.unsigned_abs());
        match self.0 >= 0 {
            true => UNIX_EPOCH.checked_add(distance),
            false => UNIX_EPOCH.checked_sub(distance),
        }
    }

    /// Returns this time plus `delay`, rounded up to a millisecond, or the latest possible time if that overflows.
    #[must_use]
    pub fn after(self, delay: Duration) -> Due {
        let up = delay.saturating_add(Duration::from_nanos(999_999));
        let millis = i64::try_from(up.as_millis()).unwrap_or(i64::MAX);
        Due(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_up_on_both_sides_of_1970() {
        for (nanos, millis) in [(0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2)] {
            let time = UNIX_EPOCH + Duration::from_nanos(nanos);
            assert_eq!(Due::at_or_after(time).unwrap().as_millis(), millis);
        }
        for (nanos, millis) in [(1, 0), (999_999, 0), (1_000_000, -1), (1_000_001, -1)] {
            let time = UNIX_EPOCH - Duration::from_nanos(nanos);
            assert_eq!(Due::at_or_after(time).unwrap().as_millis(), millis);
        }
    }

    #[test]
    fn a_second_before_1970_ends_where_the_next_one_begins() {
        assert_eq!(Due::from_millis(-1).second(), -1);
        assert_eq!(Due::from_millis(-1_000).second(), -1);
        assert_eq!(Due::from_millis(-1_001).second(), -2);
        assert_eq!(Due::from_millis(999).second(), 0);
    }
}
