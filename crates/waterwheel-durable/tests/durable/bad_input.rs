//! Invalid input is refused with an error that names it, and harms nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Backoff, Error, HandlerOptions, NewTimer, PAYLOAD_LIMIT, Policy, Rate};

use crate::namespaces::create;
use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn an_unknown_namespace_is_named() {
    let (timers, shelf) = in_memory().await;
    let unknown = || Error::UnknownNamespace {
        name: "shop".into(),
    };
    assert_eq!(timers.namespace("shop").unwrap_err(), unknown());
    let inserted = within(timers.at("shop/mail", soon()).insert()).await;
    assert_eq!(inserted, Err(unknown()));
    let batch = [
        NewTimer::at("mail", soon()),
        NewTimer::at("shop/mail", soon()),
    ];
    assert_eq!(within(timers.insert_many(batch)).await, Err(unknown()));
    let handled = AssertUnwindSafe(|| timers.handle("shop/mail", |_| async { Ok(()) }));
    let panic = catch_unwind(handled).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("no namespace \"shop\"") && text.contains("create_namespace"),
        "{text}"
    );
    assert_eq!((shelf.len(), shelf.commits()), (0, 0));
    // Nothing is left of the refused call: the namespace can be created, and works like any other.
    assert_eq!(timers.metrics().namespaces.len(), 1);
    create(&timers, "shop", Policy::default()).await;
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    added(timers.at("shop/mail", soon())).await;
    deliveries.next().await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_names_the_field() {
    let (timers, shelf) = in_memory().await;
    let shop = create(&timers, "shop", Policy::default().priority(7)).await;
    let commits = shelf.commits();
    let policy = Policy::default;
    for (field, wrong) in [
        ("rate", policy().rate(Rate::per_second(0))),
        ("rate", policy().rate(Rate::per_second(5).burst(0))),
        ("rate", policy().rate(Rate::new(1, Duration::ZERO))),
        ("rate", policy().rate(Rate::per_minute(1).burst(u32::MAX))),
        ("insert_rate", policy().insert_rate(Rate::per_minute(0))),
        ("concurrency", policy().concurrency(0)),
        ("priority", policy().priority(0)),
        ("retention", policy().retention(u32::MAX)),
        ("starts", policy().starts(1)),
        ("retry_delays", policy().retry_delays(vec![SECOND; 1_001])),
        (
            "retry_delays",
            policy().retry_delays([SECOND, Duration::MAX]),
        ),
        (
            "backoff",
            policy().backoff(Backoff::new(SECOND, HOUR).max_attempts(0)),
        ),
        ("backoff", policy().backoff(Backoff::new(HOUR, SECOND))),
    ] {
        for error in [
            within(shop.set_policy(wrong.clone())).await.unwrap_err(),
            within(timers.create_namespace("bank", wrong))
                .await
                .unwrap_err(),
        ] {
            let Error::Policy { field: named, .. } = &error else {
                panic!("{error:?}");
            };
            assert_eq!(*named, field);
            let words = error.to_string();
            assert!(words.contains(field), "{words}");
            // A pause refuses no insert.
            assert!(
                field != "insert_rate" || !words.contains("pause"),
                "{words}"
            );
            assert!(error.is_definite());
        }
    }
    // None of the refused policies was written.
    assert_eq!(shop.policy(), Ok(Policy::default().priority(7)));
    assert!(timers.namespace("bank").is_err());
    assert_eq!(shelf.commits(), commits);
    shut_down(&timers).await;
}

#[test]
fn an_unknown_field_of_a_policy_is_named() {
    let second = r#"{"secs":1,"nanos":0}"#;
    for (text, expected) in [
        (
            r#"{"concurency":4}"#.to_owned(),
            "unknown field `concurency`",
        ),
        (
            format!(r#"{{"rate":{{"count":1,"per":{second},"brust":2}}}}"#),
            "unknown field `brust`",
        ),
        (
            format!(
                r#"{{"backoff":{{"first":{second},"max":{second},"max_attempts":3,"jitter":1}}}}"#
            ),
            "unknown field `jitter`",
        ),
        (r#"{"priority":0}"#.to_owned(), "the policy's `priority`"),
        (
            format!(r#"{{"insert_rate":{{"count":0,"per":{second}}}}}"#),
            "the policy's `insert_rate`",
        ),
        (
            format!(
                r#"{{"retry_delays":[],"backoff":{{"first":{second},"max":{second},"max_attempts":3}}}}"#
            ),
            "the policy's `backoff`",
        ),
    ] {
        let error = serde_json::from_str::<Policy>(&text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    // It reads what it writes.
    let backoff = Policy::default().backoff(Backoff::new(SECOND, HOUR));
    let retry_delays = Policy::default()
        .retry_delays([SECOND])
        .starts(9)
        .retention(7);
    let limits = Policy::default().concurrency(3).priority(2);
    let limits = limits.rate(Rate::per_second(5).burst(2));
    for policy in [Policy::default(), backoff, retry_delays, limits] {
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }
}

#[tokio::test]
async fn a_bad_name_of_a_namespace_is_refused() {
    let (timers, shelf) = in_memory().await;
    let long = "x".repeat(254);
    for name in ["", "a/b", "/", "a/", "a\0", &long] {
        let refused = within(timers.create_namespace(name, Policy::default())).await;
        let error = refused.unwrap_err();
        assert_eq!(error, Error::NamespaceName { name: name.into() });
        let words = error.to_string();
        assert!(
            words.contains("namespace name") && !words.contains("handler"),
            "{words}"
        );
        assert!(timers.namespace(name).is_err());
    }
    assert_eq!(shelf.commits(), 0);
    // The longest namespace name leaves room for the shortest handler name.
    let longest = "x".repeat(253);
    let shop = create(&timers, &longest, Policy::default()).await;
    added(shop.at("h", in_an_hour())).await;
    for handler in ["", "hh", "a/b", "/"] {
        let name = shop.full_name(handler);
        let refused = within(shop.at(handler, soon()).insert()).await;
        assert_eq!(refused, Err(Error::Name { name: name.into() }));
        let refused = within(shop.archived("a/b", soon(), None, 1)).await;
        assert!(matches!(refused, Err(Error::Name { .. })));
    }
    // A handler of the default namespace has only one name.
    let default = timers.namespace("default").unwrap();
    for insert in [
        timers.at("default/mail", soon()),
        default.at("shop/mail", soon()),
    ] {
        let refused = within(insert.insert()).await;
        let Err(error @ Error::Name { .. }) = refused else {
            panic!("{refused:?}");
        };
        let words = error.to_string();
        assert!(words.contains("without the prefix `default/`"), "{words}");
    }
    assert_eq!(shelf.len(), 1);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_may_be_empty_or_long() {
    let (place, timers) = on_file().await;
    create(&timers, "shop", Policy::default().retention(1)).await;
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let long = [7; 10_000];
    let other = [[7; 9_999].as_slice(), &[8]].concat();
    for (settled, key) in (1..).zip([&b""[..], &long, &other]) {
        let insert = || async { added(timers.at("shop/mail", soon()).key(key)).await };
        let first = within(insert()).await;
        assert!(first.is_new());
        let again = within(insert()).await;
        assert!(!again.is_new() && again.handle() == first.handle());
        assert_eq!(deliveries.next().await.id, first.handle().id);
        // The key stays taken by the archived record, but there is no timer.
        until(|| timers.namespace("shop").unwrap().metrics().settled == settled).await;
        assert!(!within(insert()).await.is_new());
        assert_eq!(within(timers.find("shop/mail", key)).await, Ok(None));
    }
    let timers = place.reopen(timers).await;
    let shop = timers.namespace("shop").unwrap();
    let archived = within(shop.archived("mail", UNIX_EPOCH, None, 9))
        .await
        .unwrap();
    let lengths: Vec<_> = archived.iter().map(|it| it.key().unwrap().len()).collect();
    assert_eq!(lengths, [0, 10_000, 10_000]);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_due_time_may_be_before_1970_and_after_9999() {
    let (_place, timers) = on_file().await;
    create(&timers, "shop", Policy::default()).await;
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let year = Duration::from_secs(365 * 86_400);
    for past in [
        SystemTime::now() - year / 365,
        UNIX_EPOCH,
        UNIX_EPOCH - SECOND,
        UNIX_EPOCH - year * 300,
    ] {
        let timer = added(timers.at("shop/mail", past)).await;
        let seen = deliveries.next().await;
        assert_eq!(seen.id, timer.handle().id);
        assert!(seen.due >= past && seen.due < past + millis(1));
    }
    for years in [8_000, 8_100, 200_000_000] {
        let far = UNIX_EPOCH + year * years;
        let timer = added(timers.at("shop/mail", far)).await;
        let moved = within(timers.reschedule(&timer, soon())).await.unwrap();
        assert_eq!(moved, waterwheel_durable::Rescheduled::Done);
        assert_eq!(deliveries.next().await.id, timer.handle().id);
    }
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn what_is_refused_says_what_is_to_be_done() {
    let (timers, shelf) = in_memory().await;
    let beyond = UNIX_EPOCH + HOUR * 24 * 366 * 300_000_000;
    let mail = || timers.at("mail", in_an_hour());
    let default = timers.namespace("default").unwrap();
    let too_long = within(mail().bytes(vec![7; PAYLOAD_LIMIT + 9]).insert()).await;
    let due = within(timers.at("mail", beyond).insert()).await;
    let since = within(default.archived("mail", beyond, None, 1)).await;
    shelf.set_full(true);
    let full = within(mail().insert()).await;
    for (error, expected) in [
        (
            too_long.unwrap_err(),
            [
                "have 16777225 bytes, but at most 16777216",
                "put its id into the payload",
            ],
        ),
        (due.unwrap_err(), ["the time is more than", "292 million"]),
        (since.unwrap_err(), ["the time is more than", "292 million"]),
        (
            full.unwrap_err(),
            ["raise its `limit`", "again without a restart"],
        ),
    ] {
        let words = error.to_string();
        for expected in expected {
            assert!(words.contains(expected), "{words}");
        }
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn an_attempt_limit_of_zero_is_refused() {
    let (timers, _) = in_memory().await;
    let options = || HandlerOptions::default().attempt_limit(Duration::ZERO);
    let handled = || timers.handle_with("mail", options(), |_| async { Ok(()) });
    let panic = catch_unwind(AssertUnwindSafe(handled)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("the handler \"mail\" is zero") && text.contains("or none"),
        "{text}"
    );
    // Nothing is left of it.
    let mut deliveries = Deliveries::of(&timers, "mail");
    added(timers.at("mail", soon())).await;
    deliveries.next().await;
    shut_down(&timers).await;
}
