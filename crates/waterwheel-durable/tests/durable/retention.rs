//! Records of delivered timers are kept for some days, and can be listed.

use std::time::{SystemTime, UNIX_EPOCH};

use waterwheel_durable::{Archived, Durable, Namespace, NewTimer, Policy, Retry};

use crate::namespaces::create;
use crate::support::*;

const DAY: u64 = 86_400_000_000;
const MINUTE: u64 = 60_000_000;

/// All archived records of a handler `mail`, read in pages of this size.
async fn archived(shop: &Namespace, since: SystemTime, page: usize) -> Vec<Archived> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let next = within(shop.archived("mail", since, after, page))
            .await
            .unwrap();
        assert!(next.len() <= page);
        let Some(last) = next.last() else {
            return all;
        };
        after = Some(last.cursor());
        all.extend(next);
        assert!(all.len() < 100_000, "it begins again");
    }
}

/// Delivers timers with these keys, and waits until they are settled.
async fn deliver(timers: &Durable, deliveries: &mut Deliveries, keys: std::ops::Range<u8>) {
    let settled = || timers.namespace("shop").unwrap().metrics().settled;
    let before = settled();
    let count = keys.len();
    // A time in the past is delivered at once, whatever the service's clock shows.
    let batch = keys.map(|key| NewTimer::at("shop/mail", UNIX_EPOCH).key([key]));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    assert!(inserted.iter().all(|it| it.is_new()));
    deliveries.take(count).await;
    until(|| settled() == before + count as u64).await;
}

#[tokio::test]
async fn what_was_delivered_is_listed_by_pages_across_a_restart() {
    let (place, timers) = on_file().await;
    let policy = Policy::default().retention(7).retry_delays([millis(1)]);
    create(&timers, "shop", policy).await;
    // Every second attempt succeeds.
    let mut deliveries =
        Deliveries::ended(&timers, "shop/mail", |delivery| match delivery.attempt() {
            1 => Err(Retry::backoff("no")),
            _ => Ok(()),
        });
    let before = SystemTime::now() - millis(2);
    let batch = (0..25_u8).map(|key| NewTimer::at("shop/mail", soon()).key([key]));
    let inserted = within(timers.insert_many(batch)).await.unwrap();
    deliveries.take(50).await;
    let shop = timers.namespace("shop").unwrap();
    until(|| shop.metrics().settled == 25).await;
    let after = SystemTime::now();
    let timers = place.reopen(timers).await;
    let shop = timers.namespace("shop").unwrap();
    let all = archived(&shop, UNIX_EPOCH, 100).await;
    assert_eq!(all.len(), 25);
    for (size, since) in [(1, UNIX_EPOCH), (10, before), (25, before), (24, before)] {
        assert_eq!(archived(&shop, since, size).await, all, "{size}");
    }
    for it in &all {
        assert_eq!((it.handler(), it.attempts()), ("shop/mail", 2));
        assert!(it.at() >= before && it.at() <= after && it.due() <= it.at());
        let key = usize::from(it.key().unwrap()[0]);
        assert_eq!(it.id(), inserted[key].handle().id);
    }
    assert!(all.is_sorted_by_key(|it| (it.cursor(), it.at())));
    // From a time in the middle of a day's records.
    let middle = all[12].at();
    let rest: Vec<_> = all.iter().filter(|it| it.at() >= middle).cloned().collect();
    assert_eq!(archived(&shop, middle, 3).await, rest);
    assert_eq!(archived(&shop, after + millis(2), 3).await, []);
    for (handler, limit) in [("other", 9), ("mail", 0)] {
        let none = within(shop.archived(handler, before, None, limit)).await;
        assert_eq!(none, Ok(vec![]), "{limit} of {handler}");
    }
    shut_down(&timers).await;
    let late = within(shop.archived("mail", before, None, 9)).await;
    assert!(late.is_err());
}

#[tokio::test]
async fn a_clock_that_jumps_deletes_no_archived_timer() {
    let year = 365 * DAY.cast_signed();
    for by in [year, -year] {
        let (builder, shift) = shifted();
        let (timers, _) = in_memory_by(builder).await;
        let shop = create(&timers, "shop", Policy::default().retention(2)).await;
        let mut deliveries = Deliveries::of(&timers, "shop/mail");
        // The quiet period after opening is over.
        shift.suspend(20 * MINUTE);
        deliver(&timers, &mut deliveries, 0..20).await;
        let first = archived(&shop, UNIX_EPOCH, 50).await;
        assert_eq!(first.len(), 20);
        let at = shift.wall();
        for (key, wall, suspension) in [(20, at + by, MINUTE), (21, at, 20 * MINUTE)] {
            let jumps = timers.metrics().clock_jumps;
            shift.set_wall(wall);
            until(|| timers.metrics().clock_jumps == jumps + 1).await;
            // Any expiry would go into the same commits as this, or into earlier ones.
            deliver(&timers, &mut deliveries, key..key + 1).await;
            shift.suspend(suspension);
            deliver(&timers, &mut deliveries, key + 100..key + 101).await;
            let all = archived(&shop, UNIX_EPOCH, 50).await;
            assert!(first.iter().all(|it| all.contains(it)), "{by}");
        }
        // Time that passes does count, including a suspension.
        shift.suspend(4 * DAY);
        within(async {
            while archived(&shop, UNIX_EPOCH, 50).await.contains(&first[0]) {
                tokio::time::sleep(millis(1)).await;
            }
        })
        .await;
        shut_down(&timers).await;
    }
}

#[tokio::test]
async fn many_archived_timers_are_read_beside_commits() {
    let (timers, _) = in_memory().await;
    let shop = create(&timers, "shop", Policy::default().retention(7)).await;
    let mut deliveries = Deliveries::of(&timers, "shop/mail");
    let batch = (0..10_000).map(|_| NewTimer::at("shop/mail", UNIX_EPOCH));
    within(timers.insert_many(batch)).await.unwrap();
    deliveries.take(10_000).await;
    until(|| shop.metrics().settled == 10_000).await;
    let all = within(shop.archived("mail", UNIX_EPOCH, None, usize::MAX)).await;
    let all = all.unwrap();
    assert_eq!(all.len(), 10_000);
    // Records settled earlier on the same day are skipped, a few thousand at a time.
    let last = all[9_990].at();
    let rest = all.iter().filter(|it| it.at() >= last).count();
    assert_eq!(archived(&shop, last, 4).await.len(), rest);
    shut_down(&timers).await;
}
