//! Business keys: at most one timer of a handler has a key at a time.

use std::time::SystemTime;

use tokio::task::JoinSet;
use waterwheel_durable::{
    Cancelled, Dead, Durable, Error, Handle, Inserted, PendingTimer, Policy, Rescheduled,
};

use crate::namespaces::create;
use crate::support::*;

on_both_flavors! {
    of_a_hundred_inserts_at_once_one_creates_the_timer
    an_insert_that_was_answered_is_found_by_its_key
}

async fn keyed(timers: &Durable, key: &str, due: SystemTime) -> Inserted {
    let insert = timers.at("mail", due).key(key);
    added(insert).await
}

async fn of_a_hundred_inserts_at_once_one_creates_the_timer() {
    let (_place, timers) = on_file().await;
    for round in 0..10 {
        let key = format!("order-{round}");
        let mut inserts = JoinSet::new();
        for _ in 0..100 {
            let (timers, key) = (timers.clone(), key.clone());
            inserts.spawn(async move { keyed(&timers, &key, in_an_hour()).await });
        }
        let all = within(inserts.join_all()).await;
        let mut handles: Vec<Handle> = all.iter().map(|it| it.handle().clone()).collect();
        handles.dedup();
        assert_eq!(handles.len(), 1);
        assert_eq!(all.iter().filter(|it| it.is_new()).count(), 1);
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_kept_by_a_file_and_free_after_a_cancel() {
    let (place, timers) = on_file().await;
    let first = keyed(&timers, "order", in_an_hour()).await;
    let timers = place.reopen(timers).await;
    let again = keyed(&timers, "order", in_an_hour()).await;
    assert_eq!(again, Inserted::Existing(first.handle().clone()));
    let cancelled = within(timers.cancel(&again)).await;
    assert_eq!(cancelled, Ok(Cancelled::Done));
    assert!(keyed(&timers, "order", in_an_hour()).await.is_new());
    // Keys are separate for each handler.
    let other = timers.at("call", in_an_hour()).key("order");
    assert!(added(other).await.is_new());
    shut_down(&timers).await;
}

/// The timer of `mail` with this key.
async fn find(timers: &Durable, key: &str) -> Option<Handle> {
    let found = within(timers.find("mail", key)).await.unwrap();
    found.map(PendingTimer::into_handle)
}

async fn an_insert_that_was_answered_is_found_by_its_key() {
    let place = Place::new();
    for file in [false, true] {
        let timers = match file {
            true => place.open().await,
            false => in_memory().await.0,
        };
        let mut callers = JoinSet::new();
        for caller in 0..20 {
            let timers = timers.clone();
            callers.spawn(async move {
                for round in 0..10 {
                    let key = format!("{caller} {round}");
                    assert_eq!(find(&timers, &key).await, None);
                    let timer = keyed(&timers, &key, in_an_hour()).await.into_handle();
                    assert_eq!(find(&timers, &key).await, Some(timer.clone()));
                    // By its original handle, wherever it is.
                    let later = in_an_hour() + 99 * HOUR;
                    let moved = timers.reschedule(&timer, later);
                    assert_eq!(within(moved).await, Ok(Rescheduled::Done));
                    let found = within(timers.find("mail", &key)).await.unwrap().unwrap();
                    assert_eq!(found.handle(), &timer);
                    assert!(found.due() >= later && found.first_due() < later);
                    assert_eq!(Some(found.first_due()), timer.due.time());
                    assert_eq!(within(timers.get(&timer)).await, Ok(Some(found)));
                    if round % 2 == 0 {
                        let cancelled = within(timers.cancel(&timer)).await;
                        assert_eq!(cancelled, Ok(Cancelled::Done));
                        assert_eq!(find(&timers, &key).await, None);
                        assert_eq!(within(timers.get(&timer)).await, Ok(None));
                    }
                }
            });
        }
        within(callers.join_all()).await;
        shut_down(&timers).await;
    }
    // Half of them are in the file.
    let timers = place.open().await;
    for caller in 0..20 {
        for round in 0..10 {
            let found = find(&timers, &format!("{caller} {round}")).await;
            assert_eq!(found.is_some(), round % 2 == 1);
            if let Some(found) = found {
                let cancelled = within(timers.cancel(found)).await;
                assert_eq!(cancelled, Ok(Cancelled::Done));
            }
        }
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_key_is_its_timers_until_that_is_settled_or_dead() {
    let (timers, _) = in_memory().await;
    let shop = create(&timers, "shop", Policy::default()).await;
    let gate = Gate::of(&timers, "shop/mail");
    let mut given_up = Deliveries::ended(&timers, "mail", |_| Err(Dead::because("no")));
    let insert = shop.at("mail", soon()).key("order").insert();
    let timer = within(insert).await.unwrap().into_handle();
    gate.has_begun().await;
    // Also while it is with its handler.
    let found = within(shop.find("mail", "order")).await.unwrap();
    let handle = found.as_ref().map(PendingTimer::handle);
    assert_eq!(handle, Some(&timer));
    let cancelled = within(timers.cancel(&timer)).await;
    assert_eq!(cancelled, Ok(Cancelled::AlreadyFired));
    assert_eq!(within(timers.find("shop/mail", b"order")).await, Ok(found));
    // A key of another handler.
    assert_eq!(find(&timers, "order").await, None);
    gate.go_on.add_permits(1);
    until(|| shop.metrics().settled == 1).await;
    assert_eq!(within(shop.find("mail", "order")).await, Ok(None));
    let again = shop.at("mail", in_an_hour()).key("order");
    assert!(added(again).await.is_new());
    keyed(&timers, "order", soon()).await;
    given_up.next().await;
    until(|| timers.metrics().in_memory == 0).await;
    assert_eq!(find(&timers, "order").await, None);
    assert!(keyed(&timers, "order", in_an_hour()).await.is_new());

    let unknown = within(timers.find("shpo/mail", "order")).await;
    let name = "shpo".into();
    assert_eq!(unknown, Err(Error::UnknownNamespace { name }));
    let wrong = within(shop.find("a/b", "order")).await;
    assert!(matches!(wrong, Err(Error::Name { .. })), "{wrong:?}");
    shut_down(&timers).await;
    let late = within(shop.find("mail", "order")).await;
    assert_eq!(late, Err(Error::ShuttingDown));
}

#[tokio::test]
async fn what_belongs_to_a_key_is_erased_and_nothing_else() {
    let (place, timers) = on_file().await;
    let keeps = Policy::default().retention(7).retry_delays([]);
    let shop = create(&timers, "shop", keeps).await;
    let mut deliveries = Deliveries::ended(&timers, "shop/close", |delivery| {
        match delivery.payload().first() {
            Some(0) => Ok(()),
            _ => Err(Dead::because("no")),
        }
    });
    // Two dead letters with the key, then an archived record, and one of each with another key.
    for (key, payload) in [("17", 1), ("17", 1), ("17", 0), ("18", 1), ("18", 0)] {
        let (dead, kept) = (shop.metrics().dead, shop.metrics().settled);
        let inserted = added(shop.at("close", soon()).key(key).bytes([payload])).await;
        assert!(inserted.is_new());
        deliveries.take(1).await;
        until(|| shop.metrics().dead + shop.metrics().settled > dead + kept).await;
    }
    let erased = within(timers.erase("shop/close", "17")).await.unwrap();
    assert_eq!(erased.pending, Cancelled::NotFound);
    assert_eq!((erased.dead_letters, erased.is_archived), (2, true));
    let timers = place.reopen(timers).await;
    let shop = timers.namespace("shop").unwrap();
    let dead = within(shop.dead_letters(None, 9)).await.unwrap();
    assert_eq!(
        dead.iter().map(|it| it.key().unwrap()).collect::<Vec<_>>(),
        [b"18"]
    );
    let since = SystemTime::UNIX_EPOCH;
    let archived = within(shop.archived("close", since, None, 9))
        .await
        .unwrap();
    let keys: Vec<_> = archived.iter().map(|it| it.key()).collect();
    assert_eq!(keys, [None, Some(&b"18"[..])]);
    // The key is free, and that of a pending timer becomes so.
    let again = added(shop.at("close", in_an_hour()).key("17")).await;
    assert!(again.is_new());
    let erased = within(timers.erase("shop/close", "17")).await.unwrap();
    assert_eq!((erased.pending, erased.dead_letters), (Cancelled::Done, 0));
    assert_eq!(within(timers.get(&again)).await, Ok(None));
    assert!(
        added(shop.at("close", in_an_hour()).key("17"))
            .await
            .is_new()
    );
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_timer_with_its_handler_is_not_erased() {
    let (timers, _) = in_memory().await;
    let gate = Gate::of(&timers, "close");
    added(timers.at("close", soon()).key("17")).await;
    gate.has_begun().await;
    let erased = within(timers.erase("close", "17")).await.unwrap();
    assert_eq!(erased.pending, Cancelled::AlreadyFired);
    gate.go_on.add_permits(1);
    until(|| timers.metrics().namespaces[0].settled == 1).await;
    let erased = within(timers.erase("close", "17")).await.unwrap();
    assert_eq!(erased.pending, Cancelled::NotFound);
    let refused = within(timers.erase("shop/close", "17")).await;
    assert!(
        matches!(refused, Err(Error::UnknownNamespace { .. })),
        "{refused:?}"
    );
    shut_down(&timers).await;
}
