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

/// An expression, the field that is named, the field's text, and a part of the hint.
const WRONG_FIELDS: &str = "
# a value that is out of range names its field
60 * * * * | Minute | 60 | 0-59
61 * * * * * | Second | 61 | 0-59
0 24 * * * | Hour | 24 | 0-23
0 0 0 * * | DayOfMonth | 0 | 1-31
0 0 1,32 * * | DayOfMonth | 1,32 | 1-31
0 0 32W * * | DayOfMonth | 32W | 15W
0 0 * 13 * | Month | 13 | JAN-DEC
0 0 * 0-3 * | Month | 0-3 | JAN-DEC
0 0 * * 8 | DayOfWeek | 8 | SUN-SAT
99999999999999999999 * * * * | Minute | 99999999999999999999 | 0-59
* * * * 0-65535 | DayOfWeek | 0-65535 | 0-7
# the first wrong field is named
* 25 * 13 * | Hour | 25 | 0-23
60 0 * FOO 8 | Minute | 60 | 0-59
0 0 BAR FOO 8 | DayOfMonth | BAR | 1-31
# a step of 0 is refused
*/0 * * * * | Minute | */0 | a step must be 1 or more
0 9-17/00 * * * | Hour | 9-17/00 | a step must be 1 or more
# a step as large as its field is refused: it was silently hourly
*/60 * * * * * | Second | */60 | once a minute
*/60 * * * * | Minute | */60 | once an hour
*/90 * * * * | Minute | */90 | fixed rate
5,10-50/60 * * * * | Minute | 5,10-50/60 | once an hour
0 */24 * * * | Hour | */24 | once a day
0 0 */31 * * | DayOfMonth | */31 | once a month
0 0 1 */12 * | Month | */12 | once a year
0 0 * * */7 | DayOfWeek | */7 | once a week
# a step needs a range
0/15 * * * * | Minute | 0/15 | */5
/15 * * * * | Minute | /15 | */5
*/ * * * * | Minute | */ | 0-59
*/5/5 * * * * | Minute | */5/5 | 0-59
# a range goes upwards
0 22-5 * * * | Hour | 22-5 | 22-23,0-5
0 0 * NOV-FEB * | Month | NOV-FEB | `NOV-DEC,JAN-FEB` instead of
0 1-2-3 * * * | Hour | 1-2-3 |
0 -3 * * * | Hour | -3 |
# names that are unknown or elsewhere are refused
0 0 * FOO * | Month | FOO | JAN-DEC
0 0 * JANUARY * | Month | JANUARY | JAN-DEC
0 0 * JAN2 * | Month | JAN2 | JAN-DEC
0 0 * MON * | Month | MON | JAN-DEC
0 0 * * JAN | DayOfWeek | JAN | SUN-SAT
0 0 * * SUNDAY | DayOfWeek | SUNDAY | SUN-SAT
0 0 * * MONTUE | DayOfWeek | MONTUE | SUN-SAT
0 0 * * L | DayOfWeek | L | FRIL
MON * * * * | Minute | MON | 0-59
0 L * * * | Hour | L | 0-23
0 0 W * * | DayOfMonth | W | 15W
0 0 L-3 * * | DayOfMonth | L-3 | LW
0 0 L,15,lw * * | DayOfMonth | L,15,lw | two expressions
? * * * * | Minute | ? | 0-59
+5 * * * * | Minute | +5 | 0-59
0 0 * * ++MON | DayOfWeek | ++MON | SUN-SAT
# a range goes upwards: Sunday ends a week
0 0 * * FRI-MON | DayOfWeek | FRI-MON | `FRI-SAT,SUN-MON` instead of
0 0 * * fri-mon | DayOfWeek | fri-mon | `FRI-SAT,SUN-MON` instead of
0 0 * * 5-1 | DayOfWeek | 5-1 | `FRI-SAT,SUN-MON` instead of
0 0 * * FRI-1 | DayOfWeek | FRI-1 | `FRI-SAT,SUN-MON` instead of
0 0 * * FRI-0 | DayOfWeek | FRI-0 | `FRI-SAT,SUN-MON` instead of
0 0 * * TUE,FRI-MON/2 | DayOfWeek | TUE,FRI-MON/2 | `FRI-SAT,SUN-MON` instead of
# a month has a weekday at most five times
0 0 * * MON#6 | DayOfWeek | MON#6 | #5
0 0 * * MON#0 | DayOfWeek | MON#0 | #5
0 0 * * MON# | DayOfWeek | MON# | #5
0 0 * * #2 | DayOfWeek | #2 | #5
0 0 * * MON##2 | DayOfWeek | MON##2 | #5
0 0 * * MON#2#3 | DayOfWeek | MON#2#3 | #5
0 0 * * MON#TUE | DayOfWeek | MON#TUE | #5
# a list has no hole
, * * * * | Minute | , | each comma
0 0 * * , | DayOfWeek | , | each comma
1, * * * * | Minute | 1, | each comma
0 0 * * 1, | DayOfWeek | 1, | each comma
,1 * * * * | Minute | ,1 | each comma
0 0 * * ,1 | DayOfWeek | ,1 | each comma
1,,2 * * * * | Minute | 1,,2 | each comma
0 0 * * 1,,2 | DayOfWeek | 1,,2 | each comma
";

#[test]
fn a_wrong_field_is_named_with_its_text_and_a_hint() {
    for row in WRONG_FIELDS.lines().filter(|it| it.contains(" |")) {
        let [expression, field, text, hint] = row.split(" |").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let error = error(expression);
        let found = error.field().expect(row);
        assert_eq!(format!(" {found:?}"), field, "{row}: {error}");
        let (text, message) = (&text[1..], error.to_string());
        assert!(
            message.contains(&format!("the {found} {text:?}")),
            "{row}: {message}"
        );
        assert!(message.contains(hint.trim()), "{row}: {message}");
    }
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
fn a_year_that_is_out_of_range_names_its_field() {
    let years = ScheduleOptions::new().years(true);
    // The last is a step as large as the field.
    for year in ["0", "5001", "2030-2020", "MMXX", "*/5000"] {
        let expression = format!("0 0 0 1 1 * {year}");
        let error = years.parse_in(&expression, TimeZone::UTC).unwrap_err();
        assert_eq!(error.field(), Some(Field::Year), "{error}");
    }
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
