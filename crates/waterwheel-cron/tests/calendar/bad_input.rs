//! Expressions that `parse` refuses. It names the invalid field, and never panics.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use waterwheel_cron::{Field, Schedule, ScheduleError, ScheduleOptions};

#[track_caller]
fn error(expression: &str) -> ScheduleError {
    match Schedule::parse_in(expression, TimeZone::UTC) {
        Ok(schedule) => panic!("{schedule:?}"),
        Err(error) => error,
    }
}

/// The field is named, with its text and with a hint.
#[track_caller]
fn names(expression: &str, expected: Field, text: &str, hint: &str) {
    let error = error(expression);
    assert_eq!(error.field(), Some(expected), "{expression:?}: {error}");
    let message = error.to_string();
    assert!(
        message.contains(&format!("the {expected} {text:?}")),
        "{message}"
    );
    assert!(message.contains(hint), "{message}");
}

#[test]
fn an_empty_expression_is_refused() {
    for expression in ["", " ", "\t\n"] {
        assert_eq!(error(expression), ScheduleError::Empty);
    }
}

#[test]
fn too_few_and_too_many_fields_are_counted() {
    for (expression, count) in [
        ("*", 1),
        ("0 9 * *", 4),
        ("0 0 9 * * TUE 2030", 7),
        ("* * * * * * * *", 8),
    ] {
        let error = error(expression);
        assert!(
            matches!(error, ScheduleError::FieldCount { found, .. } if found == count),
            "{error}"
        );
        assert_eq!(
            error.to_string().contains("ScheduleOptions::years"),
            count == 7,
            "{error}"
        );
    }
    let years = ScheduleOptions::new().years(true);
    let error = years
        .parse_in("* * * * * * * *", TimeZone::UTC)
        .unwrap_err();
    assert!(
        matches!(error, ScheduleError::FieldCount { found: 8, .. }),
        "{error}"
    );
}

#[test]
fn a_value_that_is_out_of_range_names_its_field() {
    names("60 * * * *", Field::Minute, "60", "0-59");
    names("61 * * * * *", Field::Second, "61", "0-59");
    names("0 24 * * *", Field::Hour, "24", "0-23");
    names("0 0 0 * *", Field::DayOfMonth, "0", "1-31");
    names("0 0 1,32 * *", Field::DayOfMonth, "1,32", "1-31");
    names("0 0 32W * *", Field::DayOfMonth, "32W", "15W");
    names("0 0 * 13 *", Field::Month, "13", "JAN-DEC");
    names("0 0 * 0-3 *", Field::Month, "0-3", "JAN-DEC");
    names("0 0 * * 8", Field::DayOfWeek, "8", "SUN-SAT");
    names(
        "99999999999999999999 * * * *",
        Field::Minute,
        "99999999999999999999",
        "0-59",
    );
    names("* * * * 0-65535", Field::DayOfWeek, "0-65535", "0-7");
}

#[test]
fn a_year_that_is_out_of_range_names_its_field() {
    let years = ScheduleOptions::new().years(true);
    for year in ["0", "5001", "2030-2020", "MMXX"] {
        let error = years
            .parse_in(&format!("0 0 0 1 1 * {year}"), TimeZone::UTC)
            .unwrap_err();
        assert_eq!(error.field(), Some(Field::Year), "{error}");
    }
}

#[test]
fn the_first_wrong_field_is_named() {
    names("* 25 * 13 *", Field::Hour, "25", "0-23");
    names("60 0 * FOO 8", Field::Minute, "60", "0-59");
    names("0 0 BAR FOO 8", Field::DayOfMonth, "BAR", "1-31");
}

#[test]
fn a_step_of_0_is_refused() {
    names(
        "*/0 * * * *",
        Field::Minute,
        "*/0",
        "a step must be 1 or more",
    );
    names(
        "0 9-17/00 * * *",
        Field::Hour,
        "9-17/00",
        "a step must be 1 or more",
    );
}

// It was silently hourly.
#[test]
fn a_step_as_large_as_its_field_is_refused() {
    names("*/60 * * * * *", Field::Second, "*/60", "once a minute");
    names("*/60 * * * *", Field::Minute, "*/60", "once an hour");
    names("*/90 * * * *", Field::Minute, "*/90", "fixed rate");
    names(
        "5,10-50/60 * * * *",
        Field::Minute,
        "5,10-50/60",
        "once an hour",
    );
    names("0 */24 * * *", Field::Hour, "*/24", "once a day");
    names("0 0 */31 * *", Field::DayOfMonth, "*/31", "once a month");
    names("0 0 1 */12 *", Field::Month, "*/12", "once a year");
    names("0 0 * * */7", Field::DayOfWeek, "*/7", "once a week");
    let years = ScheduleOptions::new().years(true);
    let error = years.parse_in("0 0 0 1 1 * */5000", TimeZone::UTC);
    let error = error.unwrap_err();
    assert_eq!(error.field(), Some(Field::Year), "{error}");
    // A step that is one smaller matches two values.
    for expression in [
        "*/59 */59 */23 * * *",
        "0 0 */30 * *",
        "0 0 1 */11 *",
        "0 0 * * */6",
    ] {
        assert!(Schedule::parse_in(expression, TimeZone::UTC).is_ok());
    }
}

#[test]
fn a_step_needs_a_range() {
    names("0/15 * * * *", Field::Minute, "0/15", "*/5");
    names("/15 * * * *", Field::Minute, "/15", "*/5");
    names("*/ * * * *", Field::Minute, "*/", "0-59");
    names("*/5/5 * * * *", Field::Minute, "*/5/5", "0-59");
}

#[test]
fn a_range_goes_upwards() {
    names("0 22-5 * * *", Field::Hour, "22-5", "22-23,0-5");
    names(
        "0 0 * NOV-FEB *",
        Field::Month,
        "NOV-FEB",
        "`NOV-DEC,JAN-FEB` instead of",
    );
    for text in [
        "FRI-MON",
        "fri-mon",
        "5-1",
        "FRI-1",
        "FRI-0",
        "TUE,FRI-MON/2",
    ] {
        let hint = "`FRI-SAT,SUN-MON` instead of";
        names(&format!("0 0 * * {text}"), Field::DayOfWeek, text, hint);
    }
    names("0 1-2-3 * * *", Field::Hour, "1-2-3", "");
    names("0 -3 * * *", Field::Hour, "-3", "");
}

#[test]
fn a_month_has_a_weekday_at_most_five_times() {
    for text in [
        "MON#6", "MON#0", "MON#", "#2", "MON##2", "MON#2#3", "MON#TUE",
    ] {
        names(&format!("0 0 * * {text}"), Field::DayOfWeek, text, "#5");
    }
}

#[test]
fn names_that_are_unknown_or_elsewhere_are_refused() {
    names("0 0 * FOO *", Field::Month, "FOO", "JAN-DEC");
    names("0 0 * JANUARY *", Field::Month, "JANUARY", "JAN-DEC");
    names("0 0 * JAN2 *", Field::Month, "JAN2", "JAN-DEC");
    names("0 0 * MON *", Field::Month, "MON", "JAN-DEC");
    names("0 0 * * JAN", Field::DayOfWeek, "JAN", "SUN-SAT");
    names("0 0 * * SUNDAY", Field::DayOfWeek, "SUNDAY", "SUN-SAT");
    names("0 0 * * MONTUE", Field::DayOfWeek, "MONTUE", "SUN-SAT");
    names("0 0 * * L", Field::DayOfWeek, "L", "FRIL");
    names("MON * * * *", Field::Minute, "MON", "0-59");
    names("0 L * * *", Field::Hour, "L", "0-23");
    names("0 0 W * *", Field::DayOfMonth, "W", "15W");
    names("0 0 L-3 * *", Field::DayOfMonth, "L-3", "LW");
    names(
        "0 0 L,15,lw * *",
        Field::DayOfMonth,
        "L,15,lw",
        "two expressions",
    );
    names("? * * * *", Field::Minute, "?", "0-59");
    names("+5 * * * *", Field::Minute, "+5", "0-59");
    names("0 0 * * ++MON", Field::DayOfWeek, "++MON", "SUN-SAT");
}

#[test]
fn a_list_with_a_hole_is_refused() {
    for text in [",", "1,", ",1", "1,,2"] {
        names(
            &format!("{text} * * * *"),
            Field::Minute,
            text,
            "each comma",
        );
        names(
            &format!("0 0 * * {text}"),
            Field::DayOfWeek,
            text,
            "each comma",
        );
    }
}

#[test]
fn unknown_nicknames_are_refused() {
    for nickname in ["@", "@reboot", "@every 5m", "@daily 9"] {
        let error = error(nickname);
        assert!(
            matches!(error, ScheduleError::UnknownNickname { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("@hourly"), "{error}");
    }
}

#[test]
fn characters_beyond_ascii_are_refused() {
    // The second is U+017F, the upper case of which is S.
    for (expression, found) in [
        ("0 9 * * Dı", 'ı'),
        ("0 9 * * \u{17f}UN", '\u{17f}'),
        ("0 9 * * １", '１'),
    ] {
        let error = error(expression);
        assert!(
            matches!(error, ScheduleError::NotAscii { character, .. } if character == found),
            "{error}"
        );
    }
    assert!(error("0 9 \0 * *").field().is_some());
}

#[test]
fn ten_thousand_characters_are_refused() {
    for part in ["0,", "*/1 ", "é", "@"] {
        let expression = part.repeat(10_000 / part.len());
        let error = error(&expression);
        assert!(matches!(error, ScheduleError::TooLong { .. }), "{error}");
        assert!(error.to_string().len() < 300, "{error}");
    }
}

#[test]
fn every_value_of_every_field_is_not_too_long() {
    let list = |range: std::ops::RangeInclusive<u32>| {
        let values: Vec<String> = range.map(|it| it.to_string()).collect();
        values.join(",")
    };
    let expression = [
        list(0..=59),
        list(0..=59),
        list(0..=23),
        list(1..=31),
        list(1..=12),
        list(0..=7),
    ]
    .join(" ");
    Schedule::parse_in(&expression, TimeZone::UTC).unwrap();
}

#[test]
fn what_never_comes_is_refused() {
    for expression in [
        "0 0 30 2 *",
        "0 0 31 2 *",
        "0 0 31 4 *",
        "0 0 31 4,6,9,11 *",
        "0 0 30,31 FEB ?",
        "0 0 30W 2 *",
        "0 0 31W 4,6 *",
        "0 0 30 2 +MON",
        "0 0 8 * +MON#1",
        "0 0 1-7 * +MONL",
        "0 0 1 * +MON#5",
        "0 0 LW * +SUN",
        "0 0 15W * +SAT,SUN",
        "0 0 30 2 */2",
    ] {
        assert_eq!(error(expression), ScheduleError::Never, "{expression}");
    }
    let years = ScheduleOptions::new().years(true);
    for expression in [
        "0 0 0 29 2 * 2025-2027",
        "0 0 0 29 2 * 2100",
        "0 0 0 29 2 +MON 2024",
    ] {
        let found = years.parse_in(expression, TimeZone::UTC);
        assert_eq!(found, Err(ScheduleError::Never), "{expression}");
    }
}

#[test]
fn what_seldom_comes_is_taken() {
    for expression in [
        "0 0 29 2 *",
        "0 0 30 2 MON",
        "0 0 29 2 +MON",
        "0 0 29W 2 *",
        "0 0 * 2 MON#5",
        "0 0 31 2,3 *",
        "0 0 L 2 *",
        "0 0 31 * +SUN#5",
        "0 0 28 2 +SUNL",
    ] {
        Schedule::parse_in(expression, TimeZone::UTC).unwrap();
    }
}

#[test]
fn unknown_zones_are_refused() {
    for zone in [
        "",
        " ",
        "Europe/Berlim",
        "../../etc/passwd",
        "Mars/Phobos",
        "\0",
        &"x".repeat(10_000),
    ] {
        let error = Schedule::parse("0 9 * * *", zone).unwrap_err();
        assert!(
            matches!(error, ScheduleError::UnknownZone { .. }),
            "{error}"
        );
        assert!(error.is_zone() && error.to_string().len() < 300, "{error}");
    }
    assert!(Schedule::parse("0 9 * * *", "europe/berlin").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_expression_panics(expression in "\\PC{0,40}|[-0-9*,/#LW?+A-Z@ ]{0,40}|([-0-9*,/#LWF?+]{1,4} ){4}[-0-9*,/#LMON+]{1,6}") {
        let options = ScheduleOptions::new().years(true);
        match options.parse_in(&expression, TimeZone::UTC) {
            Ok(schedule) => prop_assert_eq!(schedule.to_string(), expression.trim()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
