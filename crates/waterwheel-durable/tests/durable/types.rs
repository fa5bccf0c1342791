//! Properties of the types, and names that are allowed.

use std::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};

use waterwheel_durable::{
    Archived, Builder, Cancelled, DeadLetter, Delivery, Drain, Durable, Error, Event, Failure,
    Handle, HandlerOptions, Id, Insert, Inserted, Metrics, NAME_LIMIT, Namespace, NewTimer,
    OpenError, PAYLOAD_LIMIT, Redriven, Rescheduled, Stopped,
};

use crate::support::*;

fn send<T: Send>(value: T) -> T {
    value
}

#[test]
fn all_types_cross_threads() {
    fn all<T: Send + Sync + Unpin + std::fmt::Debug>() {}
    all::<Durable>();
    all::<Builder>();
    all::<Namespace>();
    all::<Delivery>();
    all::<Archived>();
    all::<Insert<'_>>();
    all::<NewTimer>();
    all::<HandlerOptions>();
    all::<Drain>();
    all::<Stopped>();
    all::<Inserted>();
    all::<Cancelled>();
    all::<Rescheduled>();
    all::<Redriven>();
    all::<DeadLetter>();
    all::<Handle>();
    all::<Id>();
    all::<Failure>();
    all::<Event>();
    all::<Metrics>();
    all::<Error>();
    all::<OpenError>();
}

#[test]
fn what_is_kept_by_the_thousand_is_small() {
    assert_eq!(size_of::<Id>(), 8);
    assert_eq!(size_of::<Handle>(), 32);
    assert_eq!(size_of::<Inserted>(), 40);
    assert_eq!(size_of::<Cancelled>(), 1);
    assert_eq!(size_of::<Durable>(), 16);
    assert_eq!(size_of::<Namespace>(), 32);
    assert!(size_of::<Delivery>() <= 128, "{}", size_of::<Delivery>());
    assert!(size_of::<NewTimer>() <= 96, "{}", size_of::<NewTimer>());
}

#[tokio::test]
async fn the_futures_may_be_spawned() {
    let place = Place::new();
    let timers = send(Durable::open(place.file())).await.unwrap();
    let insert = send(timers.at("mail", in_an_hour()).insert());
    let timer = insert.await.unwrap();
    let batch = [NewTimer::at("mail", in_an_hour())];
    send(timers.insert_many(batch)).await.unwrap();
    send(timers.find("mail", "key")).await.unwrap();
    send(timers.get(&timer)).await.unwrap();
    send(timers.reschedule(&timer, in_an_hour())).await.unwrap();
    send(timers.cancel(&timer)).await.unwrap();
    send(timers.dead_letters(None, 1)).await.unwrap();
    send(timers.redrive(timer.handle().id)).await.unwrap();
    send(timers.shutdown(Drain::within(HOUR))).await.unwrap();
}

#[tokio::test]
async fn a_bad_name_is_refused() {
    let (timers, shelf) = in_memory().await;
    let long = "x".repeat(NAME_LIMIT + 1);
    for name in ["", &long, "a/b/c", "/a", "a/", "a\0", "default/a"] {
        let refused = within(timers.at(name, soon()).insert()).await;
        assert_eq!(refused, Err(Error::Name { name: name.into() }));
        let handled = AssertUnwindSafe(|| timers.handle(name, |_| async { Ok(()) }));
        let panic = catch_unwind(handled).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("invalid handler name"), "{text}");
        assert!(text.len() < 200, "{text}");
    }
    // As long as possible, and in any language.
    let longest = "ÿ".repeat(NAME_LIMIT / 2);
    added(timers.at(&longest, in_an_hour())).await;
    assert_eq!(shelf.len(), 1);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_payload_that_is_too_long_is_refused_alone() {
    let (timers, shelf) = in_memory().await;
    let of = |length: usize| timers.at("mail", in_an_hour()).bytes(vec![7; length]);
    let length = PAYLOAD_LIMIT + 1;
    let refused = within(of(length).insert()).await;
    assert_eq!(refused, Err(Error::TooLong { length }));
    let refused = within(of(PAYLOAD_LIMIT).key("k").insert()).await;
    assert_eq!(refused, Err(Error::TooLong { length }));
    assert_eq!(shelf.commits(), 0);
    added(of(PAYLOAD_LIMIT - 1).key("k")).await;
    assert_eq!(shelf.len(), 1);
    shut_down(&timers).await;
}

#[tokio::test]
#[should_panic(expected = "a handler named \"mail\" is already registered")]
async fn a_name_has_one_handler() {
    let (timers, _) = in_memory().await;
    timers.handle("mail", |_| async { Ok(()) });
    timers.handle("mail", |_| async { Ok(()) });
}

#[tokio::test]
async fn a_payload_that_is_no_json_is_refused() {
    let (_place, timers) = on_file().await;
    let no_json = std::collections::HashMap::from([((1, 2), 3)]);
    let refused = within(timers.at("mail", soon()).payload(&no_json).insert()).await;
    assert!(matches!(refused, Err(Error::Payload(_))), "{refused:?}");
    shut_down(&timers).await;
}
