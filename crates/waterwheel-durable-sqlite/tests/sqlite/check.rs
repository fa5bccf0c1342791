//! Does a check find every error in the index of the keys, and none in the files of a store?

use std::path::Path;

use fastrand::Rng;
use waterwheel_durable_core::store::{
    Bucket, Counts, DeadLetters, Due, Id, Level, Op, Outcome, Scope, Store,
};
use waterwheel_durable_sqlite::{Checked, Sizes, SqliteStore, check};

use crate::folder::*;
use crate::rows::*;

fn look(path: &Path) -> (Checked, Vec<String>) {
    let mut found = Vec::new();
    let checked = check(path, &mut |finding| found.push(finding.to_string())).unwrap();
    assert_eq!(checked.findings, found.len() as u64);
    (checked, found)
}

/// A store whose index of the keys has runs, some of which are being merged.
fn open(path: &Path, fresh: usize) -> SqliteStore {
    begun_as(path, |options| options.key_sizes = Sizes { fresh, step: 8 })
}

#[test]
fn nothing_is_found_in_what_a_store_has_written() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let mut store = open(&path, 16);
    let mut rng = Rng::with_seed(7);
    let mut timers = fill(&mut store, NOW, 1_000);
    let mut number = 1_000;
    for commit in 1..200 {
        let mut steps = Vec::new();
        for _ in 0..8 {
            number += 1;
            let mut row = row(number, HANDLERS[rng.usize(0..4)], 0);
            row.due = Due::from_millis(NOW.as_millis() + rng.i64(-50_000..90_000_000));
            row.first_due = row.due;
            row.key = Some(number.to_le_bytes().as_slice().into());
            let bucket = Bucket::of(row.due, NOW);
            steps.push(Op::Insert(row.clone(), bucket));
            timers.push((row, bucket));
        }
        store.commit(1_000 + commit, &steps).unwrap();
        let mut steps = Vec::new();
        for _ in 0..7 {
            let (row, bucket) = timers.swap_remove(rng.usize(0..timers.len()));
            let to = match rng.u32(0..4) {
                0 => row.first_due,
                _ => Due::from_millis(NOW.as_millis() + rng.i64(0..90_000_000)),
            };
            match rng.u32(0..5) {
                0 if bucket.level == Level::Second => steps.push(Op::Archive(row, NOW)),
                1 if bucket.level == Level::Second => steps.push(Op::Bury {
                    row,
                    at: NOW,
                    error: "it said no".into(),
                }),
                2 => {
                    let bucket = Bucket::of(to, NOW);
                    steps.push(Op::Reschedule(row.handle(), to, bucket));
                    let mut row = row;
                    row.due = to;
                    timers.push((row, bucket));
                }
                _ => steps.push(Op::Cancel(row.handle())),
            }
        }
        let outcomes = store.commit(2_000 + commit, &steps).unwrap();
        assert!(!outcomes.contains(&Outcome::Cancelled(false)));
        store.maintain().unwrap();
        if commit % 40 == 0 {
            let (checked, found) = look(&path);
            assert_eq!(found, [""; 0]);
            assert!(checked.rows > 500, "{}", checked.rows);
        }
    }
    let dead = DeadLetters::all(&mut store, Scope::All).unwrap();
    assert!(dead.len() > 20);
    for (at, dead_letter) in (3_000..).zip(dead) {
        let due = dead_letter.row.due;
        let redrive = Op::Redrive(dead_letter.row.id, due, Level::Second.bucket(due));
        store.commit(at, &[redrive]).unwrap();
    }
    drop(store);
    let (checked, found) = look(&path);
    assert_eq!(found, [""; 0]);
    assert!(checked.all_pages);
    assert!(query(&path, "SELECT count(*) FROM key_chunks") > 4);
    assert!(query(&path, "SELECT count(*) FROM archive") > 4);
    assert!(query(&path, "SELECT count(*) FROM moved") > 20);
}

#[test]
fn counts_that_are_wrong_stop_nothing_and_are_counted_again() {
    let (_folder, path, mut store, rows) = filled(500);
    execute(&path, "DELETE FROM pending_counts; DELETE FROM dead_counts");
    let cancels = rows
        .iter()
        .take(100)
        .map(|(row, _)| Op::Cancel(row.handle()));
    store.commit(4, &cancels.collect::<Vec<_>>()).unwrap();
    assert_eq!(store.counts().unwrap(), Counts::default());
    // A level and a handler that do not exist, and a count below 0.
    let damage = "INSERT INTO pending_counts VALUES (9, 1, 1, 5), (1, 1, 99, 5), (1, 1, 1, -5)";
    execute(&path, damage);
    assert_eq!(store.counts().unwrap(), Counts::default());
    assert_eq!(store.commit(5, &[]).unwrap(), []);
    drop(store);
    assert!(!look(&path).1.is_empty());
    // As the check says.
    execute(&path, "DELETE FROM pending_counts");
    let mut store = SqliteStore::open(&path).unwrap();
    let counts = store.counts().unwrap();
    let pending: u64 = counts.pending.iter().map(|it| it.count).sum();
    assert_eq!(pending, rows.len() as u64 - 100);
    drop(store);
    assert_eq!(look(&path).1, [""; 0]);
}

#[test]
fn damage_of_the_index_of_the_keys_is_found() {
    for (sql, table, words) in [
        (
            "DELETE FROM key_filters",
            "key_chunks",
            "`key_filters` rules out a key",
        ),
        (
            "UPDATE key_filters SET filter = zeroblob(512)",
            "key_chunks",
            "`key_filters` rules out a key",
        ),
        (
            "UPDATE key_filters SET filter = x'00'",
            "key_filters",
            "not a valid filter",
        ),
        (
            "DELETE FROM key_chunks",
            "key_filters",
            "a chunk that does not exist",
        ),
        (
            "UPDATE key_chunks SET number = number + (50 << 32)",
            "key_chunks",
            "a run that the table `key_runs` does not have",
        ),
        (
            "DELETE FROM key_runs",
            "key_chunks",
            "the index of the keys",
        ),
        (
            "UPDATE key_runs SET done = 0",
            "key_chunks",
            "its run has not written",
        ),
        (
            "UPDATE key_chunks SET entries = CAST(substr(entries, 33, 32) || substr(entries, 1, 32) AS BLOB)",
            "key_chunks",
            "not in order",
        ),
        (
            "UPDATE key_chunks SET entries = x'00'",
            "key_chunks",
            "cannot be read",
        ),
        (
            "DELETE FROM timers WHERE key IS NOT NULL",
            "key_chunks",
            "which does not exist",
        ),
    ] {
        let folder = Folder::new();
        let path = folder.file("timers.db");
        let mut store = open(&path, 8);
        let steps = (1..=20).map(|number| {
            let mut row = row(number, "mail", NOW.as_millis());
            row.id = Id::new(1, number).unwrap();
            row.key = Some(number.to_le_bytes().as_slice().into());
            insert_second(row)
        });
        store.commit(1, &steps.collect::<Vec<_>>()).unwrap();
        store.maintain().unwrap();
        drop(store);
        assert_eq!(look(&path).1, [""; 0]);
        execute(&path, sql);
        let (_, found) = look(&path);
        let place = format!("table `{table}`");
        let is_named = |line: &str| table == "key_chunks" || line.contains(&place);
        let is_it = |line: &String| line.contains(words) && is_named(line);
        assert!(found.iter().any(is_it), "{sql}: {found:?}");
    }
}
