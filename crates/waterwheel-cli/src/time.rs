//! Times are shown in UTC, in ISO 8601 format, with milliseconds.

use std::time::{Duration, SystemTime};

use waterwheel_cron::jiff::{Span, SpanRelativeTo, Timestamp};
use waterwheel_durable_core::store::Due;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The current time. A clock does not show times out of range.
pub(crate) fn now() -> Due {
    Due::at_or_after(SystemTime::now()).unwrap_or(Due::from_millis(0))
}

/// Formats a time like `2027-01-15T08:00:00.000Z`. A year without exactly four digits has a sign and at least six.
pub(crate) fn iso(time: Due) -> String {
    let millis = time.as_millis();
    let (year, month, day) = date(millis.div_euclid(DAY.cast_signed()));
    let rest = millis.rem_euclid(DAY.cast_signed()).unsigned_abs();
    let (hour, minute) = (rest / HOUR, rest % HOUR / MINUTE);
    let (second, milli) = (rest % MINUTE / SECOND, rest % SECOND);
    let year = match year {
        0..=9_999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Parses a time with an offset, rounded up to a millisecond.
pub(crate) fn parse(text: &str) -> Result<Due, String> {
    let time: Result<Timestamp, _> = text.trim().parse();
    let time = time.map_err(|error| error.to_string())?;
    let due = Due::at_or_after(time.into());
    due.ok_or_else(|| "the time is out of range".to_owned())
}

/// Parses a duration, such as `2h 30m`.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let span: Result<Span, _> = text.trim().parse();
    // A day has 24 hours.
    let duration = span.and_then(|it| it.to_duration(SpanRelativeTo::days_are_24_hours()));
    let duration = duration.map_err(|error| error.to_string())?;
    duration
        .try_into()
        .map_err(|_| "a duration must not be negative".to_owned())
}

/// The date of a day, counted from the start of 1970, in the Gregorian calendar.
///
/// Years are counted from March, so that a leap day is the last day of its year. Every 400 years have the same number of days.
fn date(day: i64) -> (i64, u8, u8) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // Days since 1 March of the year 0.
    let day = day + 719_468;
    let era = day.div_euclid(DAYS_OF_400_YEARS);
    let day = day.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, every five months have 153 days.
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (
        era * 400 + year + next,
        u8::try_from(month).unwrap_or(0),
        u8::try_from(of_month).unwrap_or(0),
    )
}

/// The time until then, or since then: `in 2 h 5 min`, `3 s ago`.
pub(crate) fn from(now: Due, time: Due) -> String {
    let distance = time.as_millis().abs_diff(now.as_millis());
    match time > now {
        true => format!("in {}", span(distance)),
        false => format!("{} ago", span(distance)),
    }
}

/// A span of milliseconds, in its two largest units.
pub(crate) fn span(millis: u64) -> String {
    let units = [
        (DAY, "d"),
        (HOUR, "h"),
        (MINUTE, "min"),
        (SECOND, "s"),
        (1, "ms"),
    ];
    let at = units.iter().position(|(unit, _)| millis >= *unit);
    let Some(at) = at else {
        return "0 ms".to_owned();
    };
    let (unit, name) = units[at];
    let first = format!("{} {name}", millis / unit);
    match units.get(at + 1) {
        // Fractions of a second are not shown.
        Some((next, name)) if *next >= SECOND && millis % unit / next > 0 => {
            format!("{first} {} {name}", millis % unit / next)
        }
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_utc_with_milliseconds() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_800_000_000_123, "2027-01-15T08:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (4_107_456_000_000, "2100-02-28T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
            (i64::MAX, "+292278994-08-17T07:12:55.807Z"),
            (i64::MIN, "-292275055-05-16T16:47:04.192Z"),
        ] {
            assert_eq!(iso(Due::from_millis(millis)), expected);
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let lengths = |year: i64| {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let february = if is_leap { 29 } else { 28 };
            [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        let mut expected = (1600, 1, 1);
        for day in -135_140..146_097 {
            assert_eq!(date(day), expected, "{day}");
            let (year, month, of_month) = expected;
            expected = match lengths(year)[usize::from(month) - 1] {
                last if of_month < last => (year, month, of_month + 1),
                _ if month < 12 => (year, month + 1, 1),
                _ => (year + 1, 1, 1),
            };
        }
    }

    #[test]
    fn a_time_is_read_with_its_offset_and_rounded_up() {
        for (text, millis) in [
            ("2027-01-15T08:00:00.123Z", 1_800_000_000_123),
            ("2027-01-15T09:00:00.122001+01:00", 1_800_000_000_123),
            ("1969-12-31T23:59:59.9985Z", -1),
        ] {
            assert_eq!(parse(text), Ok(Due::from_millis(millis)), "{text}");
        }
        for wrong in ["", "soon", "2027-01-15", "2027-01-15T08:00:00"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_duration_is_read_in_units() {
        for (text, millis) in [
            ("90s", 90_000),
            ("2h 30m", 9_000_000),
            (" 5ms ", 5),
            ("PT1H", 3_600_000),
            ("3d", 259_200_000),
            ("1 week", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(millis)));
        }
        for wrong in ["", "7", "-5s", "soon", "1 month"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_span_is_shown_in_its_two_largest_units() {
        for (millis, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_999, "1 s"),
            (61_000, "1 min 1 s"),
            (60_000, "1 min"),
            (7_500_000, "2 h 5 min"),
            (90_061_000, "1 d 1 h"),
            (86_400_000 * 400, "400 d"),
        ] {
            assert_eq!(span(millis), expected);
        }
        let at = Due::from_millis;
        assert_eq!(from(at(5_000), at(5_000)), "0 ms ago");
        assert_eq!(from(at(5_000), at(65_000)), "in 1 min");
        assert_eq!(from(at(i64::MIN), at(i64::MAX)).split(' ').count(), 5);
    }
}
