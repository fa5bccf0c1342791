//! Dead letters are listed page by page, and turned back into timers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use waterwheel_durable::{
    Cancelled, Dead, Delivery, Durable, Error, Id, Metrics, NewTimer, Policy, Redriven,
};

use crate::namespaces::create;
use crate::support::*;

/// Handles all timers, and makes them dead letters while this flag is set.
fn moody(timers: &Durable, is_down: &Arc<AtomicBool>) -> Deliveries {
    let is_down = Arc::clone(is_down);
    Deliveries::ended(timers, "mail", move |_| {
        match is_down.load(Ordering::SeqCst) {
            true => Err(Dead::because("the server is down")),
            false => Ok(()),
        }
    })
}

#[tokio::test]
async fn dead_letters_are_listed_by_pages_across_a_restart() {
    let (place, timers) = on_file().await;
    let before = SystemTime::now() - millis(1);
    let mut deliveries = moody(&timers, &Arc::new(AtomicBool::new(true)));
    let batch = (0..25_u8).map(|at| NewTimer::at("mail", soon()).bytes([at]).key([at]));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    deliveries.take(inserted.len()).await;
    let timers = place.reopen(timers).await;
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = within(timers.dead_letters(after, 10)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id());
        pages.push(page);
        assert!(pages.len() < 10, "it begins again");
    }
    let lengths: Vec<_> = pages.iter().map(Vec::len).collect();
    assert_eq!(lengths, [10, 10, 5]);
    let dead: Vec<_> = pages.into_iter().flatten().collect();
    let ids: Vec<Id> = dead.iter().map(|it| it.id()).collect();
    let expected: BTreeSet<Id> = inserted.iter().map(|it| it.handle().id).collect();
    assert_eq!(ids, Vec::from_iter(expected));
    for dead in &dead {
        let at = inserted.iter().position(|it| it.handle().id == dead.id());
        let at = [u8::try_from(at.unwrap()).unwrap()];
        assert_eq!((&**dead.payload(), dead.key()), (&at[..], Some(&at[..])));
        assert_eq!((dead.handler(), dead.attempts()), ("mail", 1));
        assert_eq!(dead.error(), "the server is down");
        assert!(dead.at() >= before && dead.at() <= SystemTime::now());
        assert!(dead.due() >= before && dead.due() <= dead.at());
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_dead_letter_is_redriven_with_its_id_and_payload() {
    let place = Place::new();
    let is_down = Arc::new(AtomicBool::new(true));
    let timers = place.open().await;
    let mut deliveries = moody(&timers, &is_down);
    let timer = timers.at("mail", soon()).key("k").bytes(*b"a").insert();
    let timer = within(timer).await.unwrap();
    deliveries.next().await;
    let timers = place.reopen(timers).await;
    is_down.store(false, Ordering::SeqCst);
    let mut deliveries = moody(&timers, &is_down);
    let id = timer.handle().id;
    assert_eq!(within(timers.redrive(id)).await, Ok(Redriven::Done));
    let seen = deliveries.next().await;
    assert_eq!((seen.id, seen.attempt, &*seen.payload), (id, 1, &b"a"[..]));
    assert_eq!(within(timers.redrive(id)).await, Ok(Redriven::NotFound));
    assert_eq!(timers.dead_letters(None, 10).await, Ok(Vec::new()));
    until(|| timers.metrics().in_memory == 0).await;
    assert_eq!(timers.cancel(&timer).await, Ok(Cancelled::NotFound));
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[tokio::test]
async fn a_discarded_dead_letter_does_not_come_back() {
    let (place, timers) = on_file().await;
    let mut deliveries = moody(&timers, &Arc::new(AtomicBool::new(true)));
    let batch = (0..2_u8).map(|at| NewTimer::at("mail", soon()).bytes([at]));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    deliveries.take(inserted.len()).await;
    let timers = place.reopen(timers).await;
    let [first, second] = [0, 1].map(|at: usize| inserted[at].handle().id);
    assert!(within(timers.discard(first)).await.unwrap());
    assert!(!within(timers.discard(first)).await.unwrap());
    assert_eq!(within(timers.redrive(first)).await, Ok(Redriven::NotFound));
    let timers = place.reopen(timers).await;
    let left = within(timers.dead_letters(None, 10)).await.unwrap();
    assert_eq!(left.iter().map(|it| it.id()).collect::<Vec<_>>(), [second]);
    let late = within(timers.discard(Id::NONE)).await.unwrap();
    assert!(!late, "there is no such letter");
    shut_down(&timers).await;
    let closed = within(timers.discard(second)).await;
    assert!(matches!(closed, Err(Error::ShuttingDown)), "{closed:?}");
}

#[tokio::test]
async fn dead_letters_of_a_namespace_are_listed_among_others() {
    let (timers, _) = in_memory().await;
    let gives_up = |_: &Delivery| Err(Dead::because("no"));
    let mut all = Vec::new();
    for (name, handler) in [("shop", "shop/mail"), ("shop2", "shop2/mail")] {
        create(&timers, name, Policy::default()).await;
        all.push(Deliveries::ended(&timers, handler, gives_up));
    }
    all.push(Deliveries::ended(&timers, "shop", gives_up));
    // Those of other namespaces fill more than a page of the store, before, between and after its own.
    let mut own = Vec::new();
    for count in [300, 0, 130, 1] {
        let others = (0..count).map(|at| match at % 2 {
            0 => NewTimer::at("shop2/mail", soon()),
            _ => NewTimer::at("shop", soon()),
        });
        within(timers.insert_many(others)).await.unwrap();
        let inserted = within(timers.at("shop/mail", soon()).insert()).await;
        own.push(inserted.unwrap().handle().id);
    }
    let dead = |metrics: Metrics| metrics.namespaces.iter().map(|it| it.dead).sum::<u64>();
    until(|| dead(timers.metrics()) == 435).await;
    let shop = timers.namespace("shop").unwrap();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = within(shop.dead_letters(after, 3)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id());
        assert!(page.iter().all(|it| it.handler() == "shop/mail"));
        found.push(page.iter().map(|it| it.id()).collect::<Vec<_>>());
        assert!(found.len() < 10, "it begins again");
    }
    assert_eq!(found, [&own[..3], &own[3..]]);
    assert!(within(shop.dead_letters(None, 0)).await.unwrap().is_empty());
    // The default namespace has the dead letters of handlers without a namespace.
    let default = timers.namespace("default").unwrap();
    let page = within(default.dead_letters(None, 1_000)).await.unwrap();
    assert_eq!(page.len(), 215);
    shut_down(&timers).await;
}

#[tokio::test]
async fn dead_letters_are_read_some_megabytes_at_a_time_and_alone() {
    const LARGE: usize = 1 << 20;
    let (timers, shelf) = in_memory().await;
    let gives_up = |_: &Delivery| Err(Dead::because("no"));
    let (mut all, mut namespaces) = (Vec::new(), Vec::new());
    for name in ["shop", "bank"] {
        namespaces.push(create(&timers, name, Policy::default()).await);
        let handler = format!("{name}/mail");
        all.push(Deliveries::ended(&timers, &handler, gives_up));
    }
    let [shop, bank] = &namespaces[..] else {
        unreachable!();
    };
    let large = (0..20).map(|_| NewTimer::at("mail", soon()).bytes(vec![7; LARGE]));
    within(shop.insert_many(large)).await.unwrap();
    let small = bank.at("mail", soon()).bytes(*b"small");
    added(small).await;
    let dead = || shop.metrics().dead + bank.metrics().dead;
    until(|| dead() == 21).await;

    let page = within(bank.dead_letters(None, 1)).await.unwrap();
    assert!(page.iter().map(|it| &**it.payload()).eq([b"small"]));
    let read = shelf.pages();
    assert!(read.iter().sum::<usize>() < 100, "{read:?}");
    let page = within(timers.dead_letters(None, 100)).await.unwrap();
    assert_eq!(page.len(), 21);
    let read = &shelf.pages()[read.len()..];
    assert!(
        read.len() > 4 && read.iter().all(|it| *it < 5 * LARGE),
        "{read:?}"
    );
    // It returns no more than requested.
    let page = within(shop.dead_letters(None, 2)).await.unwrap();
    let last = shelf.pages().pop().unwrap();
    assert!(page.len() == 2 && last < 3 * LARGE, "{last}");
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_redriven_timer_is_cancelled_by_its_first_handle() {
    let (place, timers) = on_file().await;
    let mut deliveries = moody(&timers, &Arc::new(AtomicBool::new(true)));
    let timer = added(timers.at("mail", soon())).await;
    deliveries.next().await;
    // There is no handler now, so the timer waits.
    let timers = place.reopen(timers).await;
    let redriven = within(timers.redrive(timer.handle().id)).await;
    assert_eq!(redriven, Ok(Redriven::Done));
    assert_eq!(within(timers.cancel(&timer)).await, Ok(Cancelled::Done));
    let mut deliveries = Deliveries::of(&timers, "mail");
    let control = added(timers.at("mail", soon())).await;
    assert_eq!(deliveries.next().await.id, control.handle().id);
    shut_down(&timers).await;
}
