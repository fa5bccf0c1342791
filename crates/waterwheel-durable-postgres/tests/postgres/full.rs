//! A store at its limit refuses inserts, and nothing else.

use std::sync::Arc;

use waterwheel_durable_core::store::{Handle, Op, Outcome, Row, Store};

use crate::database::{Database, insert, row};

fn keyed(count: u64) -> Row {
    let key = Some(Arc::from(&b"key"[..]));
    Row { key, ..row(count) }
}

#[test]
fn a_full_store_refuses_inserts() {
    let database = Database::new();
    let mut store = database.at(&database.url).limit(3).open().unwrap();
    store.begin().unwrap();
    let first: Handle = keyed(1).handle();
    let steps = [
        insert(&keyed(1)),
        insert(&row(2)),
        insert(&row(3)),
        insert(&row(4)),
    ];
    let (inserted, full) = (Outcome::Inserted, Outcome::Full);
    let all = [
        inserted.clone(),
        inserted.clone(),
        inserted.clone(),
        full.clone(),
    ];
    assert_eq!(store.commit(1, &steps).unwrap(), all);
    // Another timer has the key.
    let steps = [insert(&keyed(5)), insert(&row(6))];
    let outcomes = [Outcome::Exists(first.clone()), full.clone()];
    assert_eq!(store.commit(2, &steps).unwrap(), outcomes);
    // A dead letter counts, and steps that belong together are not refused.
    let (at, error) = (row(2).due, "refused".into());
    let bury = Op::Bury {
        row: row(2),
        at,
        error,
    };
    let steps = [
        bury,
        Op::All(vec![insert(&row(7)), Op::Settle(row(3))]),
        insert(&row(8)),
    ];
    let all = Outcome::All(vec![inserted.clone(), Outcome::Done]);
    assert_eq!(store.commit(3, &steps).unwrap(), [Outcome::Done, all, full]);
    // Each timer that is gone makes room for another one.
    let steps = [Op::Cancel(first), Op::Discard(row(2).id)];
    let cancelled = Outcome::Cancelled(true);
    assert_eq!(
        store.commit(4, &steps).unwrap(),
        [cancelled.clone(), cancelled]
    );
    let steps = [insert(&row(9)), insert(&row(10))];
    assert_eq!(
        store.commit(5, &steps).unwrap(),
        [inserted.clone(), inserted]
    );
    drop(store);
    // The limit counts what was there before.
    let mut store = database.at(&database.url).limit(3).open().unwrap();
    store.begin().unwrap();
    assert_eq!(
        store.commit(1, &[insert(&row(11))]).unwrap(),
        [Outcome::Full]
    );
    assert_eq!(store.handlers().unwrap(), [Arc::from("mail")]);
}
