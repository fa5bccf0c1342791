//! Policies that are shown and changed, and calendars with their next occurrences.

use serde_json::{Value, json};
use waterwheel_durable::{Backoff, Durable, Policy, Rate};
use waterwheel_durable_core::store::Store;

use crate::support::*;

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_service_applies_a_policy_that_is_set() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
    let policy = Policy::default().priority(3).retention(7);
    let shop = timers.create_namespace("shop", policy.clone()).await;
    let shop = shop.unwrap();
    let line = "policy set shop --rate 100/1s,20 --concurrency 32 --insert-rate 5000/1m --starts 9";
    let said = file.beside(line).await.well();
    assert_eq!(said, "changed the policy of shop\n");
    let expected = policy
        .rate(Rate::per_second(100).burst(20))
        .concurrency(32)
        .insert_rate(Rate::per_minute(5_000))
        .starts(9);
    assert_eq!(shop.policy().unwrap(), expected);
    let line = "policy set shop --backoff 15s,1h,12 --rate none --retention none";
    file.beside(line).await.well();
    let expected = expected
        .backoff(Backoff::new(SECOND * 15, SECOND * 3_600).max_attempts(12))
        .rate(None)
        .retention(None);
    assert_eq!(shop.policy().unwrap(), expected);
    let said = file.beside("policy set none --priority 2").await.failure();
    assert!(said.contains("there is no namespace \"none\""), "{said}");
    let said = file.beside("policy set shop --priority 0").await.failure();
    assert!(
        said.contains("the policy's `priority` is invalid"),
        "{said}"
    );
    assert_eq!(shop.policy().unwrap(), expected);
    stop(&timers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_set_before_the_start_applies_from_then_on() {
    let file = TimersFile::with(&[set("namespace/shop", "{}")]);
    let said = file.beside("policy show shop").await.well();
    assert_eq!(said, "all fields have their defaults\n");
    let line = "policy set shop --retry-delays 15s,1m,1h --priority 5";
    file.beside(line).await.well();
    let said = file.beside("policy show shop").await.well();
    let expected = "retry_delays  15 s 1 min 1 h\npriority      5\n";
    assert_eq!(said, expected);
    file.beside("policy set default --concurrency 7")
        .await
        .well();
    let shown = file.beside("policy show default --json").await.json();
    let expected = json!({"namespace": "default", "policy": {"concurrency": 7}});
    assert_eq!(shown, expected);
    let timers = Durable::open(&*file).await.unwrap();
    let expected = Policy::default()
        .retry_delays([SECOND * 15, SECOND * 60, SECOND * 3_600])
        .priority(5);
    assert_eq!(timers.namespace("shop").unwrap().policy(), Ok(expected));
    stop(&timers).await;
    for (retry_delays, expected) in [
        (
            "--retry-delays none",
            "retry_delays  none\npriority      5\n",
        ),
        ("--retry-delays default", "priority      5\n"),
        (
            "--backoff 1s,1d",
            "backoff       first 1 s max 1 d max_attempts 20\npriority      5\n",
        ),
        ("--retry-delays default", "priority      5\n"),
    ] {
        let line = format!("policy set shop {retry_delays}");
        file.beside(line).await.well();
        let said = file.beside("policy show shop").await.well();
        assert_eq!(said, expected);
    }
    let said = file.beside("policy show none").await.failure();
    assert!(said.contains("there is no namespace \"none\""), "{said}");
}

#[test]
fn a_policy_of_a_newer_release_is_shown_and_not_changed() {
    let newer = "{\"colour\":7,\"priority\":2}";
    let file = TimersFile::with(&[set("namespace/shop", newer)]);
    let said = file.cli("policy show shop");
    assert_eq!(said.out, "colour        7\npriority      2\n");
    assert!(said.err.contains("cannot read the policy"), "{said:?}");
    let said = file.failure("policy set shop --priority 3");
    assert!(said.contains("cannot read the policy"), "{said}");
    let settings = reopened(&file).settings().unwrap();
    assert_eq!(&*settings[0].value, newer.as_bytes());
    let damaged = TimersFile::with(&[set("namespace/shop", "spoilt")]);
    let said = damaged.cli("policy show shop");
    assert_eq!(said.out, "policy        spoilt\n");
    assert!(said.err.contains("cannot read the policy"), "{said:?}");
}

fn calendar(expression: &str, zone: &str, more: &str) -> String {
    format!(
        "{{\"version\":1,\"calendar\":{{\"expression\":\"{expression}\",\"zone\":\"{zone}\",\"handler\":\"report\"{more}}}}}"
    )
}

#[test]
fn a_calendar_is_listed_with_its_next_occurrences() {
    // The first of January 2100, and the following ones.
    let from = ",\"from\":4102444800000";
    let until = ",\"from\":4102444800000,\"until\":4165520400000";
    let file = TimersFile::with(&[
        set("calendar/a", &calendar("0 2 1 1 *", "Europe/Berlin", from)),
        set("calendar/b", &calendar("0 2 1 1 *", "Europe/Berlin", until)),
        set("calendar/c", &calendar("0 2 1 1 *", "Nowhere/Else", from)),
    ]);
    let listed = file.cli("calendars --json");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let next = ["2100-01-01T01:00:00.000Z", "2101-01-01T01:00:00.000Z"];
    let third = "2102-01-01T01:00:00.000Z";
    let calendars = &listed["calendars"];
    assert_eq!(
        calendars[0]["occurrences"],
        json!([next[0], next[1], third])
    );
    assert_eq!(calendars[0]["error"], Value::Null);
    assert_eq!(
        calendars[1]["occurrences"],
        json!([next[0], next[1], third])
    );
    assert_eq!(calendars[2]["occurrences"], json!([]));
    let error = calendars[2]["error"].as_str().unwrap();
    assert!(error.contains("Nowhere/Else"), "{error}");

    let said = file.cli("calendars --next 2");
    assert_eq!(said.code, 0);
    let lines: Vec<_> = said.out.lines().collect();
    assert_eq!(lines.len(), 6, "{said:?}");
    assert!(lines[1].starts_with("a ") && lines[1].ends_with(next[0]));
    assert_eq!(lines[2].trim(), next[1]);
    assert!(lines[5].starts_with("c ") && lines[5].ends_with(" -"));
    assert!(said.err.contains("the calendar \"c\": "), "{said:?}");
    let file = TimersFile::with(&[]);
    assert_eq!(file.well("calendars"), "there are no calendars\n");
}
