//! Pending timers are listed page by page, counted, and cancelled together.

use std::collections::BTreeMap;

use waterwheel_durable::{
    Cancelled, Dead, Durable, Error, Handle, NewTimer, PendingTimer, Policy, Scope,
};

use crate::namespaces::create;
use crate::support::*;

on_both_flavors! {
    all_timers_of_a_handler_are_cancelled_and_no_others
}

/// Reads all pages of this size.
async fn listed(timers: &Durable, scope: Scope<'_>, limit: usize) -> Vec<PendingTimer> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = within(timers.pending(scope, after, limit)).await.unwrap();
        assert!(page.timers.len() == limit || page.next.is_none());
        all.extend(page.timers);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// Inserts this many timers of each of three handlers, in buckets of all lengths.
async fn filled(timers: &Durable, count: u32) -> Vec<Handle> {
    create(timers, "shop", Policy::default()).await;
    let far = in_an_hour();
    let batch = (0..3 * count).map(|it| {
        let handler = ["close", "shop/close", "shop/remind"][it as usize % 3];
        NewTimer::at(handler, far + HOUR * [0, 5, 50, 5_000][it as usize % 4])
    });
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    inserted.into_iter().map(|it| it.handle().clone()).collect()
}

#[tokio::test]
async fn timers_are_listed_by_pages_in_order_of_time() {
    let (place, timers) = on_file().await;
    let handles = filled(&timers, 400).await;
    let timers = place.reopen(timers).await;
    for scope in [
        Scope::All,
        Scope::Namespace("shop"),
        Scope::Namespace("default"),
        Scope::Handler("shop/remind"),
        Scope::Handler("shop/none"),
    ] {
        let meant = handles.iter().filter(|it| scope.contains(&it.handler));
        let mut meant: Vec<_> = meant.cloned().collect();
        // Timers in the same bucket are due at the same time here.
        meant.sort_by_key(|it| (it.due, it.id));
        for limit in [7, 300, 9_999] {
            let found = listed(&timers, scope, limit).await.into_iter();
            let found: Vec<_> = found.map(PendingTimer::into_handle).collect();
            assert!(found == meant, "{scope:?}, {limit} a page");
        }
    }
    let one = within(timers.pending(Scope::All, None, 0)).await.unwrap();
    assert_eq!((one.timers.len(), one.next.is_some()), (1, true));
    shut_down(&timers).await;
}

#[tokio::test]
async fn large_payloads_are_listed_some_megabytes_at_a_time() {
    let (timers, shelf) = in_memory().await;
    let batch = (0..30_u8).map(|it| NewTimer::at("close", in_an_hour()).bytes(vec![it; 1 << 20]));
    within(timers.insert_many(batch)).await.unwrap();
    let found = listed(&timers, Scope::All, 30).await;
    let payloads = found.iter().map(|it| (it.payload()[0], it.payload().len()));
    let expected = (0..30).map(|it| (it, 1 << 20));
    assert!(payloads.eq(expected));
    assert!((7..15).contains(&shelf.lists()), "{} pages", shelf.lists());
    shut_down(&timers).await;
}

#[tokio::test]
async fn counts_follow_inserts_deliveries_and_deaths() {
    let (place, timers) = on_file().await;
    let handles = filled(&timers, 40).await;
    let sums = |timers: Durable| async move {
        let counts = within(timers.counts()).await.unwrap();
        let mut pending = BTreeMap::new();
        for it in &counts.pending {
            *pending.entry(it.handler.to_string()).or_insert(0) += it.count;
        }
        let dead = counts.dead.iter();
        let dead = dead.map(|it| (it.handler.to_string(), it.error.to_string(), it.count));
        (pending, dead.collect::<Vec<_>>())
    };
    let of = |close, shop_close, remind| {
        let all = [
            ("close", close),
            ("shop/close", shop_close),
            ("shop/remind", remind),
        ];
        let all = all.into_iter().filter(|(_, count)| *count > 0);
        BTreeMap::from_iter(all.map(|(name, count)| (name.to_owned(), count)))
    };
    assert_eq!(sums(timers.clone()).await, (of(40, 40, 40), Vec::new()));
    // Wherever they are, counts are those of the buckets that hold them.
    let counts = within(timers.counts()).await.unwrap();
    let far = handles.iter().filter(|it| &*it.handler == "close");
    let far = far.map(|it| it.due).max().unwrap();
    let last = counts.pending.iter().filter(|it| &*it.handler == "close");
    let last = last.max_by_key(|it| it.bucket.start()).unwrap();
    assert!(last.count == 10 && last.bucket == last.bucket.level.bucket(far));
    for timer in &handles[..6] {
        assert_eq!(within(timers.cancel(timer)).await, Ok(Cancelled::Done));
    }
    assert_eq!(sums(timers.clone()).await, (of(38, 38, 38), Vec::new()));
    let mut deliveries = Deliveries::ended(&timers, "close", |delivery| {
        match delivery.payload().first() {
            Some(1) => Err(Dead::because("refused\nby the bank")),
            _ => Ok(()),
        }
    });
    let batch = (0..4_u8).map(|it| NewTimer::at("close", soon()).bytes([it % 2]));
    within(timers.insert_many(batch)).await.unwrap();
    deliveries.take(4).await;
    until(|| timers.metrics().namespaces[0].dead == 2).await;
    until(|| timers.metrics().namespaces[0].settled == 2).await;
    let dead = vec![("close".to_owned(), "refused".to_owned(), 2)];
    assert_eq!(sums(timers.clone()).await, (of(38, 38, 38), dead.clone()));
    let timers = place.reopen(timers).await;
    assert_eq!(sums(timers.clone()).await, (of(38, 38, 38), dead));
    for dead in within(timers.dead_letters(None, 9)).await.unwrap() {
        assert_eq!(within(timers.discard(dead.id())).await, Ok(true));
    }
    within(timers.cancel_all(Scope::All)).await.unwrap();
    assert_eq!(sums(timers.clone()).await, (of(0, 0, 0), Vec::new()));
    shut_down(&timers).await;
}

async fn all_timers_of_a_handler_are_cancelled_and_no_others() {
    // More than are cancelled at a time.
    let (place, timers) = on_file().await;
    let handles = filled(&timers, 1_300).await;
    let timers = place.reopen(timers).await;
    let cancelled = within(timers.cancel_all(Scope::Handler("shop/close"))).await;
    assert_eq!(
        cancelled.map(|it| (it.done, it.already_fired)),
        Ok((1_300, 0))
    );
    for timer in handles.iter().step_by(97) {
        let is_left = within(timers.get(timer)).await.unwrap().is_some();
        assert_eq!(is_left, &*timer.handler != "shop/close");
    }
    let cancelled = within(timers.cancel_all(Scope::Namespace("shop"))).await;
    assert_eq!(cancelled.map(|it| it.done), Ok(1_300));
    assert_eq!(listed(&timers, Scope::All, 9_999).await.len(), 1_300);
    let cancelled = within(timers.cancel_all(Scope::All)).await;
    assert_eq!(cancelled.map(|it| it.done), Ok(1_300));
    assert!(listed(&timers, Scope::All, 9).await.is_empty());
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_timer_with_its_handler_is_not_cancelled_with_all() {
    let (timers, _) = in_memory().await;
    let gate = Gate::of(&timers, "close");
    added(timers.at("close", soon())).await;
    gate.has_begun().await;
    added(timers.at("close", in_an_hour())).await;
    let cancelled = within(timers.cancel_all(Scope::Handler("close"))).await;
    assert_eq!(cancelled.map(|it| (it.done, it.already_fired)), Ok((1, 1)));
    gate.go_on.add_permits(1);
    until(|| timers.metrics().namespaces[0].settled == 1).await;
    shut_down(&timers).await;
}

#[tokio::test]
async fn an_unknown_namespace_is_refused() {
    let (timers, _) = in_memory().await;
    for scope in [Scope::Namespace("shop"), Scope::Handler("shop/close")] {
        let listed = within(timers.pending(scope, None, 9)).await;
        assert!(
            matches!(listed, Err(Error::UnknownNamespace { .. })),
            "{listed:?}"
        );
        let cancelled = within(timers.cancel_all(scope)).await;
        assert!(
            matches!(cancelled, Err(Error::UnknownNamespace { .. })),
            "{cancelled:?}"
        );
    }
    let listed = within(timers.pending(Scope::Handler(""), None, 9)).await;
    assert!(matches!(listed, Err(Error::Name { .. })), "{listed:?}");
    shut_down(&timers).await;
}
