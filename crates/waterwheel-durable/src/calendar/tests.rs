//! Calendars with cron expressions, decided by the engine's rules.

use std::time::{Duration, UNIX_EPOCH};

use waterwheel_cron::jiff::Timestamp;
use waterwheel_durable_core::store::{Due, Id};

use super::*;
use waterwheel_durable_core::engine::calendar::{Cursor, Misfire, Plan, Progress, decide};
use waterwheel_durable_core::limits::{CALENDAR_PAYLOAD_LIMIT, MISFIRE_LIMIT, NAME_LIMIT};

fn due(text: &str) -> Due {
    let at: Timestamp = text.parse().unwrap();
    Due::from_millis(at.as_millisecond())
}

fn text(due: Due) -> String {
    let at = Timestamp::from_millisecond(due.as_millis()).unwrap();
    at.to_string()
}

fn plan(calendar: Calendar) -> Plan {
    calendar.ready("nightly").unwrap()
}

/// Decides at each of these times, and returns what is filed.
fn filed(plan: &Plan, begin: &str, now: &[&str]) -> Vec<String> {
    let mut cursor = Cursor::starting(due(begin), &*plan.occurrences);
    let mut filed = Vec::new();
    for now in now {
        let decision = decide(plan, cursor, due(now), 1_000);
        filed.extend(decision.occurrences.into_iter().map(text));
        cursor = decision.cursor;
    }
    filed
}

/// Decides at the time of each occurrence, and returns those up to the end.
fn each(calendar: Calendar, begin: &str, end: &str) -> Vec<String> {
    let plan = plan(calendar.zone("Europe/Berlin"));
    let mut cursor = Cursor::starting(due(begin), &*plan.occurrences);
    let (mut filed, mut now) = (Vec::new(), due(begin));
    loop {
        let decision = decide(&plan, cursor, now, 1_000);
        filed.extend(decision.occurrences.into_iter().map(text));
        cursor = decision.cursor;
        match decision.wakes_at {
            Some(next) if next <= due(end) => now = next,
            _ => return filed,
        }
    }
}

#[test]
fn the_first_and_the_last_occurrence_have_ids() {
    let each_second = plan(Calendar::cron("* * * * * *"));
    let next = |after| each_second.occurrences.next_after(after);
    let first = next(Due::from_millis(i64::MIN)).unwrap();
    assert_eq!(text(first), "1970-01-01T00:00:00Z");
    let last = next(due("2500-12-31T23:59:58Z")).unwrap();
    assert_eq!(text(last), "2500-12-31T23:59:59Z");
    assert_eq!(next(last), None);
    for due in [first, last] {
        assert!(Id::of_occurrence(0, 0, due.second()).is_some(), "{due:?}");
    }
}

#[test]
fn a_night_without_the_hour_has_its_job_at_its_end() {
    // On 28 March 2027, 2:00 is followed by 3:00 in Berlin.
    let nights = each(
        Calendar::cron("30 2 * * *"),
        "2027-03-27T00:00Z",
        "2027-03-30T00:00Z",
    );
    let expected = [
        "2027-03-27T01:30:00Z",
        "2027-03-28T01:00:00Z",
        "2027-03-29T00:30:00Z",
    ];
    assert_eq!(nights, expected);
    // The clock passes this time while the service is off.
    let plan = plan(Calendar::cron("30 2 * * *").zone("Europe/Berlin"));
    let off = [
        "2027-03-28T00:59Z",
        "2027-03-28T08:00Z",
        "2027-03-29T00:30Z",
    ];
    assert_eq!(filed(&plan, "2027-03-27T02:00Z", &off), &expected[1..]);
}

#[test]
fn a_night_with_the_hour_twice_has_its_job_once() {
    // On 31 October 2027, 3:00 is followed by 2:00 in Berlin.
    let nights = each(
        Calendar::cron("30 2 * * *"),
        "2027-10-30T00:00Z",
        "2027-11-01T12:00Z",
    );
    let expected = [
        "2027-10-30T00:30:00Z",
        "2027-10-31T00:30:00Z",
        "2027-11-01T01:30:00Z",
    ];
    assert_eq!(nights, expected);
    // A restart between the two 2:30s.
    let plan = plan(Calendar::cron("30 2 * * *").zone("Europe/Berlin"));
    let both = ["2027-10-31T00:30Z", "2027-10-31T01:30Z"];
    assert_eq!(filed(&plan, "2027-10-30T01:00Z", &both), &expected[1..2]);
}

#[test]
fn a_quarter_of_an_hour_goes_on_through_both_changes() {
    for (begin, end) in [
        ("2027-03-28T00:31Z", "2027-03-28T02:00Z"),
        ("2027-10-31T00:31Z", "2027-10-31T02:00Z"),
    ] {
        let quarters = each(Calendar::cron("*/15 * * * *"), begin, end);
        let day = &begin[..10];
        let expected = ["00:45", "01:00", "01:15", "01:30", "01:45", "02:00"];
        assert_eq!(quarters, expected.map(|it| format!("{day}T{it}:00Z")));
    }
}

#[test]
fn nothing_comes_before_its_time_or_after_it() {
    let at = |text: &str| UNIX_EPOCH + Duration::from_millis(due(text).as_millis().unsigned_abs());
    let calendar = Calendar::cron("0 3 * * *")
        .from(at("2027-07-06T03:00Z"))
        .until(at("2027-07-08T03:00Z"));
    let plan = plan(calendar);
    let next = |after| plan.occurrences.next_after(due(after)).map(text);
    assert_eq!(next("2027-07-01T00:00Z").unwrap(), "2027-07-06T03:00:00Z");
    assert_eq!(next("2027-07-06T03:00Z").unwrap(), "2027-07-07T03:00:00Z");
    assert_eq!(next("2027-07-07T03:00Z").unwrap(), "2027-07-08T03:00:00Z");
    assert_eq!(next("2027-07-08T03:00Z"), None);
    // Ids count seconds from 1970 to 2500.
    let plan = tests::plan(Calendar::cron("0 3 * * *"));
    let next = |after| {
        plan.occurrences
            .next_after(Due::from_millis(after))
            .map(text)
    };
    assert_eq!(next(i64::MIN), Some("1970-01-01T03:00:00Z".to_owned()));
    assert_eq!(next(i64::MAX), None);
}

#[test]
fn a_calendar_is_read_as_it_was_stored() {
    for payload in [&b"a text"[..], b"", b"\xff\x00"] {
        let calendar = Calendar::cron(" 0 3 * * * ")
            .zone("europe/BERLIN")
            .misfire(Misfire::CatchUpTo(7))
            .from(UNIX_EPOCH + Duration::from_micros(1_800_000_000_000_001))
            .handler("reports")
            .bytes(payload);
        let plan = plan(calendar.clone());
        let cursor = Cursor {
            aside: Some(due("2100-01-01T00:00Z")),
            last: Some(due("2027-03-27T02:00Z")),
            ..Cursor::starting(due("2027-03-27T03:04:05.678Z"), &*plan.occurrences)
        };
        let progress = Progress { number: 77, cursor };
        assert!(plan.definition.contains("Europe/Berlin"));
        let stored = plan.occurrences.stored(&progress);
        let (read, read_progress) = read(&stored).unwrap();
        assert_eq!(read_progress, progress);
        assert_eq!(
            (&read.definition, &read.times),
            (&plan.definition, &plan.times)
        );
        assert_eq!(read.handler, "reports".into());
        assert_eq!(&*read.payload, payload);
        assert_eq!(read.misfire, plan.misfire);
        assert_eq!(read.occurrences.stored(&progress), stored);
        // The same definition is equal; one in another zone is not.
        let again = tests::plan(calendar.clone());
        assert_eq!(again.definition, plan.definition);
        let other = tests::plan(calendar.clone().handler("others").misfire(Misfire::Skip));
        assert_ne!(other.definition, plan.definition);
        assert_eq!(other.times, plan.times);
        let later = calendar
            .clone()
            .until(UNIX_EPOCH + Duration::from_secs(1 << 32));
        assert_ne!(tests::plan(later).times, plan.times);
        let moved = tests::plan(calendar.zone("Europe/Paris"));
        assert_ne!(moved.times, plan.times);
    }
}

#[test]
fn the_stored_form_is_this_one() {
    let plan = plan(
        Calendar::cron("0 3 * * *")
            .zone("Europe/Berlin")
            .bytes(*b"{}"),
    );
    let cursor = Cursor::starting(due("2027-03-27T02:00Z"), &*plan.occurrences);
    let stored = plan.occurrences.stored(&Progress { number: 5, cursor });
    let rules = cursor.rules;
    let expected = format!(
        r#"{{"version":1,"number":5,"cursor":1806112800000,"civil":1806116400000,"rules":{rules},"#
    );
    let expected = expected
        + r#""calendar":{"expression":"0 3 * * *","zone":"Europe/Berlin","misfire":"once","handler":"nightly","payload":"{}"}}"#;
    assert_eq!(str::from_utf8(&stored), Ok(expected.as_str()));
}

#[test]
fn what_cannot_be_read_says_why() {
    let plan = plan(Calendar::cron("0 3 * * *").zone("Europe/Berlin"));
    let cursor = Cursor::starting(due("2027-03-27T02:00Z"), &*plan.occurrences);
    let stored = plan.occurrences.stored(&Progress { number: 5, cursor });
    let stored = str::from_utf8(&stored).unwrap();
    for (from, to, why) in [
        ("\"version\":1", "\"version\":2", "format 2"),
        ("Europe/Berlin", "Europe/Nowhere", "zone is invalid"),
        ("0 3 * * *", "0 3 * *", "expression is invalid"),
        ("\"number\":5", "\"number\":-5", "damaged"),
        ("}}", "}", "damaged"),
        ("\"misfire\"", "\"more\":1,\"misfire\"", "damaged"),
    ] {
        let changed = stored.replace(from, to);
        assert_ne!(changed, stored);
        let error = read(changed.as_bytes()).unwrap_err();
        assert!(error.why.contains(why), "{error:?}");
        // The number is still returned if it can be read.
        let number = (!to.contains("-5") && to != "}").then_some(5);
        assert_eq!(error.number, number, "{to}");
    }
    assert!(read(b"").unwrap_err().why.contains("damaged"));
}

#[test]
fn an_error_names_the_part_that_is_wrong() {
    use CalendarField as Field;

    let daily = || Calendar::cron("0 3 * * *");
    let long = "n".repeat(NAME_LIMIT + 1);
    let later = UNIX_EPOCH + Duration::from_secs(5);
    let beyond = UNIX_EPOCH + Duration::from_secs(3_600 * 24 * 366 * 300_000_000);
    let wrong = [
        (Calendar::cron(""), Field::Expression),
        (Calendar::cron("0 3 * *"), Field::Expression),
        (Calendar::cron("0 24 * * *"), Field::Expression),
        (Calendar::cron("nonsense"), Field::Expression),
        (Calendar::cron("0 0 31 6 *"), Field::Expression),
        // 30 February never comes, and these times fall into the gap of each spring.
        (Calendar::cron("0 0 30 2 *"), Field::Expression),
        (
            Calendar::cron("*/30 2 8-14 3 +SUN").zone("America/New_York"),
            Field::Expression,
        ),
        (daily().zone("Europe/Nowhere"), Field::Zone),
        (daily().zone(""), Field::Zone),
        (daily().misfire(Misfire::CatchUpTo(0)), Field::Misfire),
        (
            daily().misfire(Misfire::CatchUpTo(MISFIRE_LIMIT + 1)),
            Field::Misfire,
        ),
        (daily().from(beyond), Field::From),
        (daily().until(beyond), Field::Until),
        (daily().from(later).until(UNIX_EPOCH), Field::Until),
        (daily().handler(""), Field::Handler),
        (daily().handler("a/"), Field::Handler),
        (daily().handler("/a"), Field::Handler),
        (daily().handler("a/b/c"), Field::Handler),
        (daily().handler(&long), Field::Handler),
        (
            daily().bytes(vec![0; CALENDAR_PAYLOAD_LIMIT + 1]),
            Field::Payload,
        ),
    ];
    for (calendar, field) in wrong {
        let error = calendar.clone().ready("nightly").unwrap_err();
        assert_eq!(error.field(), field, "{calendar:?}");
        let says = format!("the calendar's {field} is invalid: ");
        assert!(error.to_string().starts_with(&says), "{error}");
    }
    let error = daily().handler("default/a").ready("nightly").unwrap_err();
    let says =
        "handler is invalid: \"default/a\": handlers of the namespace `default` are named without";
    assert!(error.to_string().contains(says), "{error}");
    for name in ["", &long] {
        let error = daily().ready(name).unwrap_err();
        assert_eq!(error.field(), Field::Name);
    }
    let largest = daily()
        .misfire(Misfire::CatchUpTo(MISFIRE_LIMIT))
        .bytes(vec![0; CALENDAR_PAYLOAD_LIMIT]);
    assert!(largest.ready(&long[1..]).is_ok());
}

#[test]
fn a_payload_that_is_no_json_is_an_error_of_the_payload() {
    let map = std::collections::HashMap::from([([1, 2], 3)]);
    let error = Calendar::cron("0 3 * * *")
        .payload(&map)
        .ready("nightly")
        .unwrap_err();
    assert_eq!(error.field(), CalendarField::Payload);
    let text = plan(Calendar::cron("0 3 * * *").payload("a report"));
    assert_eq!(&*text.payload, b"\"a report\"");
}
