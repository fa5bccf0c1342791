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

/// The length of a bucket: a dial of the timing wheel, on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The finest level. Its buckets are separate for each handler, and timers are loaded from them.
    Second,
    /// Buckets of a minute, which cascade into seconds.
    Minute,
    /// Buckets of an hour, which cascade into minutes, or into finer buckets for timers that are due soon.
    Hour,
    /// Buckets of a day, which cascade into hours, or into finer buckets for timers that are due soon.
    Day,
    /// The coarsest level, for any due time further ahead: buckets of 32 days. If days were the coarsest, inserts that
    /// are due over a year would be written to ten times as many places.
    Month,
}

impl Level {
    /// The levels whose buckets cascade, finest first.
    pub const CASCADING: [Level; 4] = [Level::Minute, Level::Hour, Level::Day, Level::Month];

    /// Returns the length of a bucket in milliseconds.
    #[must_use]
    pub const fn millis(self) -> i64 {
        match self {
            Level::Second => 1_000,
            Level::Minute => 60_000,
            Level::Hour => 3_600_000,
            Level::Day => 86_400_000,
            Level::Month => 32 * 86_400_000,
        }
    }

    /// Returns how long before its start a bucket cascades, in milliseconds. This is enough for one or two million
    /// rows, and a small part of the length of the bucket, so that few timers are inserted too late for it.
    #[must_use]
    pub const fn lead(self) -> i64 {
        match self {
            Level::Second => 0,
            Level::Minute => 15_000,
            Level::Hour => 180_000,
            Level::Day => 3_600_000,
            Level::Month => 12 * 3_600_000,
        }
    }

    /// Returns a number for use in keys; 0 is the finest level.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Level::Second => 0,
            Level::Minute => 1,
            Level::Hour => 2,
            Level::Day => 3,
            Level::Month => 4,
        }
    }

    /// Returns the level with this [number](Level::number).
    #[must_use]
    pub fn from_number(number: u8) -> Option<Level> {
        let mut all = [Level::Second].into_iter().chain(Level::CASCADING);
        all.find(|level| level.number() == number)
    }

    /// Returns the bucket of this level that contains the due time.
    #[must_use]
    pub const fn bucket(self, due: Due) -> Bucket {
        Bucket {
            level: self,
            number: due.as_millis().div_euclid(self.millis()),
        }
    }
}

/// A slot on disk: bucket `number` of its level, counted from the start of 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// The level, which determines the length of the bucket.
    pub level: Level,
    /// The number of the bucket within its level.
    pub number: i64,
}

impl Bucket {
    /// Returns the bucket into which a timer with this due time is written at time `now`: the coarsest one that has not
    /// cascaded.
    ///
    /// ```
    /// use waterwheel_durable_core::store::{Bucket, Due, Level};
    ///
    /// let now = Due::from_millis(0);
    /// let level = |minutes: i64| Bucket::of(Due::from_millis(minutes * 60_000), now).level;
    /// assert_eq!(level(0), Level::Second);
    /// assert_eq!(level(30), Level::Minute);
    /// assert_eq!(level(90), Level::Hour);
    /// assert_eq!(level(60 * 24 * 30), Level::Day);
    /// assert_eq!(level(60 * 24 * 300), Level::Month);
    /// ```
    #[must_use]
    pub fn of(due: Due, now: Due) -> Bucket {
        Bucket::below(Level::Month, due, now).unwrap_or(Level::Second.bucket(due))
    }

    /// Returns the bucket into which a timer is written when it cascades from this bucket.
    #[must_use]
    pub fn finer(self, due: Due, now: Due) -> Bucket {
        let finer = match self.level {
            Level::Month => Bucket::below(Level::Day, due, now),
            Level::Day => Bucket::below(Level::Hour, due, now),
            Level::Hour => Bucket::below(Level::Minute, due, now),
            Level::Minute | Level::Second => None,
        };
        finer.unwrap_or(Level::Second.bucket(due))
    }

    fn below(limit: Level, due: Due, now: Due) -> Option<Bucket> {
        Level::CASCADING
            .into_iter()
            .rev()
            .filter(|level| *level <= limit)
            .map(|level| level.bucket(due))
            .find(|bucket| bucket.cascades_at() > now)
    }

    /// Returns the start of the bucket.
    #[must_use]
    pub const fn start(self) -> Due {
        Due::from_millis(self.number.saturating_mul(self.level.millis()))
    }

    /// Returns when the bucket cascades. From then on, nothing is written to it.
    #[must_use]
    pub const fn cascades_at(self) -> Due {
        Due::from_millis(self.start().as_millis().saturating_sub(self.level.lead()))
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

    const LENGTHS: [i64; 5] = [1_000, 60_000, 3_600_000, 86_400_000, 32 * 86_400_000];

    #[test]
    fn a_timer_lies_in_a_bucket_of_its_time_that_has_not_cascaded() {
        for now in [0, 59_999, 1_799_999_999_123, -5_000] {
            for length in LENGTHS {
                for off in -40_000..40_000 {
                    let (due, now) = (
                        Due::from_millis(now + length + off * 97),
                        Due::from_millis(now),
                    );
                    let bucket = Bucket::of(due, now);
                    let start = bucket.start().as_millis();
                    assert!(start <= due.as_millis());
                    assert!(due.as_millis() < start + bucket.level.millis());
                    let is_open = bucket.cascades_at() > now;
                    assert!(is_open || bucket.level == Level::Second);
                    let coarser = Level::CASCADING.into_iter().filter(|it| *it > bucket.level);
                    for coarser in coarser {
                        assert!(coarser.bucket(due).cascades_at() <= now);
                    }
                }
            }
        }
    }

    #[test]
    fn a_bucket_cascades_into_finer_ones() {
        let now = Due::from_millis(1_800_000_000_000);
        for level in Level::CASCADING {
            for off in 0..5_000 {
                let due = Due::from_millis(now.as_millis() + off * 61_003);
                let finer = level.bucket(due).finer(due, now);
                assert!(finer.level < level && finer == finer.level.bucket(due));
                assert!(finer.cascades_at() > now || finer.level == Level::Second);
            }
        }
    }
}
