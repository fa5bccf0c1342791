//! The local time in a time zone, and the rules of the zone.

use waterwheel_cron::jiff::Timestamp;
use waterwheel_cron::jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use waterwheel_durable_core::store::Due;

use waterwheel_durable_core::engine::calendar::Hash;

/// How far ahead of a time the rules are compared: changes of the law are announced at shorter notice.
const YEARS: i64 = 3 * 366 * 86_400;

pub(super) fn timestamp(at: Due) -> Option<Timestamp> {
    Timestamp::from_millisecond(at.as_millis()).ok()
}

/// The local time in milliseconds since local 1970. Outside jiff's range, that of UTC.
pub(super) fn civil(zone: &TimeZone, at: Due) -> i64 {
    let ahead = timestamp(at).map_or(0, |at| millis(zone.to_offset(at)));
    at.as_millis().saturating_add(ahead)
}

/// The instant of a local time. If it occurs twice, the one nearer to `near`; if it is skipped, the end of the gap.
pub(super) fn instant(zone: &TimeZone, civil: i64, near: Due) -> Due {
    let by = |offset: Offset| Due::from_millis(civil.saturating_sub(millis(offset)));
    let Some(wall) = timestamp(Due::from_millis(civil)) else {
        return Due::from_millis(civil);
    };
    let wall = Offset::UTC.to_datetime(wall);
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => by(offset),
        AmbiguousOffset::Fold { before, after } => {
            let distance = |it: &Due| it.as_millis().abs_diff(near.as_millis());
            let (first, second) = (by(before), by(after));
            match distance(&second) < distance(&first) {
                true => second,
                false => first,
            }
        }
        AmbiguousOffset::Gap { after, .. } => {
            let before_it = timestamp(by(after));
            let change = before_it.and_then(|it| zone.following(it).next());
            change.map_or(by(after), |it| {
                Due::from_millis(it.timestamp().as_millisecond())
            })
        }
    }
}

/// A number that is the same on every machine and in every version, as long as the zone keeps the same rules for three years from this time on.
pub(super) fn rules(zone: &TimeZone, from: Due) -> u64 {
    let Some(from) = timestamp(from) else {
        return 0;
    };
    let until = from.as_second().saturating_add(YEARS);
    let mut offset = zone.to_offset(from);
    let mut hash = Hash::default();
    hash.number(i64::from(offset.seconds()));
    for change in zone.following(from) {
        let at = change.timestamp().as_second();
        if at > until {
            break;
        }
        // Some transitions only change the name.
        if change.offset() != offset {
            offset = change.offset();
            hash.number(at);
            hash.number(i64::from(offset.seconds()));
        }
    }
    hash.finish()
}

fn millis(offset: Offset) -> i64 {
    i64::from(offset.seconds()) * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn due(text: &str) -> Due {
        let at: Timestamp = text.parse().unwrap();
        Due::from_millis(at.as_millisecond())
    }

    #[test]
    fn the_wall_shows_an_hour_more_in_winter_and_two_in_summer() {
        for (at, wall) in [
            ("2027-01-15T12:00Z", "2027-01-15T13:00Z"),
            ("2027-07-15T12:00:00.123Z", "2027-07-15T14:00:00.123Z"),
        ] {
            let (at, wall) = (due(at), due(wall).as_millis());
            assert_eq!(civil(&berlin(), at), wall);
            assert_eq!(instant(&berlin(), wall, at), at);
        }
    }

    #[test]
    fn a_time_of_the_wall_that_comes_twice_is_the_nearer_one() {
        // On 31 October 2027 the clock goes from 3:00 to 2:00, at 1:00 UTC.
        let wall = due("2027-10-31T02:30Z").as_millis();
        let (first, second) = (due("2027-10-31T00:30Z"), due("2027-10-31T01:30Z"));
        for at in [first, second] {
            assert_eq!(civil(&berlin(), at), wall);
            assert_eq!(instant(&berlin(), wall, at), at);
        }
        let near = due("2027-10-31T01:01Z");
        assert_eq!(instant(&berlin(), wall, near), second);
        let near = due("2027-10-31T00:59Z");
        assert_eq!(instant(&berlin(), wall, near), first);
    }

    #[test]
    fn a_time_of_the_wall_that_does_not_come_is_the_end_of_the_gap() {
        // On 28 March 2027 the clock goes from 2:00 to 3:00, at 1:00 UTC.
        let change = due("2027-03-28T01:00Z");
        for wall in ["2027-03-28T02:00Z", "2027-03-28T02:59Z"] {
            let wall = due(wall).as_millis();
            assert_eq!(instant(&berlin(), wall, change), change, "{wall}");
        }
    }

    #[test]
    fn the_rules_change_with_an_offset_within_three_years() {
        let posix = |rule: &str| TimeZone::posix(rule).unwrap();
        let from = due("2027-01-15T12:00Z");
        // The current rules of Berlin, as a law without changes.
        let law = posix("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(rules(&law, from), rules(&berlin(), from));
        // The name of an offset is not a rule.
        let renamed = posix("AAA-1BBB,M3.5.0,M10.5.0/3");
        assert_eq!(rules(&renamed, from), rules(&law, from));
        let renamed = posix("CET-1BBB-1,M3.5.0,M10.5.0/3");
        assert_eq!(rules(&renamed, from), rules(&posix("CET-1"), from));
        for other in [
            "CET-1",
            "CET-2CEST,M3.5.0,M10.5.0/3",
            "CET-1CEST,M3.5.0,M10.4.0/3",
            "CET-1CEST-3,M3.5.0,M10.5.0/3",
        ] {
            assert_ne!(rules(&posix(other), from), rules(&law, from), "{other}");
        }
        // Its value is stored, so it must not change with a version.
        assert_eq!(rules(&law, from), 0x6e95_1fe7_9373_6240);
        assert_eq!(rules(&TimeZone::UTC, from), 0xa8c7_f832_281a_39c5);
    }

    #[test]
    fn times_beyond_the_calendar_are_those_of_utc() {
        for far in [i64::MIN, i64::MAX] {
            let at = Due::from_millis(far);
            assert_eq!(civil(&berlin(), at), far);
            assert_eq!(instant(&berlin(), far, at), at);
            assert_eq!(rules(&berlin(), at), 0);
        }
    }
}
