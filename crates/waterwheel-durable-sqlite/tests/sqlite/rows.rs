//! Timers of all kinds.

use std::path::PathBuf;

use fastrand::Rng;
use waterwheel_durable_core::store::{Bucket, Due, Id, Level, Op, Outcome, Row, Store};
use waterwheel_durable_sqlite::SqliteStore;

use crate::folder::{Folder, new_store};

pub(crate) const HANDLERS: [&str; 4] = ["mail", "shop/close", "shop/notify", "shopping/close"];

/// The timer with this number of the first epoch.
pub(crate) fn row(number: u64, handler: &str, due: i64) -> Row {
    Row::new(
        Id::new(1, number).unwrap(),
        Due::from_millis(due),
        handler,
        number.to_string().into_bytes(),
    )
}

pub(crate) const NOW: Due = Due::from_millis(1_800_000_000_000);

/// A new store with this many timers of all kinds.
pub(crate) fn filled(count: u64) -> (Folder, PathBuf, SqliteStore, Vec<(Row, Bucket)>) {
    let (folder, path, mut store) = new_store();
    let rows = fill(&mut store, NOW, count);
    (folder, path, store, rows)
}

pub(crate) fn insert_all(rows: &[Row]) -> Vec<Op> {
    rows.iter().cloned().map(insert_second).collect()
}

/// A commit of one insert.
pub(crate) fn insert_one(store: &mut SqliteStore, commit: u64, row: Row) {
    store.commit(commit, &[insert_second(row)]).unwrap();
}

pub(crate) fn insert_second(row: Row) -> Op {
    let bucket = Level::Second.bucket(row.due);
    Op::Insert(row, bucket)
}

/// Fills a newly created store with this many timers: of each handler and level, overdue, retried, moved and dead. Returns the pending ones.
pub(crate) fn fill(store: &mut SqliteStore, now: Due, count: u64) -> Vec<(Row, Bucket)> {
    let mut rng = Rng::with_seed(5);
    let (mut rows, mut steps) = (Vec::new(), Vec::new());
    for number in 0..count {
        let level = [
            Level::Second,
            Level::Minute,
            Level::Hour,
            Level::Day,
            Level::Month,
        ];
        let distance = level[number as usize % 5].millis() * rng.i64(-3..40);
        // Many are due at the same time.
        let due = now.as_millis() + distance + rng.i64(0..3);
        let mut row = row(number, HANDLERS[rng.usize(0..4)], due);
        row.key = (rng.u32(0..5) == 0).then(|| number.to_le_bytes().as_slice().into());
        row.payload = vec![7; if rng.u32(0..50) == 0 { 6_000 } else { 20 }].into();
        let bucket = Bucket::of(row.due, now);
        steps.push(Op::Insert(row.clone(), bucket));
        rows.push((row, bucket));
    }
    let inserted = store.commit(1, &steps).unwrap();
    assert!(inserted.iter().all(|it| *it == Outcome::Inserted));
    let mut steps = Vec::new();
    rows.retain_mut(|(row, bucket)| {
        let is_near = bucket.level == Level::Second;
        match rng.u32(0..10) {
            0 if is_near && rng.bool() => {
                steps.push(Op::Archive(row.clone(), now));
                false
            }
            0 if is_near => {
                let (row, error) = (row.clone(), "it said no".into());
                steps.push(Op::Bury {
                    row,
                    at: now,
                    error,
                });
                false
            }
            1 | 2 if is_near => {
                let due = Due::from_millis(now.as_millis() + rng.i64(-10..100_000_000));
                let to = Bucket::of(due, now);
                steps.push(Op::Retry(row.clone(), due, to));
                (row.due, *bucket) = (due, to);
                row.failures += 1;
                true
            }
            3 => {
                let due = Due::from_millis(now.as_millis() + rng.i64(-1_000..9_000_000_000));
                let to = Bucket::of(due, now);
                steps.push(Op::Reschedule(row.handle(), due, to));
                (row.due, *bucket) = (due, to);
                true
            }
            _ => true,
        }
    });
    let (first, second) = steps.split_at(steps.len() / 2);
    store.commit(2, first).unwrap();
    store.commit(3, second).unwrap();
    rows
}
