//! Schedules in zones of the bundled database, and instants by the wall clock.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use waterwheel_cron::{Schedule, ScheduleOptions};

/// A zone of the bundled database, which the oracle used, whatever database the machine has.
pub(crate) fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

#[track_caller]
pub(crate) fn schedule(expression: &str, zone_name: &str) -> Schedule {
    match Schedule::parse_in(expression, zone(zone_name)) {
        Ok(schedule) => schedule,
        Err(error) => panic!("{expression:?}: {error}"),
    }
}

#[track_caller]
pub(crate) fn with_years(expression: &str, zone_name: &str) -> Schedule {
    let options = ScheduleOptions::new().years(true);
    match options.parse_in(expression, zone(zone_name)) {
        Ok(schedule) => schedule,
        Err(error) => panic!("{expression:?}: {error}"),
    }
}

pub(crate) fn utc(text: &str) -> Timestamp {
    let time: DateTime = text.parse().unwrap();
    TimeZone::UTC.to_timestamp(time).unwrap()
}

/// The next `count` instants after midnight of `day`, by the wall clock, with the offset.
#[track_caller]
pub(crate) fn runs(expression: &str, zone_name: &str, day: &str, count: usize) -> Vec<String> {
    let schedule = schedule(expression, zone_name);
    let midnight: DateTime = format!("{day}T00:00").parse().unwrap();
    let after = schedule.zone().to_timestamp(midnight).unwrap();
    on_the_wall(&schedule, after, count)
}

pub(crate) fn on_the_wall(schedule: &Schedule, after: Timestamp, count: usize) -> Vec<String> {
    let instants = schedule.upcoming(after).take(count);
    instants
        .map(|it| it.to_zoned(schedule.zone().clone()))
        .map(|it| it.strftime("%m-%d %H:%M:%S %:z").to_string())
        .collect()
}
