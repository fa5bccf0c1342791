//! Every clock change of seven zones from 2015 to 2037, compared to the oracle.

use jiff::Timestamp;
use waterwheel_cron::Schedule;

use crate::oracle::{Change, ORACLE};
use crate::support::schedule;

/// The distances before and after a change at which searches begin, in seconds.
const DISTANCES: [i64; 40] = [
    1, 30, 59, 60, 61, 300, 599, 600, 899, 900, 901, 1200, 1499, 1500, 1799, 1800, 1801, 2400,
    2699, 2700, 3000, 3540, 3599, 3600, 3601, 4500, 5399, 5400, 5401, 7199, 7200, 7201, 9000,
    10_800, 14_400, 21_600, 43_200, 72_000, 86_400, 108_000,
];

#[test]
fn all_zones_run_as_the_oracle_says() {
    for zone in &ORACLE.zones {
        agrees(zone.name);
    }
}

#[track_caller]
fn agrees(zone: &str) {
    let mut wrong = Vec::new();
    for (index, expression) in ORACLE.expressions.iter().enumerate() {
        let schedule = schedule(expression, zone);
        for change in &ORACLE.zone(zone).changes {
            let runs = &change.runs[index];
            for found in [
                series(&schedule, change, runs),
                series_back(&schedule, change, runs),
                searches(&schedule, change, runs),
            ] {
                if let Err(difference) = found {
                    let at = second(change.at);
                    wrong.push(format!("`{expression}` around {at}: {difference}"));
                }
            }
        }
    }
    let count = wrong.len();
    wrong.truncate(10);
    assert!(count == 0, "{count} differ in {zone}: {}", wrong.join("\n"));
}

/// Follows the runs one by one, from the beginning of the window to its end.
fn series(schedule: &Schedule, change: &Change, runs: &[i64]) -> Result<(), String> {
    let (start, end) = window(change);
    let ours = schedule.upcoming(start).take_while(|it| *it < end);
    let ours: Vec<i64> = ours.map(|it| it.as_second() - change.at).collect();
    are_same(&ours, runs)
}

/// Follows the runs one by one, from the end of the window to its beginning.
fn series_back(schedule: &Schedule, change: &Change, runs: &[i64]) -> Result<(), String> {
    let (start, end) = window(change);
    let ours = std::iter::successors(Some(end), |it| schedule.previous_before(*it));
    let ours = ours.skip(1).take_while(|it| *it > start);
    let mut ours: Vec<i64> = ours.map(|it| it.as_second() - change.at).collect();
    ours.reverse();
    are_same(&ours, runs).map_err(|difference| format!("back: {difference}"))
}

fn are_same(ours: &[i64], runs: &[i64]) -> Result<(), String> {
    if ours == runs {
        return Ok(());
    }
    let missing: Vec<_> = runs.iter().filter(|it| !ours.contains(it)).collect();
    let extra: Vec<_> = ours.iter().filter(|it| !runs.contains(it)).collect();
    Err(format!(
        "missing {missing:?}, extra {extra:?}, in seconds from the change"
    ))
}

/// Searches from the change and from eighty instants around it, including runs.
fn searches(schedule: &Schedule, change: &Change, runs: &[i64]) -> Result<(), String> {
    let (start, end) = window(change);
    let before = DISTANCES.iter().rev().map(|it| -it);
    for distance in before.chain([0]).chain(DISTANCES) {
        let at = second(change.at + distance);
        let found = schedule.next_after(at);
        let agrees = match runs.get(runs.partition_point(|it| *it <= distance)) {
            Some(run) => found == Some(second(change.at + run)),
            None => found.is_none_or(|it| it >= end),
        };
        if !agrees {
            return Err(format!("from {distance} s after it: {found:?}"));
        }
        let found = schedule.previous_before(at);
        let agrees = match runs[..runs.partition_point(|it| *it < distance)].last() {
            Some(run) => found == Some(second(change.at + run)),
            None => found.is_none_or(|it| it <= start),
        };
        if !agrees {
            return Err(format!("back from {distance} s after it: {found:?}"));
        }
        if schedule.matches(at) != runs.contains(&distance) {
            return Err(format!("whether {distance} s after it is a run"));
        }
    }
    Ok(())
}

/// The times just before the first instant and after the last.
fn window(change: &Change) -> (Timestamp, Timestamp) {
    let start = second(change.at - ORACLE.window - 1);
    (start, second(change.at + ORACLE.window))
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}
