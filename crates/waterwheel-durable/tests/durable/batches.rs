//! Inserting many timers at once.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use waterwheel_durable::{Error, NewTimer, Policy, Rate};

use crate::namespaces::create;
use crate::support::*;

#[tokio::test]
async fn a_batch_is_durable_and_in_order() {
    let (place, timers) = on_file().await;
    let batch = (0..5_000_u32).map(|at| NewTimer::at("mail", soon()).bytes(at.to_be_bytes()));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    let timers = place.reopen(timers).await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let mut left: HashSet<_> = inserted.iter().map(|it| it.handle().id).collect();
    assert_eq!(left.len(), 5_000);
    while !left.is_empty() {
        let seen = deliveries.next().await;
        assert!(left.remove(&seen.id), "{seen:?}");
        let at = u32::from_be_bytes(seen.payload[..].try_into().unwrap());
        assert_eq!(inserted[at as usize].handle().id, seen.id);
    }
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_batch_takes_few_commits_and_a_key_twice_in_it_is_one_timer() {
    let (timers, shelf) = in_memory().await;
    let batch = (0..5_000).map(|_| NewTimer::at("mail", in_an_hour()));
    within(timers.insert_many(batch)).await.unwrap();
    assert!(shelf.len() == 5_000 && shelf.commits() < 10);
    let batch = ["a", "b", "a"].map(|key| NewTimer::at("mail", in_an_hour()).key(key));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    let are_new: Vec<_> = inserted.iter().map(|it| it.is_new()).collect();
    assert_eq!(are_new, [true, true, false]);
    assert_eq!(inserted[0].handle(), inserted[2].handle());
    shut_down(&timers).await;
}

#[tokio::test]
async fn of_a_batch_with_an_error_of_its_own_nothing_is_inserted() {
    let (timers, shelf) = in_memory().await;
    let beyond = SystemTime::now() + Duration::from_secs(u64::MAX >> 8);
    let wrong = [
        (NewTimer::at("", soon()), Error::Name { name: "".into() }),
        (NewTimer::at("mail", beyond), Error::DueOutOfRange),
    ];
    for (wrong, error) in wrong {
        let batch = [NewTimer::at("mail", soon()), wrong];
        assert_eq!(within(timers.insert_many(batch)).await, Err(error));
    }
    assert_eq!(shelf.commits(), 0);
    assert_eq!(timers.insert_many([]).await, Ok(Vec::new()));
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_large_batch_lets_others_in_between() {
    let (timers, shelf) = in_memory().await;
    shelf.hold();
    let batch = (0..40_000).map(|_| NewTimer::at("mail", in_an_hour()));
    let mut batch = Box::pin(timers.insert_many(batch));
    assert!(polled(batch.as_mut()).is_pending());
    let mut other = Box::pin(timers.at("mail", in_an_hour()).insert());
    assert!(polled(other.as_mut()).is_pending());
    shelf.go_on();
    let (batch, other) = (within(batch).await.unwrap(), within(other).await.unwrap());
    // Ids increase in the order of the inserts.
    let ids: Vec<_> = batch.iter().map(|it| it.handle().id).collect();
    assert!(ids.is_sorted() && ids.len() == 40_000 && shelf.len() == 40_001);
    assert!(other.handle().id > ids[0] && other.handle().id < ids[39_999]);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_batch_that_is_refused_half_way_says_so() {
    let (timers, shelf) = in_memory().await;
    let batch = || (0..20_000).map(|at| NewTimer::at("mail", in_an_hour()).key(format!("{at}")));
    shelf.hold();
    let mut first = Box::pin(timers.insert_many(batch()));
    assert!(polled(first.as_mut()).is_pending());
    shelf.refuse_after(1);
    shelf.go_on();
    let refused = within(first).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    let some = shelf.len();
    assert!(some > 0 && some < 20_000, "{some}");
    shelf.fault(None);
    let inserted = within(timers.insert_many(batch())).await.unwrap();
    let new = inserted.iter().filter(|it| it.is_new()).count();
    assert!(new + some == 20_000 && shelf.len() == 20_000);
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_batch_of_a_namespace_is_for_its_own_handlers() {
    let (timers, _) = in_memory().await;
    let quota = Policy::default().insert_rate(Rate::per_minute(1).burst(3));
    let shop = create(&timers, "shop", quota).await;
    let mut own = Deliveries::of(&timers, "shop/mail");
    let mut default = Deliveries::of(&timers, "mail");
    let batch = |count| (0..count).map(|at| NewTimer::at("mail", soon()).key([at]));
    let inserted = within(shop.insert_many(batch(2))).await.unwrap();
    let ids: HashSet<_> = inserted.iter().map(|it| it.handle().id).collect();
    for handle in inserted.iter().map(|it| it.handle()) {
        assert_eq!(&*handle.handler, "shop/mail");
        assert!(ids.contains(&own.next().await.id));
    }
    // The quota of the namespace applies, and a batch that exceeds it inserts nothing.
    let refused = within(shop.insert_many(batch(2))).await;
    assert!(matches!(refused, Err(Error::Quota { .. })), "{refused:?}");
    // A name with a `/` is not a handler of this namespace, not even in another one.
    let refused = within(shop.insert_many([NewTimer::at("bank/mail", soon())])).await;
    assert!(matches!(refused, Err(Error::Name { .. })), "{refused:?}");
    // Handlers of the default namespace have no other name.
    let of_default = timers.namespace("default").unwrap();
    let inserted = within(of_default.insert_many(batch(1))).await.unwrap();
    assert_eq!(default.next().await.id, inserted[0].handle().id);
    shut_down(&timers).await;
    assert!(own.rest().await.is_empty() && default.rest().await.is_empty());
}
