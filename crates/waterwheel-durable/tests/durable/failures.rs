//! A failed attempt is retried after the next retry delay; after the last one, the timer becomes a dead letter.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use waterwheel_durable::{Dead, DeadLetter, Durable, Event, Failure, HandlerOptions, Retry};

use crate::support::{Deliveries, Place, Shelf, millis, shut_down, soon, until, within};

async fn open(retry_delays: impl IntoIterator<Item = Duration>) -> Durable {
    let builder = Durable::builder().retry_delays(retry_delays);
    within(builder.open_store(Shelf::default())).await.unwrap()
}

/// What the only dead letter says, once there is one.
async fn the_dead_letter(timers: &Durable) -> (u32, String) {
    let dead = dead_letters_until(timers, |dead| !dead.is_empty()).await;
    assert_eq!(dead.len(), 1);
    (dead[0].attempts(), dead[0].error().to_owned())
}

/// The dead letters, once this holds of them.
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
    let timers = Durable::builder()
        .retry_delays(retry_delays)
        .open(place.file());
    let timers = within(timers).await.unwrap();
    let failing = |delivery: &waterwheel_durable::Delivery| {
        Err(Retry::backoff(format!("failure {}", delivery.attempt())))
    };
    let mut deliveries = Deliveries::ended(&timers, "mail", failing);
    let timer = timers.at("mail", soon()).key("k").insert().await.unwrap();
    let mut failed: Option<SystemTime> = None;
    for attempt in 1..=4 {
        let seen = deliveries.next().await;
        assert_eq!((seen.id, seen.attempt), (timer.handle().id, attempt));
        if let Some(failed) = failed {
            // The failure's time is the engine's, which is up to two milliseconds old.
            let delay = retry_delays[attempt as usize - 2];
            assert!(seen.due + millis(3) >= failed + delay && seen.at >= seen.due);
        }
        failed = Some(seen.at);
    }
    assert_eq!(the_dead_letter(&timers).await, (4, "failure 4".into()));
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_failure_counts_across_a_restart() {
    let place = Place::new();
    let retry_delays = || Durable::builder().retry_delays([millis(50), millis(50)]);
    let timers = within(retry_delays().open(place.file())).await.unwrap();
    let failing = |_: &_| Err(Retry::backoff("later"));
    let mut deliveries = Deliveries::ended(&timers, "mail", failing);
    timers.at("mail", soon()).insert().await.unwrap();
    assert_eq!(deliveries.next().await.attempt, 1);
    shut_down(&timers).await;
    // On a slow machine, some more were made by then.
    let made = 1 + u32::try_from(deliveries.rest().await.len()).unwrap();

    let timers = within(retry_delays().open(place.file())).await.unwrap();
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
    // Sooner than the retry delay, and later.
    let timers = open([HOUR, millis(1), HOUR]).await;
    let asked = |attempt| match attempt {
        1 => millis(5),
        2 => millis(200),
        _ => Duration::MAX,
    };
    let busy = move |delivery: &waterwheel_durable::Delivery| {
        Err(Retry::after(asked(delivery.attempt()), "busy"))
    };
    let mut deliveries = Deliveries::ended(&timers, "mail", busy);
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    let mut failed: Option<SystemTime> = None;
    for attempt in 1..=3 {
        let seen = deliveries.next().await;
        assert_eq!((seen.id, seen.attempt), (timer.handle().id, attempt));
        if let Some(failed) = failed {
            // The failure's time is the engine's, which is up to two milliseconds old.
            assert!(seen.due + millis(3) >= failed + asked(attempt - 1));
            assert!(seen.at >= seen.due);
        }
        failed = Some(seen.at);
    }
    // A year at most: it waits, and there is one attempt more.
    until(|| timers.metrics().namespaces[0].retried == 3).await;
    assert!(timers.dead_letters(None, 1).await.unwrap().is_empty());
    let moved = timers.reschedule(&timer, soon()).await.unwrap();
    assert_eq!(moved, waterwheel_durable::Rescheduled::Done);
    assert_eq!(deliveries.next().await.attempt, 4);
    assert_eq!(the_dead_letter(&timers).await, (4, "busy".into()));
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
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
    timers.handle("mail", |delivery| async move { fail(delivery.payload()) });
    let kinds = ["error", "boxed", "anyhow", "text", "string", "failure"];
    for kind in kinds {
        let insert = timers.at("mail", soon()).bytes(kind.as_bytes());
        insert.insert().await.unwrap();
    }
    let dead = dead_letters_until(&timers, |dead| dead.len() == kinds.len()).await;
    for dead_letter in dead {
        let expected = match &**dead_letter.payload() {
            b"anyhow" => "no answer: the line is cut",
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

#[tokio::test]
async fn no_retry_delays_give_up_after_the_first_failure() {
    let timers = open([]).await;
    let mut deliveries = Deliveries::ended(&timers, "mail", |_| Err(Retry::backoff("late")));
    timers.at("mail", soon()).insert().await.unwrap();
    deliveries.next().await;
    assert_eq!(the_dead_letter(&timers).await, (1, "late".into()));
    shut_down(&timers).await;
}

#[tokio::test]
async fn an_error_is_kept_with_its_causes() {
    let timers = open([]).await;
    let read = |_: &_| -> Result<(), Failure> {
        let _: u32 = "x".parse()?;
        Ok(())
    };
    Deliveries::ended(&timers, "mail", read);
    timers.at("mail", soon()).insert().await.unwrap();
    let (_, error) = the_dead_letter(&timers).await;
    assert_eq!(error, "x".parse::<u32>().unwrap_err().to_string());

    let timers = open([]).await;
    timers.handle("mail", |delivery| async move {
        let _: u32 = delivery.json()?;
        Ok(())
    });
    let timer = timers.at("mail", soon()).payload("no number");
    timer.insert().await.unwrap();
    let (_, error) = the_dead_letter(&timers).await;
    let cause = serde_json_error();
    assert_eq!(
        error,
        format!("the payload could not be deserialized from JSON: {cause}")
    );
}

fn serde_json_error() -> String {
    let error = serde_json::from_str::<u32>("\"no number\"").unwrap_err();
    error.to_string()
}

/// A future that panics as it is polled, or as it is dropped.
struct Panics {
    in_poll: bool,
    in_drop: bool,
    is_over: bool,
}

impl Future for Panics {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if self.in_poll {
            self.in_poll = false;
            resume_unwind(Box::new("a panic in a poll"));
        }
        self.is_over = true;
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
    timers.handle("poll", |_| Panics {
        in_poll: true,
        in_drop: false,
        is_over: false,
    });
    timers.handle("drop", |_| Panics {
        in_poll: false,
        in_drop: true,
        is_over: false,
    });
    timers.handle("both", |_| Panics {
        in_poll: true,
        in_drop: true,
        is_over: false,
    });
    timers.handle("late", |_| async {
        tokio::task::yield_now().await;
        resume_unwind(Box::new(7))
    });
    for (handler, says) in [
        ("call", "the handler panicked: a panic at the call"),
        ("poll", "the handler panicked: a panic in a poll"),
        ("drop", "the handler panicked: a panic in a drop"),
        ("both", "the handler panicked: a panic in a poll"),
        (
            "late",
            "the handler panicked: the panic payload is not a string",
        ),
    ] {
        let timer = timers.at(handler, soon()).insert().await.unwrap();
        let id = timer.handle().id;
        let dead = dead_letters_until(&timers, |dead| dead.iter().any(|it| it.id() == id)).await;
        let dead = dead.iter().find(|it| it.id() == id).unwrap();
        assert_eq!(dead.error(), says, "{handler}");
    }
    until(|| timers.metrics().running == 0).await;
    shut_down(&timers).await;
}

/// What a panic carries, which panics itself.
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
    let (attempts, error) = the_dead_letter(&timers).await;
    assert_eq!(
        (attempts, error.as_str()),
        (2, "the attempt did not end within 20ms")
    );
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_failed_attempt_is_reported_and_counted() {
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let builder = Durable::builder().retry_delays([millis(1); 2]);
    let builder = builder.on_event(move |event| drop(sender.send(event.clone())));
    let timers = within(builder.open_store(Shelf::default())).await.unwrap();
    let _deliveries = Deliveries::ended(&timers, "mail", |_| Err(Retry::backoff("not now")));
    let timer = timers.at("mail", soon()).insert().await.unwrap();
    for number in 1..=2 {
        match within(events.recv()).await.unwrap() {
            Event::AttemptFailed {
                id,
                handler,
                attempt,
                error,
                ..
            } => {
                assert_eq!((id, attempt), (timer.handle().id, number));
                assert_eq!((&*handler, &*error), ("mail", "not now"));
            }
            other => panic!("{other:?}"),
        }
    }
    // The last one is a death, and no failure beside it.
    let last = within(events.recv()).await.unwrap();
    assert!(matches!(last, Event::Dead { .. }), "{last:?}");
    assert_eq!(timers.metrics().failed_attempts, 3);
    shut_down(&timers).await;
    assert!(events.recv().await.is_none());
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
