//! Is a damaged file harmless?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::store::{
    DeadLetters, Due, Id, Level, Op, PageLimit, Row, RowCursor, Scope, Store, StoreError,
};
use waterwheel_durable_faults::{Content, Disk};

use crate::faulty_disk::*;

const HANDLERS: [&str; 3] = ["mail", "close", "end the trial"];

/// A file with some of everything. The WAL has a part of it, or nothing.
fn files(has_wal: bool) -> (Vec<u8>, Vec<u8>) {
    let disk = disk();
    let mut store = open_with(&disk, 60).unwrap();
    let epoch = store.begin().unwrap();
    let mut rng = Rng::with_seed(3);
    let mut number = 0_u64;
    for commit in 1..40 {
        let steps = (0..8).map(|step| {
            number += 1;
            let level = [Level::Second, Level::Minute, Level::Hour, Level::Day][step % 4];
            let due = Due::from_millis(rng.i64(0..40_000) * level.millis());
            let row = Row {
                key: (step == 5).then(|| number.to_le_bytes().as_slice().into()),
                ..Row::new(
                    Id::new(epoch, number).unwrap(),
                    due,
                    HANDLERS[rng.usize(0..3)],
                    vec![7; if step == 6 { 6_000 } else { 64 }],
                )
            };
            Op::Insert(row, level.bucket(due))
        });
        store.commit(commit, &steps.collect::<Vec<_>>()).unwrap();
    }
    let rows = store.load("mail", RowCursor::START, i64::MAX, PageLimit::rows(20));
    let rows = rows.unwrap();
    let moved = rows.iter().enumerate().map(|(at, row)| match at % 2 {
        0 => Op::Bury {
            row: row.clone(),
            at: row.due,
            error: "it said no".into(),
        },
        _ => Op::Retry(row.clone(), row.due, Level::Second.bucket(row.due)),
    });
    store.commit(40, &moved.collect::<Vec<_>>()).unwrap();
    if !has_wal {
        drop(store);
    }
    let wal = disk.read(WAL).unwrap_or_default();
    (disk.read(FILE).unwrap(), wal)
}

/// Damages a file in one to four places.
fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.usize(1..5) {
        if bytes.is_empty() {
            return;
        }
        // The first page contains what is read first.
        let limit = if rng.u32(0..4) == 0 { 200 } else { bytes.len() };
        let at = rng.usize(0..limit.min(bytes.len()));
        let end = bytes.len().min(at + rng.usize(1..5_000));
        match rng.u32(0..7) {
            0 | 1 => bytes[at] ^= 1 << rng.u32(0..8),
            2 => bytes[at] = rng.u8(..),
            3 => bytes[at..end].fill(0),
            4 => rng.fill(&mut bytes[at..end]),
            5 => bytes.truncate(at),
            // A page is replaced by another one.
            _ => {
                let (from, to) = (rng.usize(0..bytes.len()) / 4_096, at / 4_096);
                let from = (from * 4_096).min(bytes.len().saturating_sub(4_096));
                let to = (to * 4_096).min(bytes.len().saturating_sub(4_096));
                let page = bytes[from..bytes.len().min(from + 4_096)].to_vec();
                bytes[to..to + page.len()].copy_from_slice(&page);
            }
        }
    }
}

/// Reads everything that an engine reads. It ends, unless a store returns the same rows again and again.
fn use_all(store: &mut dyn Store) -> Result<(), StoreError> {
    store.begin()?;
    let mut commit = 0;
    for handler in HANDLERS {
        let mut after = RowCursor::START;
        store.first_second(handler, i64::MIN)?;
        loop {
            let rows = store.load(handler, after, i64::MAX, PageLimit::rows(16))?;
            let Some(last) = rows.last() else {
                break;
            };
            assert!(last.cursor() > after, "it goes back to {last:?}");
            after = last.cursor();
            let steps = rows.into_iter().enumerate().map(|(at, row)| match at % 3 {
                0 => Op::Settle(row),
                1 => Op::Cancel(row.handle()),
                _ => {
                    let due = Due::from_millis(row.due.as_millis().saturating_add(1));
                    Op::Retry(row, due, Level::Day.bucket(due))
                }
            });
            commit += 1;
            store.commit(commit, &steps.collect::<Vec<_>>())?;
        }
    }
    for level in Level::CASCADING {
        for _ in 0..50 {
            let Some(number) = store.first_bucket(level)? else {
                break;
            };
            let bucket = waterwheel_durable_core::store::Bucket { level, number };
            let now = bucket.start();
            commit += 1;
            let limit = PageLimit::rows(100);
            store.commit(commit, &[Op::Cascade { bucket, now, limit }])?;
        }
    }
    for dead in DeadLetters::all(store, Scope::All)? {
        let due = dead.row.due;
        commit += 1;
        let redrive = Op::Redrive(dead.row.id, due, Level::Day.bucket(due));
        store.commit(commit, &[redrive])?;
    }
    Ok(())
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    refused: u32,
    failed: u32,
    worked: u32,
}

fn try_one(seed: u64, files: &[(Vec<u8>, Vec<u8>)], disk: &Disk, tally: &mut Tally) {
    let mut rng = Rng::with_seed(seed);
    let (mut file, mut wal) = files[rng.usize(0..files.len())].clone();
    match wal.is_empty() || rng.bool() {
        true => damage(&mut file, &mut rng),
        false => damage(&mut wal, &mut rng),
    }
    disk.put(Content::of([(FILE, file.clone()), (WAL, wal.clone())]));
    match open(disk) {
        Ok(mut store) => match use_all(&mut store) {
            Ok(()) => tally.worked += 1,
            Err(error) => {
                // A definite error is retried, and damage does not go away: the store would silently stand still.
                assert!(!error.is_definite(), "it is asked again: {error:?}");
                let words = std::error::Error::source(&error).map(ToString::to_string);
                assert!(!words.unwrap_or_default().is_empty());
                tally.failed += 1;
            }
        },
        Err(error) => {
            assert!(!error.to_string().is_empty());
            tally.refused += 1;
            // A refused file is not written to.
            assert!(disk.read(FILE).as_ref() == Some(&file), "{error:?}");
            // An empty file with a WAL is refused before SQLite opens it: see `open.rs`.
            let is_left = disk.read(WAL) == Some(wal) || file.is_empty();
            assert!(is_left, "{error:?}");
        }
    }
}

#[test]
fn damage_is_an_error_or_does_no_harm() {
    const CASES: u64 = 700;
    let (sender, cases) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let files = [files(false), files(true)];
        let disk = disk();
        let mut tally = Tally::default();
        for seed in 0..CASES {
            let tried = AssertUnwindSafe(|| try_one(seed, &files, &disk, &mut tally));
            let has_panicked = catch_unwind(tried).is_err();
            if sender.send((seed, has_panicked)).is_err() {
                break;
            }
        }
        tally
    });
    let mut panicked = Vec::new();
    for seed in 0..CASES {
        // A case takes a few milliseconds.
        let case = cases.recv_timeout(Duration::from_secs(300));
        let (_, has_panicked) = case.unwrap_or_else(|_| panic!("seed {seed} hangs"));
        panicked.extend(has_panicked.then_some(seed));
    }
    assert!(panicked.is_empty(), "these seeds: {panicked:?}");
    let tally = thread.join().unwrap();
    println!("{tally:?}");
    let all = [tally.refused, tally.failed, tally.worked];
    assert!(all.iter().all(|count| *count > 30), "{tally:?}");
}

/// Loads all timers of `mail` from a store that was changed behind its back.
fn load_of(disk: &Disk) -> Result<Vec<Row>, StoreError> {
    let mut store = open(disk).unwrap();
    store.begin().unwrap();
    store.load("mail", RowCursor::START, i64::MAX, PageLimit::rows(1_000))
}

#[test]
fn a_timer_in_a_bucket_of_another_time_is_an_error() {
    // It would be settled in the wrong place, and be delivered again and again.
    for off in [2_000, -2_000] {
        let (mut store, disk) = new_on_disk();
        is_done(store.commit(1, &[insert(1, 64), insert(2, 64)]));
        drop(store);
        let moved = "UPDATE timers SET due = due + ?1 WHERE id = 2";
        connect(&disk).execute(moved, [off]).unwrap();
        is_indeterminate(load_of(&disk));
    }
}

#[test]
fn timers_out_of_order_are_an_error() {
    // The next load would begin before this one, and return the same rows.
    let (mut store, disk) = new_on_disk();
    let all: Vec<Op> = (1..40).map(|number| insert(number, 900)).collect();
    is_done(store.commit(1, &all));
    drop(store);
    assert_eq!(load_of(&disk).unwrap().len(), 39);
    let mut file = disk.read(FILE).unwrap();
    // The leaves of the table, recognised by their type and number of rows.
    let is_leaf = |page: &[u8]| page[0] == 10 && page[4] == 4;
    let leaves: Vec<usize> = (1..file.len() / 4_096)
        .map(|page| page * 4_096)
        .filter(|at| is_leaf(&file[*at..]))
        .collect();
    let (one, two) = (leaves[1], leaves[2]);
    let page = file[one..one + 4_096].to_vec();
    file.copy_within(two..two + 4_096, one);
    file[two..two + 4_096].copy_from_slice(&page);
    disk.put(Content::of([(FILE, file)]));
    is_indeterminate(load_of(&disk));
}

#[test]
fn a_row_that_cannot_be_moved_is_final() {
    // A column that has a value in each row is null.
    let (mut store, disk) = new_on_disk();
    let Op::Insert(row, _) = insert(1, 64) else {
        panic!("it is an insert");
    };
    let bucket = Level::Minute.bucket(row.due);
    is_done(store.commit(1, &[Op::Insert(row, bucket)]));
    drop(store);
    let change = |from: &str, to: &str| {
        let sql = "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = 'timers'";
        let other = connect(&disk);
        other.execute_batch("PRAGMA writable_schema = ON").unwrap();
        assert_eq!(other.execute(sql, (from, to)), Ok(1));
    };
    change("failures INTEGER NOT NULL", "failures INTEGER");
    let null = "UPDATE timers SET failures = NULL";
    assert_eq!(connect(&disk).execute(null, []), Ok(1));
    change("failures INTEGER", "failures INTEGER NOT NULL");
    let mut store = open(&disk).unwrap();
    store.begin().unwrap();
    let cascade = Op::Cascade {
        bucket,
        now: bucket.start(),
        limit: PageLimit::rows(10),
    };
    is_indeterminate(store.commit(1, &[cascade]));
}

#[test]
fn a_file_that_becomes_read_only_is_final() {
    // The header is damaged: no write succeeds, however often it is tried.
    let (mut store, disk) = new_on_disk();
    is_done(store.commit(1, &[insert(1, 64)]));
    drop(store);
    let mut file = disk.read(FILE).unwrap();
    // The version that a writer must support.
    assert_eq!(file[18], 2);
    file[18] = 3;
    disk.put(Content::of([(FILE, file)]));
    is_indeterminate(open(&disk).unwrap().begin());
}
