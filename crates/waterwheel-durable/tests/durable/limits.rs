//! Limits on the rate of deliveries, on concurrent deliveries, and on inserts.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waterwheel_durable::{Durable, Error, NewTimer, Policy, Rate};

use crate::namespaces::create;
use crate::support::*;

/// When an attempt has begun and ended.
type Span = (Instant, Instant);

/// Records the spans of a handler whose attempts come one after another.
fn spans(timers: &Durable, handler: &str) -> Arc<Mutex<Vec<Span>>> {
    let spans = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&spans);
    timers.handle(handler, move |_| {
        let begun = Instant::now();
        noted.lock().unwrap().push((begun, Instant::now()));
        async { Ok(()) }
    });
    spans
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_window_has_more_deliveries_than_the_rate_gives() {
    let (timers, _) = in_memory().await;
    let limits = [("slow", 100_u32, 1_u32), ("fast", 400, 20)];
    let mut all = Vec::new();
    for (name, count, burst) in limits {
        // One at a time, so an attempt does not begin before the previous one has ended, however busy the machine is.
        let rate = Rate::per_second(count).burst(burst);
        create(&timers, name, Policy::default().rate(rate).concurrency(1)).await;
        all.push(spans(&timers, &format!("{name}/mail")));
    }
    // It waits for longer than the machine could be slow.
    let waits = Policy::default().rate(Rate::new(1, HOUR).burst(1));
    create(&timers, "waits", waits).await;
    let _waiting = Deliveries::of(&timers, "waits/mail");
    let mut unlimited = Deliveries::of(&timers, "mail");
    let due = soon();
    let counts = [
        ("waits/mail", 2),
        ("slow/mail", 150),
        ("fast/mail", 600),
        ("mail", 500),
    ];
    for (handler, count) in counts {
        let batch = (0..count).map(|_| NewTimer::at(handler, due));
        within(timers.insert_many(batch)).await.unwrap();
    }
    // Deliveries without a limit wait for none.
    unlimited.take(500).await;
    let settled = |name: &str| timers.namespace(name).unwrap().metrics().settled;
    assert!(settled("waits") < 2);
    until(|| settled("fast") == 600 && settled("slow") == 150).await;
    for ((name, count, burst), spans) in limits.into_iter().zip(all) {
        let spans = spans.lock().unwrap();
        for first in 1..spans.len() {
            // The engine's time is up to a millisecond old.
            let from = spans[first - 1].1 - millis(1);
            for last in first..spans.len() {
                let window = spans[last].0.duration_since(from).as_secs_f64();
                let limit = f64::from(burst) + window * f64::from(count);
                let begun = last - first + 1;
                assert!(begun as f64 <= limit, "{name}: {begun} in {window} s");
            }
        }
        let metrics = timers.namespace(name).unwrap().metrics();
        assert!(metrics.throttled > 0 && metrics.retried == 0);
    }
    let default = timers.namespace("default").unwrap().metrics();
    assert_eq!(default.throttled, 0);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_rate_goes_by_a_clock_that_is_not_set() {
    let (builder, shift) = shifted();
    let (timers, _) = in_memory_by(builder).await;
    let policy = Policy::default().rate(Rate::per_minute(1).burst(1));
    let shop = create(&timers, "shop", policy).await;
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let mut control = Deliveries::of(&timers, "mail");
    insert(&timers, "shop/mail", 6).await;
    deliveries.next().await;
    // Setting the clock neither adds nor removes turns.
    for hours in [3, -3, 100, 50] {
        shift.set_wall(hours * 3_600_000_000);
        timers.after("mail", millis(1)).insert().await.unwrap();
        control.next().await;
        assert!(deliveries.so_far().is_empty());
    }
    // A suspension counts, but the burst is one, however long it was.
    for seconds in [60, 600, 86_400] {
        shift.suspend(seconds * 1_000_000);
        deliveries.next().await;
        timers.after("mail", millis(1)).insert().await.unwrap();
        control.next().await;
        assert!(deliveries.so_far().is_empty());
    }
    assert_eq!(shop.metrics().delivered, 4);
    shut_down(&timers).await;
}

/// How long until an insert into `shop` that exceeds the quota is accepted.
fn wait_of(error: &Error) -> Duration {
    match error {
        Error::Quota {
            namespace,
            retry_after: Some(after),
        } if **namespace == *"shop" => *after,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_insert_beyond_the_quota_says_how_long_to_wait() {
    let (builder, shift) = shifted();
    let (timers, shelf) = in_memory_by(builder).await;
    let policy = Policy::default().insert_rate(Rate::per_minute(1).burst(1));
    let shop = create(&timers, "shop", policy).await;
    let insert = || async { within(shop.after("mail", HOUR).insert()).await };
    let other = || async { within(timers.after("mail", HOUR).insert()).await };
    let minute = Duration::from_secs(60);
    insert().await.unwrap();
    for count in 1..=3 {
        let error = insert().await.unwrap_err();
        let retry_after = wait_of(&error);
        assert!(
            retry_after <= minute && retry_after > minute / 2,
            "{retry_after:?}"
        );
        assert!(error.is_definite());
        let text = format!(
            "the namespace \"shop\" has exceeded its insert quota (`insert_rate` of its policy): try again in {retry_after:?}"
        );
        assert_eq!(error.to_string(), text);
        other().await.unwrap();
        assert_eq!(shelf.len(), 2 * count);
        // Before that time, it is refused again, for the rest of the time.
        let early = retry_after - Duration::from_secs(20);
        shift.suspend(u64::try_from(early.as_micros()).unwrap());
        let retry_after = wait_of(&insert().await.unwrap_err());
        assert!(retry_after <= Duration::from_secs(20), "{retry_after:?}");
        shift.suspend(u64::try_from(retry_after.as_micros()).unwrap());
        insert().await.unwrap();
    }
    assert_eq!((shop.metrics().inserted, shop.metrics().over_quota), (4, 6));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_batch_beyond_the_quota_is_not_inserted_in_part() {
    let (builder, shift) = shifted();
    let (timers, shelf) = in_memory_by(builder).await;
    let policy = Policy::default().insert_rate(Rate::per_minute(60).burst(30));
    create(&timers, "shop", policy).await;
    let batch = |count: u8| {
        let of = |at: u8| NewTimer::after("shop/mail", HOUR).key([at]);
        let others = (0..5).map(|at: u8| NewTimer::after("mail", HOUR).key([at]));
        (0..count).map(of).chain(others)
    };
    // The quota begins with a full burst.
    let first = (0..20).map(|_| NewTimer::after("shop/mail", HOUR));
    within(timers.insert_many(first)).await.unwrap();
    let commits = shelf.commits();
    let retry_after = wait_of(&within(timers.insert_many(batch(30))).await.unwrap_err());
    assert!(retry_after <= Duration::from_secs(20) && retry_after > Duration::from_secs(9));
    assert_eq!((shelf.len(), shelf.commits()), (20, commits));
    shift.suspend(u64::try_from(retry_after.as_micros()).unwrap());
    let inserted = within(timers.insert_many(batch(30))).await.unwrap();
    assert!(inserted.len() == 35 && inserted.iter().all(|it| it.is_new()));
    // A batch that is larger than the burst is never accepted.
    shift.suspend(3_600_000_000);
    let never = within(timers.insert_many(batch(31))).await.unwrap_err();
    let says = "the batch has more timers of the namespace \"shop\" than the burst of its insert quota (`insert_rate` of its policy): insert fewer at a time";
    assert_eq!(never.to_string(), says);
    let is_never = matches!(
        never,
        Error::Quota {
            retry_after: None,
            ..
        }
    );
    assert!(is_never, "{never:?}");
    assert_eq!(shelf.len(), 55);
    // A batch with a timer of an unknown namespace is not inserted either.
    let unknown = [
        NewTimer::after("mail", HOUR),
        NewTimer::after("nowhere/mail", HOUR),
    ];
    let refused = within(timers.insert_many(unknown)).await;
    let name = "nowhere".into();
    assert_eq!(refused, Err(Error::UnknownNamespace { name }));
    assert_eq!(shelf.len(), 55);
    shut_down(&timers).await;
}
