//! Random expressions that are valid field by field, random zones and instants.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::zone;

const ZONES: &[&str] = &[
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "America/Santiago",
    "America/Nuuk",
    "America/Toronto",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Europe/Dublin",
];

/// An expression of five or six fields. Some never run.
pub(crate) fn expression() -> impl Strategy<Value = String> {
    let seconds = prop_oneof![3 => Just(String::new()), 1 => field(0, 59).prop_map(|it| it + " ")];
    let times = (seconds, field(0, 59), field(0, 23));
    let days = (list_of(day_of_month()), field(1, 12), day_of_week());
    (times, days).prop_map(|((second, minute, hour), (day, month, weekday))| {
        format!("{second}{minute} {hour} {day} {month} {weekday}")
    })
}

fn field(least: u32, greatest: u32) -> BoxedStrategy<String> {
    prop_oneof![
        2 => Just("*".to_owned()),
        1 => step(least, greatest).prop_map(|step| format!("*/{step}")),
        3 => list_of(item(least, greatest)),
    ]
    .boxed()
}

/// A value, a range or a range with a step.
fn item(least: u32, greatest: u32) -> BoxedStrategy<String> {
    let range = (least..=greatest, least..=greatest)
        .prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    prop_oneof![
        3 => (least..=greatest).prop_map(|it| it.to_string()),
        1 => range.clone(),
        1 => (range, step(least, greatest)).prop_map(|(range, step)| format!("{range}/{step}")),
    ]
    .boxed()
}

/// Steps smaller than the number of values. Among weekdays, Sunday has two values.
fn step(least: u32, greatest: u32) -> std::ops::RangeInclusive<u32> {
    1..=(greatest - least).min(if greatest == 7 { 6 } else { greatest })
}

fn list_of(items: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::collection::vec(items, 1..4).prop_map(|items| {
        // These stand alone: `L,LW` is refused.
        let star = items
            .iter()
            .find(|it| matches!(it.as_str(), "*" | "?" | "LW"));
        star.cloned().unwrap_or_else(|| items.join(","))
    })
}

fn day_of_month() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("*".to_owned()),
        4 => item(1, 31),
        1 => select(vec!["L", "LW", "?", "29", "30", "31", "1W", "31W"]).prop_map(str::to_owned),
        1 => (1..=31).prop_map(|it| format!("{it}W")),
    ]
}

fn day_of_week() -> impl Strategy<Value = String> {
    let names = select(vec![
        "SUN", "mon", "TUE", "Wed", "THU", "FRI", "SAT", "0", "7",
    ]);
    let nth = (names, select(vec!["", "", "#1", "#2", "#4", "#5", "#L"]))
        .prop_map(|(day, nth)| format!("{day}{nth}"));
    let list = prop_oneof![list_of(nth), list_of(item(0, 7))];
    prop_oneof![
        2 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        2 => list.clone(),
        1 => list.prop_map(|it| format!("+{it}")),
    ]
}

pub(crate) fn a_zone() -> impl Strategy<Value = TimeZone> {
    select(ZONES).prop_map(zone)
}

/// An instant, mostly of our time, and often near a clock change.
pub(crate) fn instant() -> impl Strategy<Value = Timestamp> {
    let near_2026 = 1_400_000_000_000_i64..2_300_000_000_000;
    // The Sundays on which the clocks of Berlin and New York are changed.
    let changes = select(vec![
        1_774_746_000,
        1_792_890_000,
        1_772_953_200,
        1_793_512_800,
    ]);
    let near_changes = (changes, -90_000_000..90_000_000_i64)
        .prop_map(|(change, distance)| change * 1000 + distance);
    let all = Timestamp::MIN.as_millisecond() + 1..Timestamp::MAX.as_millisecond();
    prop_oneof![5 => near_2026, 3 => near_changes, 1 => all]
        .prop_map(|it| Timestamp::from_millisecond(it).unwrap())
}
