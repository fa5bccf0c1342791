//! What does a store report when its disk fails, and what is left afterwards?

use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::conformance::all;
use waterwheel_durable_core::store::{
    Due, Id, Level, Op, Outcome, PageLimit, RowCursor, Scope, Store, StoreError,
};
use waterwheel_durable_faults::{Call, Chance, Choice, Content, Disk, Each, Fault, Kind, Moment};
use waterwheel_durable_sqlite::{Sizes, SqliteStore};

use crate::faulty_disk::*;

#[test]
fn a_store_on_the_disk_of_the_tests_passes_all_cases() {
    all(|| Box::new(open(&disk()).unwrap())).expect_all();
}

/// A store with the timers 1 to 3, and its disk.
fn begun(long_wal: i64) -> (SqliteStore, Disk) {
    let disk = disk();
    let store = open_with(&disk, long_wal).unwrap();
    (with_three(store), disk)
}

/// A store with the timers 1 to 3 and without a reserve, and its disk.
fn begun_bare(long_wal: i64) -> (SqliteStore, Disk) {
    let disk = disk();
    let store = open_bare(&disk, long_wal).unwrap();
    (with_three(store), disk)
}

fn with_three(mut store: SqliteStore) -> SqliteStore {
    store.begin().unwrap();
    for number in 1..=3 {
        is_done(store.commit(number, &[insert(number, 64)]));
    }
    store
}

/// Expects each of these states after a power cut, and no other.
fn expect_left(content: &Content, expected: &[&[u64]]) {
    let other = disk();
    let mut found = vec![false; expected.len()];
    let mut restart = |choice: &mut dyn Choice| {
        other.put(content.clone());
        other.restart(choice);
        let left = left(&other);
        let at = expected.iter().position(|expected| *expected == left);
        found[at.unwrap_or_else(|| panic!("{left:?} is left"))] = true;
    };
    // Tries all combinations of whole pages, if there are not too many, and some of the others.
    let mut each = Each::new(4_096);
    for _ in 0..200 {
        restart(&mut each);
        if !each.advance() {
            break;
        }
    }
    for seed in 0..60 {
        restart(&mut Chance::new(&mut Rng::with_seed(seed), other.calls()));
    }
    assert!(
        found.iter().all(|found| *found),
        "{found:?} of {expected:?}"
    );
}

#[test]
fn a_failed_sync_of_a_commit_is_final() {
    for fault in [Fault::Error, Fault::Dropped] {
        let (mut store, disk) = begun(1_000);
        disk.fail(Moment::next(Call::Sync, Kind::Wal), fault);
        is_indeterminate(store.commit(4, &[insert(4, 64)]));
        disk.mend();
        let before = changes(&disk);
        // Tries the same commit, another one, and a shutdown.
        is_indeterminate(store.commit(4, &[insert(4, 64)]));
        is_indeterminate(store.commit(5, &[insert(5, 64)]));
        is_indeterminate(store.begin());
        drop(store);
        assert_eq!(changes(&disk), before, "after {fault:?}");
        match fault {
            Fault::Error => expect_left(&disk.content(), &[&[1, 2, 3], &[1, 2, 3, 4]]),
            _ => expect_left(&disk.content(), &[&[1, 2, 3]]),
        }
    }
}

#[test]
fn a_failed_sync_of_a_checkpoint_is_final_and_loses_nothing() {
    for (kind, fault) in [
        (Kind::Main, Fault::Error),
        (Kind::Main, Fault::Dropped),
        (Kind::Wal, Fault::Error),
    ] {
        let (mut store, disk) = begun(12);
        let mut number = 4;
        // The first sync of the WAL is that of the commit, and the second that of the checkpoint.
        let after = u64::from(kind == Kind::Wal);
        let before = loop {
            disk.fail(after_calls(after, Call::Sync, kind), fault);
            let main = disk.count(Call::Write, Kind::Main);
            let syncs = disk.count(Call::Sync, kind);
            // The commit is durable, whatever happens to the checkpoint.
            is_done(store.commit(number, &[insert(number, 64)]));
            let maintained = store.maintain();
            let has_failed = match kind {
                Kind::Main => disk.count(Call::Write, Kind::Main) > main,
                _ => disk.count(Call::Sync, kind) > syncs + 1,
            };
            if has_failed {
                is_indeterminate(maintained);
                break changes(&disk);
            }
            maintained.unwrap();
            number += 1;
        };
        disk.mend();
        is_indeterminate(store.maintain());
        is_indeterminate(store.commit(number + 1, &[insert(number + 1, 64)]));
        drop(store);
        assert_eq!(changes(&disk), before, "after {kind:?} {fault:?}");
        let all: Vec<u64> = (1..=number).collect();
        expect_left(&disk.content(), &[&all]);
    }
}

#[test]
fn a_full_disk_refuses_a_commit_that_never_comes_back() {
    let (mut store, disk) = begun_bare(1_000);
    let steps = [kept(4, 3_000), kept(5, 3_000), kept(6, 64)];
    let used = disk.used();
    let mut number = 4;
    let mut refused = 0;
    // There is room for each part of it, down to some bytes of a frame.
    for room in (0..).step_by(611) {
        disk.limit(used + room);
        let committed = store.commit(number, &steps);
        if committed.is_ok() {
            break;
        }
        is_definite(committed);
        refused += 1;
        number += 1;
        expect_left(&disk.content(), &[&[1, 2, 3]]);
        // The store continues as soon as there is room for something, and reads meanwhile.
        assert_eq!(numbers(&mut store), [1, 2, 3]);
    }
    assert!(refused > 8, "{refused} commits were refused");
    disk.mend();
    is_done(store.commit(number + 1, &[kept(7, 64)]));
    expect_left(&disk.content(), &[&[1, 2, 3, 4, 5, 6, 7]]);
}

#[test]
fn no_space_in_a_used_wal_is_definite_if_nothing_is_left() {
    // A copy-on-write file system also has no space to overwrite. The remains of an old frame can equal the refused frame.
    let (mut definite, mut indeterminate, mut is_back) = (0, 0, false);
    for payload in [10, 900] {
        let (used, all) = used_wal(payload);
        for after in 0..6 {
            for written in [0, 1, 24, 512, 2_048, 3_000, 4_000, 4_095] {
                let disk = disk_of(used.clone());
                let mut store = open_bare(&disk, 1_000).unwrap();
                disk.fail(
                    after_calls(after, Call::Write, Kind::Wal),
                    Fault::NoSpace(written),
                );
                let Err(error) = store.commit(1, &[kept(100, payload), kept(101, payload)]) else {
                    continue;
                };
                disk.mend();
                let content = disk.content();
                if error.is_definite() {
                    definite += 1;
                    expect_left(&content, &[&all]);
                    is_done(store.commit(2, &[kept(102, payload)]));
                } else {
                    indeterminate += 1;
                    is_back |= left(&disk_of(content)).contains(&100);
                    is_indeterminate(store.commit(2, &[kept(102, payload)]));
                }
            }
        }
    }
    println!("{definite} were definite and {indeterminate} were not");
    assert!(definite > 40 && indeterminate > 0 && is_back);
}

/// A disk whose WAL has old frames after the valid ones, and its timers.
fn used_wal(payload: usize) -> (Content, Vec<u64>) {
    let (mut store, disk) = begun_bare(8);
    for number in 4..40 {
        does(&mut store, number, &[insert(number, payload)]);
    }
    let content = disk.content();
    drop(store);
    (content, (1..40).collect())
}

#[test]
fn a_write_that_fails_in_a_commit_is_final() {
    for after in 0..2 {
        let (mut store, disk) = begun(1_000);
        disk.fail(after_calls(after, Call::Write, Kind::Wal), Fault::Error);
        is_indeterminate(store.commit(4, &[insert(4, 64)]));
        disk.mend();
        let before = changes(&disk);
        is_indeterminate(store.commit(5, &[insert(5, 64)]));
        drop(store);
        assert_eq!(changes(&disk), before);
        expect_left(&disk.content(), &[&[1, 2, 3]]);
    }
}

#[test]
fn a_commit_larger_than_memory_that_finds_no_space_is_definite() {
    let (mut store, disk) = begun_bare(1_000);
    let megabyte = 1 << 20;
    let large: Vec<_> = (10..34).map(|number| kept(number, megabyte)).collect();
    let writes = disk.count(Call::Write, Kind::Wal);
    disk.limit(disk.used() + 3 * megabyte);
    is_definite(store.commit(4, &large));
    let writes = disk.count(Call::Write, Kind::Wal) - writes;
    assert!(writes > 700, "it was written in parts: {writes} writes");
    assert_eq!(numbers(&mut store), [1, 2, 3]);
    let refused = disk.content();
    assert_eq!(left(&disk_of(refused)), [1, 2, 3]);
    disk.mend();
    is_done(store.commit(5, &[kept(4, 64)]));
    assert_eq!(left(&disk_of(disk.content())), [1, 2, 3, 4]);
}

#[test]
fn a_checkpoint_without_space_is_made_up_for_later() {
    let (mut store, disk) = begun_bare(8);
    let mut number = 4;
    // There is room for the WAL, which is used again and again, but not for the file.
    let wal = disk.read(WAL).unwrap().len();
    disk.fail(Moment::next(Call::Write, Kind::Main), Fault::NoSpace(0));
    while disk.read(WAL).unwrap().len() < 10 * wal {
        is_done(store.commit(number, &[kept(number, 900)]));
        if let Err(error) = store.maintain() {
            assert!(error.is_definite(), "{error:?}");
        }
        number += 1;
    }
    let main = disk.read(FILE).unwrap().len();
    disk.mend();
    does(&mut store, number, &[kept(number, 900)]);
    assert!(disk.read(FILE).unwrap().len() > main, "it was copied");
    let all: Vec<u64> = (1..=number).collect();
    expect_left(&disk.content(), &[&all]);
}

#[test]
fn a_refused_commit_finds_the_space_of_the_wal() {
    // The file has enough room, but the WAL takes it: some commits write the same pages again and again.
    let (store, disk) = begun_bare(1_000);
    drop(store);
    let mut store = open_bare(&disk, 1_000).unwrap();
    store.begin().unwrap();
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    for _ in 0..20 {
        does(&mut store, next(), &[kept(4, 64)]);
    }
    let wal = disk.read(WAL).unwrap().len();
    disk.limit(disk.used());
    let before = disk.count(Call::Write, Kind::Main);
    is_definite(store.commit(next(), &[kept(5, 64)]));
    assert_eq!(disk.count(Call::Write, Kind::Main), before);
    store.maintain().unwrap();
    does(&mut store, next(), &[kept(5, 64)]);
    assert_eq!(disk.read(WAL).unwrap().len(), wal);
    expect_left(&disk.content(), &[&[1, 2, 3, 4, 5]]);
}

#[test]
fn an_answer_does_not_wait_for_the_copy_of_the_wal() {
    let (mut store, disk) = begun(8);
    let main = disk.count(Call::Write, Kind::Main);
    for number in 4..40 {
        is_done(store.commit(number, &[insert(number, 900)]));
    }
    assert_eq!(disk.count(Call::Write, Kind::Main), main);
    store.maintain().unwrap();
    assert!(disk.count(Call::Write, Kind::Main) > main);
}

/// A store that writes 8 keys as a run in its next maintenance, or merges runs if there are four already.
fn keyed(runs: u64) -> (SqliteStore, Disk) {
    let disk = disk();
    let mut store = open_keyed(&disk);
    store.begin().unwrap();
    for number in 1..=runs * 8 {
        is_done(store.commit(number, &[keyed_insert(number, number)]));
        if number < runs * 8 {
            store.maintain().unwrap();
        }
    }
    (store, disk)
}

fn open_keyed(disk: &Disk) -> SqliteStore {
    let opened = open_as(disk, |options| {
        options.key_sizes = Sizes { fresh: 8, step: 1 };
        options.full = Duration::ZERO;
    });
    opened.unwrap()
}

fn keyed_insert(number: u64, key: u64) -> Op {
    let Op::Insert(mut row, bucket) = insert(number, 64) else {
        unreachable!();
    };
    row.key = Some(key.to_le_bytes().as_slice().into());
    Op::Insert(row, bucket)
}

/// Expects that the keys from 1 to `last` are taken, and the next one is free.
fn expect_keys(store: &mut SqliteStore, commit: u64, last: u64) {
    let steps: Vec<_> = (1..=last + 1)
        .map(|key| keyed_insert(if key > last { key } else { 1_000 + key }, key))
        .collect();
    let outcomes = store.commit(commit, &steps).unwrap();
    for (key, outcome) in (1..).zip(&outcomes[..last as usize]) {
        let is_held = matches!(outcome, Outcome::Exists(holder) if holder.id.get() == key);
        assert!(is_held, "key {key}: {outcome:?}");
    }
    assert_eq!(outcomes.last(), Some(&Outcome::Inserted));
}

#[test]
fn keys_that_find_no_space_to_be_ordered_stay_taken() {
    for runs in [1, 4] {
        let mut refused = 0;
        for after in 0.. {
            let (mut store, disk) = keyed(runs);
            disk.fail(
                after_calls(after, Call::Write, Kind::Wal),
                Fault::NoSpace(100),
            );
            let maintained = store.maintain();
            disk.mend();
            if maintained.is_ok() {
                break;
            }
            is_definite(maintained);
            // The reserve is for urgent writes.
            assert!(disk.read(RESERVE).is_some());
            refused += 1;
            expect_keys(&mut store, runs * 8 + 1, runs * 8);
            for _ in 0..9 {
                store.maintain().unwrap();
            }
            expect_keys(&mut store, runs * 8 + 2, runs * 8 + 1);
        }
        println!("{refused} writes were refused");
        assert!(refused > 3);
    }
}

#[test]
fn a_failed_sync_as_keys_are_ordered_is_final() {
    for runs in [1, 4] {
        let (mut store, disk) = keyed(runs);
        disk.fail(Moment::next(Call::Sync, Kind::Wal), Fault::Error);
        is_indeterminate(store.maintain());
        disk.mend();
        let before = changes(&disk);
        is_indeterminate(store.commit(99, &[insert(99, 64)]));
        drop(store);
        assert_eq!(changes(&disk), before);
        let content = disk.content();
        for seed in 0..40 {
            disk.put(content.clone());
            disk.restart(&mut Chance::new(&mut Rng::with_seed(seed), disk.calls()));
            let mut store = open_keyed(&disk);
            store.begin().unwrap();
            expect_keys(&mut store, 1, runs * 8);
        }
    }
}

#[test]
fn a_read_that_fails_is_final() {
    let reads: [fn(&mut dyn Store) -> bool; 5] = [
        |store| is_final(store.load("mail", RowCursor::START, i64::MAX, PageLimit::rows(10))),
        |store| is_final(store.first_second("mail", 60)),
        |store| is_final(store.first_bucket(Level::Day)),
        |store| is_final(store.dead(Scope::All, Id::NONE, PageLimit::rows(10))),
        |store| is_final(store.find("mail", b"key")),
    ];
    let (mut store, disk) = begun(1_000);
    let mut keyed = row(80, 900);
    keyed.key = Some((*b"key").into());
    let all = (4..80).map(|number| insert(number, 900));
    let keyed = Op::Insert(keyed.clone(), Level::Second.bucket(keyed.due));
    is_done(store.commit(4, &all.chain([keyed]).collect::<Vec<_>>()));
    let rows = store
        .load("mail", RowCursor::START, i64::MAX, PageLimit::rows(40))
        .unwrap();
    let dead = |row| Op::Bury {
        row,
        at: Due::from_millis(0),
        error: "no".into(),
    };
    is_done(store.commit(5, &rows.into_iter().map(dead).collect::<Vec<_>>()));
    let content = disk.content();
    for read in reads {
        disk.put(content.clone());
        // A newly opened store does not have all pages in memory.
        let mut store = open(&disk).unwrap();
        store.begin().unwrap();
        let moment = Moment {
            call: Some(Call::Read),
            kind: None,
            after: 0,
        };
        disk.fail(moment, Fault::Error);
        assert!(read(&mut store));
        disk.mend();
        is_indeterminate(store.commit(1, &[insert(4, 64)]));
    }
}

/// Whether a read has failed. The error must then not be definite.
fn is_final<T>(read: Result<T, StoreError>) -> bool {
    match read {
        Ok(_) => false,
        Err(error) => !error.is_definite(),
    }
}

#[test]
fn an_opening_that_fails_anywhere_loses_nothing() {
    let with_wal = begun(1_000).1.content();
    let at_rest = {
        let (store, disk) = begun(1_000);
        drop(store);
        disk.content()
    };
    for (before, expected) in [
        (Content::default(), Vec::new()),
        (with_wal, vec![1, 2, 3]),
        (at_rest, vec![1, 2, 3]),
    ] {
        let mut failed = 0;
        for after in 0.. {
            let faults = [Fault::Error, Fault::NoSpace(0), Fault::NoSpace(100)];
            let refused = faults.map(|fault| {
                let disk = disk_of(before.clone());
                disk.fail(any_call(after), fault);
                let refused = open(&disk).err();
                disk.mend();
                assert_eq!(left(&disk), expected, "after {refused:?}");
                refused.is_some()
            });
            if refused == [false; 3] {
                break;
            }
            failed += 1;
        }
        println!("it failed in {failed} places");
        assert!(failed >= 5, "it failed in {failed} places");
    }
}
