//! Timers, handles and dead letters, page by page.

use std::collections::HashSet;

use fastrand::Rng;
use waterwheel_durable_core::store::{
    Bucket, DeadLetters, Due, Id, Level, Op, PageLimit, PendingCursor, Row, Scope, Store,
};
use waterwheel_durable_sqlite::{Reader, SqliteStore};

use super::{ALL, END};
use crate::folder::*;
use crate::rows::*;

/// Reads all pages from a cursor on, where each returns the cursor of the next one.
fn paged<T, C: Copy>(start: C, mut page: impl FnMut(C) -> (Vec<T>, Option<C>)) -> Vec<T> {
    let (mut after, mut listed) = (Some(start), Vec::new());
    while let Some(cursor) = after {
        let (page, next) = page(cursor);
        listed.extend(page);
        after = next;
    }
    listed
}

#[test]
fn timers_are_listed_in_order_of_due_times_page_by_page() {
    let (_folder, path, _store, mut rows) = filled(2_000);
    rows.sort_unstable_by_key(|(row, _)| (row.due, row.id));
    let reader = Reader::open(&path).unwrap();
    let mut rng = Rng::with_seed(7);
    let scope = [
        Scope::All,
        Scope::Namespace("shop"),
        Scope::Namespace("default"),
        Scope::Namespace("none"),
        Scope::Handler("shop/close"),
        Scope::Handler("shop"),
    ];
    for scope in scope {
        for until in [END, NOW] {
            let is_meant = |row: &Row| scope.contains(&row.handler) && row.due <= until;
            let meant: Vec<_> = rows.iter().filter(|(row, _)| is_meant(row)).collect();
            let listed = paged(Reader::START, |after| {
                let limit = PageLimit::rows(rng.usize(1..200));
                let page = reader.pending(&scope, after, until, limit).unwrap();
                let last = page.last().map(|it| (it.row.due, it.row.id));
                (page, last)
            });
            let is_same = meant
                .iter()
                .zip(&listed)
                .all(|((row, bucket), listed)| listed.row == *row && listed.bucket == *bucket);
            assert_eq!(listed.len(), meant.len(), "{scope:?}");
            assert!(is_same, "{scope:?} until {until}");
        }
    }
    let limit = PageLimit { rows: 9, bytes: 1 };
    let page = reader.pending(&Scope::All, Reader::START, END, limit);
    assert_eq!(page.unwrap().len(), 1);
}

#[test]
fn handles_are_listed_bucket_by_bucket_page_by_page() {
    let (_folder, path, mut store, rows) = filled(2_000);
    let rows = rows.into_iter().map(|(row, bucket)| {
        let cursor = PendingCursor { bucket, id: row.id };
        (cursor, row.handle())
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|(cursor, _)| *cursor);
    let reader = Reader::open(&path).unwrap();
    let mut rng = Rng::with_seed(7);
    for scope in [
        Scope::All,
        Scope::Namespace("shop"),
        Scope::Namespace("none"),
        Scope::Handler("shop/close"),
    ] {
        let meant = rows.iter().filter(|(_, it)| scope.contains(&it.handler));
        let meant: Vec<_> = meant.cloned().collect();
        let listed = paged(None, |after| {
            let limit = rng.usize(1..200);
            let page = reader.handles(scope, after, limit).unwrap();
            (page.handles, page.next.map(Some))
        });
        assert!(listed == meant, "{scope:?}");
        let listed = paged(None, |after| {
            let page = store.handles(scope, after, rng.usize(1..200)).unwrap();
            (page.handles, page.next.map(Some))
        });
        assert!(listed == meant, "{scope:?}");
    }
}

#[test]
fn a_store_examines_some_timers_in_a_call() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(folder.file("timers.db")).unwrap();
    store.begin().unwrap();
    let bucket = Level::Day.bucket(NOW);
    let rows = (1..=10_000).map(|number| row(number, "mail", NOW.as_millis()));
    let rows = rows.chain([row(20_000, "shop/mail", NOW.as_millis())]);
    let inserts: Vec<_> = rows.map(|row| Op::Insert(row, bucket)).collect();
    store.commit(1, &inserts).unwrap();
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = store.handles(Scope::Namespace("shop"), after, 9).unwrap();
        found.push(page.handles.len());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [0, 0, 1]);
}

#[test]
fn a_cascade_between_two_pages_hides_no_handle() {
    let (_folder, path, mut store, rows) = filled(2_000);
    let reader = Reader::open(&path).unwrap();
    let mut rng = Rng::with_seed(8);
    let (mut after, mut listed, mut moved) = (None, HashSet::new(), 0);
    loop {
        let page = reader.handles(Scope::All, after, 30).unwrap();
        listed.extend(page.handles.into_iter().map(|(_, handle)| handle.id));
        after = page.next;
        if after.is_none() {
            break;
        }
        // A cascade as early before the bucket's start as a service does it, or later.
        let level = Level::CASCADING[rng.usize(0..Level::CASCADING.len())];
        if let Some(number) = store.first_bucket(level).unwrap() {
            let bucket = Bucket { level, number };
            let now = Due::from_millis(bucket.start().as_millis() - rng.i64(0..level.millis()));
            let limit = PageLimit::rows(rng.usize(1..100));
            let cascade = Op::Cascade { bucket, now, limit };
            moved += 1;
            store.commit(1_000 + moved, &[cascade]).unwrap();
        }
    }
    assert!(moved > 30, "{moved} cascades");
    assert_eq!(listed.len(), rows.len());
}

#[test]
fn of_timers_due_at_once_the_first_id_comes_first() {
    let (_folder, path, mut store) = new_store();
    // The timers are due when their buckets begin.
    let steps = [
        insert_second(row(2, "first", 60_000)),
        insert_second(row(1, "second", 60_000)),
    ];
    let far = row(0, "third", 60_000);
    let bucket = Level::Minute.bucket(far.due);
    store.commit(1, &steps).unwrap();
    let reader = Reader::open(&path).unwrap();
    let first = || {
        let limit = PageLimit::rows(1);
        let page = reader.pending(&Scope::All, Reader::START, END, limit);
        page.unwrap()[0].row.handler.to_string()
    };
    assert_eq!(first(), "second");
    store.commit(2, &[Op::Insert(far, bucket)]).unwrap();
    assert_eq!(first(), "third");
}

#[test]
fn dead_letters_are_listed_page_by_page_and_by_id() {
    let (_folder, path, mut store, _) = filled(2_000);
    let all = DeadLetters::all(&mut store, Scope::All).unwrap();
    let reader = Reader::open(&path).unwrap();
    for scope in [Scope::All, Scope::Namespace("shop"), Scope::Handler("mail")] {
        let meant = all.iter().filter(|dead| scope.contains(&dead.row.handler));
        let listed = paged(Id::NONE, |after| {
            let page = reader.dead(&scope, after, PageLimit::rows(3)).unwrap();
            assert!(page.len() <= 3);
            let last = page.last().map(|it| it.row.id);
            (page, last)
        });
        assert!(listed.len() > 3);
        assert!(meant.eq(&listed), "{scope:?}");
    }
    let dead_letter = reader.dead_letter(all[3].row.id).unwrap();
    assert_eq!(dead_letter.as_ref(), Some(&all[3]));
    assert_eq!(reader.dead_letter(Id::MAX).unwrap(), None);
}

#[test]
fn a_store_looks_at_some_dead_letters_in_a_call() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(folder.file("timers.db")).unwrap();
    store.begin().unwrap();
    let at = Due::from_millis(5);
    let rows = (1..=3_000).map(|number| row(number, "mail", 5));
    let rows: Vec<_> = rows.chain([row(9_000, "shop/mail", 5)]).collect();
    store.commit(1, &insert_all(&rows)).unwrap();
    let bury = |row: &Row| Op::Bury {
        row: row.clone(),
        at,
        error: "no".into(),
    };
    let bury: Vec<_> = rows.iter().map(bury).collect();
    store.commit(2, &bury).unwrap();
    let (mut after, mut found) = (Id::NONE, Vec::new());
    for calls in 1.. {
        let page = store.dead(Scope::Namespace("shop"), after, ALL).unwrap();
        found.push(page.dead.len());
        let Some(next) = page.next else { break };
        assert_eq!(next, rows[calls * DeadLetters::EXAMINED - 1].id);
        after = next;
    }
    assert_eq!(found, [0, 0, 1]);
    let all = DeadLetters::all(&mut store, Scope::All).unwrap();
    assert_eq!(all.len(), 3_001);
}
