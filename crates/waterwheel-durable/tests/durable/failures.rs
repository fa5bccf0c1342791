//! A failed attempt is retried after the next retry delay; after the last one, the timer becomes a dead letter.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use waterwheel_durable::{
    Dead, DeadLetter, Durable, Failure, HandlerOptions, Inserted, Retry, Snooze, Sqlite,
};

use crate::support::*;

async fn open(retry_delays: impl IntoIterator<Item = Duration>) -> Durable {
    let builder = Durable::builder().retry_delays(retry_delays);
    in_memory_by(builder).await.0
}

/// The attempts and the error of the only dead letter, once there is one.
pub(crate) async fn the_dead_letter(timers: &Durable) -> (u32, String) {
    let dead = dead_letters_until(timers, |dead| !dead.is_empty()).await;
    assert_eq!(dead.len(), 1);
    (dead[0].attempts(), dead[0].error().to_owned())
}

/// Expects the attempts of a timer that always fails, each at the given delay after the previous failure.
async fn expect_attempts(
    deliveries: &mut Deliveries,
    timer: &Inserted,
    attempts: u32,
    delay: impl Fn(u32) -> Duration,
) {
    let mut failed: Option<SystemTime> = None;
    for attempt in 1..=attempts {
        let seen = deliveries.next().await;
        assert_eq!((seen.id, seen.attempt), (timer.handle().id, attempt));
        if let Some(failed) = failed {
            // The failure's time is the engine's, which may be two milliseconds old.
            assert!(seen.due + millis(3) >= failed + delay(attempt - 1));
            assert!(seen.at >= seen.due);
        }
        failed = Some(seen.at);
    }
}

/// Returns the dead letters, once they satisfy this condition.
async fn dead_letters_until(
    timers: &Durable,
    holds: impl Fn(&[DeadLetter]) -> bool,
) -> Vec<DeadLetter> {
    within(async {
        loop {
            let dead = timers.dead_letters(None, 10).await.unwrap();
            if holds(&dead) {
                return dead;
            }
            tokio::time::sleep(millis(1)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_failure_is_retried_with_each_delay_and_ends_as_a_dead_letter() {
    let place = Place::new();
    let retry_delays = [millis(40), millis(1), millis(80)];
    let timers = place
        .open_by(Durable::builder().retry_delays(retry_delays))
        .await;
    let failing = |delivery: &waterwheel_durable::Delivery| {
        Err(Retry::backoff(format!("failure {}", delivery.attempt())))
    };
    let mut deliveries = Deliveries::ended(&timers, "mail", failing);
    let timer = timers.at("mail", soon()).key("k").insert().await.unwrap();
    let delay = |failures: u32| retry_delays[failures as usize - 1];
    expect_attempts(&mut deliveries, &timer, 4, delay).await;
    assert_eq!(the_dead_letter(&timers).await, (4, "failure 4".into()));
    let dead = &timers.dead_letters(None, 1).await.unwrap()[0];
    assert_eq!(&dead.handle(), timer.handle());
    assert_eq!(Some(dead.first_due()), timer.handle().due.time());
    assert!(dead.due() > dead.first_due());
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_failure_counts_across_a_restart() {
    let place = Place::new();
    let retry_delays = || Durable::builder().retry_delays([millis(50), millis(50)]);
    let timers = within(retry_delays().store(Sqlite::new(place.file())).open())
        .await
        .unwrap();
    let failing = |_: &_| Err(Retry::backoff("later"));
    let mut deliveries = Deliveries::ended(&timers, "mail", failing);
    timers.at("mail", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.attempt, 1);
    shut_down(&timers).await;
    // On a slow machine, a few more were made by then.
    let made = 1 + u32::try_from(deliveries.rest().await.len()).unwrap();

    let timers = within(retry_delays().store(Sqlite::new(place.file())).open())
        .await
        .unwrap();
    let mut deliveries = Deliveries::ended(&timers, "mail", failing);
    for attempt in made + 1..=3 {
        assert_eq!(deliveries.next().await.attempt, attempt);
    }
    assert_eq!(the_dead_letter(&timers).await, (3, "later".into()));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_handler_says_when_its_timer_is_tried_again() {
    const HOUR: Duration = crate::support::HOUR;
    // Sooner than the retry delay, and later than it.
    let timers = open([HOUR, millis(1), HOUR]).await;
    let asked = |attempt| match attempt {
        1 => millis(5),
        2 => millis(200),
        _ => Duration::MAX,
    };
    let busy = move |delivery: &waterwheel_durable::Delivery| {
        let handle = delivery.handle();
        assert_eq!(Some(delivery.first_due()), handle.due.time());
        assert!((delivery.attempt() == 1) == (delivery.due() == delivery.first_due()));
        Err(Retry::after(asked(delivery.attempt()), "busy"))
    };
    let mut deliveries = Deliveries::ended(&timers, "mail", busy);
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    expect_attempts(&mut deliveries, &timer, 3, asked).await;
    // The delay is at most a year: the timer waits, and one more attempt was counted.
    until(|| timers.metrics().namespaces[0].retried == 3).await;
    let waiting = timers.get(&timer).await.unwrap().unwrap();
    assert_eq!(waiting.failures(), 3);
    assert_eq!(Some(waiting.first_due()), timer.handle().due.time());
    assert!(waiting.due() > SystemTime::now() + 8_000 * HOUR);
    assert!(timers.dead_letters(None, 1).await.unwrap().is_empty());
    let moved = timers.reschedule(&timer, soon()).await.unwrap();
    assert_eq!(moved, waterwheel_durable::Rescheduled::Done);
    assert_eq!(deliveries.next().await.attempt, 4);
    assert_eq!(the_dead_letter(&timers).await, (4, "busy".into()));
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_handler_snoozes_its_timer_without_a_failure() {
    let timers = open([]).await;
    let calls = AtomicU32::new(0);
    let mut deliveries = Deliveries::ended(&timers, "mail", move |delivery| {
        assert_eq!(Some(delivery.first_due()), delivery.handle().due.time());
        match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Snooze::after(millis(30))),
            1 => Err(Snooze::after(Duration::ZERO)),
            _ => Err(Dead::because("closed for good")),
        }
    });
    let timer = timers.at("mail", soon()).key("k").insert().await.unwrap();
    let first = deliveries.next().await;
    let second = deliveries.next().await;
    // The time of the snooze is the engine's, which may be two milliseconds old.
    assert!(second.due + millis(3) >= first.at + millis(30) && second.at >= second.due);
    let third = deliveries.next().await;
    assert!(third.due >= second.due);
    for seen in [first, second, third] {
        assert_eq!((seen.id, seen.attempt), (timer.handle().id, 1));
    }
    assert_eq!(
        the_dead_letter(&timers).await,
        (1, "closed for good".into())
    );
    let metrics = timers.metrics();
    let shop = &metrics.namespaces[0];
    assert_eq!((shop.snoozed, shop.retried, shop.delivered), (2, 0, 3));
    // The last attempt is the only one that has failed.
    assert_eq!(metrics.failed_attempts, 1);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_question_mark_makes_a_failure_of_each_kind_of_error() {
    fn fail(kind: &[u8]) -> Result<(), Failure> {
        let io = || std::io::Error::other("the line is cut");
        let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(io());
        match kind {
            b"error" => Err(io())?,
            b"boxed" => Err(boxed)?,
            b"anyhow" => Err(anyhow::Error::new(io()).context("no answer"))?,
            b"text" => Err("the line is cut")?,
            b"string" => Err(String::from("the line is cut"))?,
            b"failure" => Err(Dead::because("the line is cut"))?,
            _ => {}
        }
        Ok(())
    }
    let timers = open([]).await;
    timers.handle("mail", |delivery| async move {
        if **delivery.payload() == *b"json" {
            let _: u32 = delivery.json()?;
        }
        fail(delivery.payload())
    });
    let kinds = [
        "error", "boxed", "anyhow", "text", "string", "failure", "json",
    ];
    let no_json = serde_json::from_str::<u32>("json").unwrap_err();
    let no_json = format!("the payload could not be deserialized from JSON: {no_json}");
    for kind in kinds {
        let insert = timers.at("mail", soon()).bytes(kind.as_bytes());
        insert.insert().await.unwrap();
    }
    let dead = dead_letters_until(&timers, |dead| dead.len() == kinds.len()).await;
    for dead_letter in dead {
        let expected = match &**dead_letter.payload() {
            b"anyhow" => "no answer: the line is cut",
            b"json" => &no_json,
            _ => "the line is cut",
        };
        assert_eq!(dead_letter.error(), expected, "{dead_letter:?}");
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_handler_gives_a_timer_up_at_once() {
    let timers = open([millis(1); 5]).await;
    let mut deliveries = Deliveries::ended(&timers, "mail", |_| Err(Dead::because("no such user")));
    timers.at("mail", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.attempt, 1);
    assert_eq!(the_dead_letter(&timers).await, (1, "no such user".into()));
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

/// A future that panics as it is polled, or as it is dropped.
struct Panics {
    in_poll: bool,
    in_drop: bool,
}

impl Future for Panics {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if self.in_poll {
            self.in_poll = false;
            resume_unwind(Box::new("a panic in a poll"));
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if self.in_drop && !std::thread::panicking() {
            resume_unwind(Box::new(String::from("a panic in a drop")));
        }
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_wherever_it_comes() {
    let timers = open([]).await;
    timers.handle("call", |delivery| {
        if delivery.attempt() == 1 {
            resume_unwind(Box::new("a panic at the call"));
        }
        async { Ok(()) }
    });
    for (handler, in_poll, in_drop) in [
        ("poll", true, false),
        ("drop", false, true),
        ("both", true, true),
    ] {
        timers.handle(handler, move |_| Panics { in_poll, in_drop });
    }
    timers.handle("late", |_| async {
        tokio::task::yield_now().await;
        resume_unwind(Box::new(7))
    });
    for (handler, says) in [
        ("call", "a panic at the call"),
        ("poll", "a panic in a poll"),
        ("drop", "a panic in a drop"),
        ("both", "a panic in a poll"),
        ("late", "the panic payload is not a string"),
    ] {
        let timer = timers.at(handler, soon()).insert().await.unwrap();
        let id = timer.handle().id;
        let dead = dead_letters_until(&timers, |dead| dead.iter().any(|it| it.id() == id)).await;
        let dead = dead.iter().find(|it| it.id() == id).unwrap();
        assert_eq!(dead.error(), format!("the handler panicked: {says}"));
    }
    until(|| timers.metrics().running == 0).await;
    shut_down(&timers).await;
}

/// The payload of a panic, which panics itself when dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("again"));
    }
}

#[tokio::test]
async fn what_a_panic_carries_may_panic_as_well() {
    let timers = open([]).await;
    let one = HandlerOptions::default().concurrency(1);
    timers.handle_with("mail", one, |_| {
        poll_fn(|_| -> Poll<Result<(), Failure>> { resume_unwind(Box::new(Bomb)) })
    });
    for count in 1..=3 {
        timers.at("mail", soon()).insert().await.unwrap();
        dead_letters_until(&timers, |dead| dead.len() == count).await;
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_a_failure() {
    let timers = open([millis(1)]).await;
    let options = HandlerOptions::default().attempt_limit(millis(20));
    let (dropped, mut drops) = tokio::sync::mpsc::unbounded_channel();
    struct Reports(tokio::sync::mpsc::UnboundedSender<u32>, u32);
    impl Drop for Reports {
        fn drop(&mut self) {
            let _ = self.0.send(self.1);
        }
    }
    timers.handle_with("mail", options, move |delivery| {
        let held = Reports(dropped.clone(), delivery.attempt());
        async move {
            let _held = held;
            std::future::pending().await
        }
    });
    timers.at("mail", soon()).insert().await.unwrap();
    assert_eq!(within(drops.recv()).await, Some(1));
    assert_eq!(within(drops.recv()).await, Some(2));
    let error = "the attempt did not end within 20ms".to_owned();
    assert_eq!(the_dead_letter(&timers).await, (2, error));
    shut_down(&timers).await;
}

/// An error with a cause.
#[derive(Debug)]
struct Unsent(std::num::ParseIntError);

impl std::fmt::Display for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it was not sent")
    }
}

impl std::error::Error for Unsent {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn an_error_that_is_mapped_is_kept_with_its_causes() {
    let send = || "x".parse::<u32>().map(drop).map_err(Unsent);
    let cause = "x".parse::<u32>().unwrap_err();
    let whole = format!("it was not sent: {cause}");
    let boxed = || -> Result<(), Box<dyn std::error::Error + Send + Sync>> { Ok(send()?) };
    let failures: [(Failure, &str); 6] = [
        (send().map_err(Retry::backoff).unwrap_err(), &whole),
        (send().map_err(Dead::because).unwrap_err(), &whole),
        (boxed().map_err(Retry::backoff).unwrap_err(), &whole),
        (Unsent(cause.clone()).into(), &whole),
        (Retry::backoff("a text"), "a text"),
        (Dead::because(String::from("a text")), "a text"),
    ];
    for (failure, text) in failures {
        let timers = open([]).await;
        let end = move |_: &_| Err(failure.clone());
        let mut deliveries = Deliveries::ended(&timers, "mail", end);
        timers.at("mail", soon()).insert().await.unwrap();
        deliveries.next().await;
        assert_eq!(the_dead_letter(&timers).await, (1, text.into()));
        shut_down(&timers).await;
    }
}
