//! What does a reader see of a file, with and without a process that has it open?
//!
//! | file | question |
//! |---|---|
//! | `pages` | in which order are timers, handles and dead letters listed, page by page? |

mod pages;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use waterwheel_durable_core::store::{
    ArchiveCursor, Bucket, DeadLetters, Due, Handle, Id, Level, Op, PageLimit, Scope, Store,
};
use waterwheel_durable_sqlite::{
    Holder, OpenError, ReadError, Reader, Sizes, SqliteStore, VERSION,
};

use crate::folder::*;
use crate::rows::*;

const END: Due = Due::from_millis(i64::MAX);
const ALL: PageLimit = PageLimit::rows(usize::MAX);

#[test]
fn a_reader_counts_what_there_is_of_each_handler() {
    let (_folder, path, mut store, rows) = filled(2_000);
    let dead = DeadLetters::all(&mut store, Scope::All).unwrap();
    assert!(dead.len() > 20);
    let counts = Reader::open(&path).unwrap().count(NOW).unwrap();
    assert_eq!(counts.len(), HANDLERS.len());
    assert!(counts.is_sorted_by(|one, other| one.handler < other.handler));
    let mut levels = 0;
    for count in &counts {
        let own = || rows.iter().filter(|(row, _)| row.handler == count.handler);
        let due = || own().map(|(row, _)| row.due);
        for level in [Level::Second].into_iter().chain(Level::CASCADING) {
            let at = own().filter(|(_, bucket)| bucket.level == level).count();
            assert_eq!(count.at(level), at as u64, "{level:?} of {}", count.handler);
            levels += usize::from(at > 0);
        }
        assert_eq!(count.pending(), own().count() as u64);
        assert_eq!(
            count.overdue,
            due().filter(|due| *due <= NOW).count() as u64
        );
        let failed = own().filter(|(row, _)| row.failures > 0).count();
        assert!(failed > 0 && count.overdue > 0);
        assert_eq!(count.failed, failed as u64);
        assert_eq!(count.first, due().min());
        let dead = dead.iter().filter(|it| it.row.handler == count.handler);
        assert_eq!(count.dead, dead.count() as u64);
        let archived = store.archived(&count.handler, ArchiveCursor::START, i64::MAX, 9_999);
        let archived = archived.unwrap().len();
        assert!(archived > 0);
        assert_eq!(count.archived, archived as u64);
    }
    assert!(levels >= 4 * HANDLERS.len(), "{levels} levels have rows");
}

#[test]
fn a_timer_is_found_by_its_handle_and_by_its_id() {
    let (_folder, path, mut store, rows) = filled(500);
    let reader = Reader::open(&path).unwrap();
    let mut moved = 0;
    for (row, bucket) in &rows {
        let by_id = reader.search(row.id).unwrap().unwrap();
        assert_eq!((&by_id.row, by_id.bucket), (row, *bucket));
        assert_eq!(reader.find(&by_id.handle()).unwrap().unwrap(), by_id);
        // Wherever a timer has moved, the due time of its handle does not matter.
        if row.has_moved() {
            let due = Due::from_millis(5);
            let first = Handle {
                due,
                ..row.handle()
            };
            assert_eq!(reader.find(&first).unwrap(), Some(by_id));
            moved += 1;
        }
        let handler = "another".into();
        let other = Handle {
            handler,
            ..row.handle()
        };
        assert_eq!(reader.find(&other).unwrap(), None);
    }
    assert!(moved > 50);
    let dead = DeadLetters::all(&mut store, Scope::All).unwrap().remove(0);
    assert_eq!(reader.search(dead.row.id).unwrap(), None);
    assert_eq!(reader.find(&dead.row.handle()).unwrap(), None);
    assert_eq!(reader.search(Id::MAX).unwrap(), None);
}

#[test]
fn a_timer_is_found_by_its_key_by_the_store_and_beside_it() {
    let folder = Folder::new();
    for (name, fresh) in [("fresh", 10_000), ("runs", 16)] {
        let path = folder.file(name);
        let mut store = begun_as(&path, |options| {
            options.key_sizes = Sizes { fresh, step: 8 };
        });
        let rows = fill(&mut store, NOW, 2_000);
        let reader = Reader::open(&path).unwrap();
        // Looks at each step of a merge.
        for at in 0..20 {
            store.maintain().unwrap();
            let mut found = 0;
            for (row, bucket) in rows.iter().skip(at % 5).step_by(5) {
                let Some(key) = &row.key else { continue };
                let keyed = reader.find_key(&row.handler, key).unwrap().unwrap();
                let pending = keyed.pending.unwrap();
                assert_eq!((&pending.row, &pending.bucket), (row, bucket));
                let by_store = store.find(&row.handler, key).unwrap();
                assert_eq!(by_store, Some(keyed.handle.clone()));
                assert_eq!(keyed.handle.id, row.id);
                assert_eq!(reader.find(&keyed.handle).unwrap(), Some(pending));
                assert_eq!(reader.find_key("none", key).unwrap(), None);
                found += 1;
            }
            assert!(found > 50, "{found}");
        }
        // An archived timer keeps its key, and is no longer a timer.
        let mut kept = 0;
        for handler in HANDLERS {
            let archived = store.archived(handler, ArchiveCursor::START, i64::MAX, 9_999);
            for (_, archived) in archived.unwrap() {
                let Some(key) = archived.key else { continue };
                let keyed = reader.find_key(handler, &key).unwrap().unwrap();
                assert_eq!((keyed.handle.id, keyed.pending), (archived.id, None));
                assert_eq!(store.find(handler, &key).unwrap(), None);
                kept += 1;
            }
        }
        assert!(kept > 0);
        // A dead letter has freed its key.
        for dead in DeadLetters::all(&mut store, Scope::All).unwrap() {
            let key = dead.row.key.unwrap_or_default();
            assert_eq!(reader.find_key(&dead.row.handler, &key).unwrap(), None);
        }
    }
}

#[test]
fn a_far_timer_is_not_found_by_another_handlers_name() {
    let (_folder, path, mut store) = new_store();
    let far = row(1, "mail", 1_800_000_000_000);
    let bucket = Level::Day.bucket(far.due);
    let steps = [
        insert_second(row(2, "close", 1_800_000_000_000)),
        Op::Insert(far.clone(), bucket),
    ];
    store.commit(1, &steps).unwrap();
    let reader = Reader::open(&path).unwrap();
    let other = Handle {
        handler: "close".into(),
        ..far.handle()
    };
    assert_eq!(reader.find(&other).unwrap(), None);
    assert_eq!(reader.find(&far.handle()).unwrap().unwrap().row, far);
}

#[test]
fn a_file_is_read_beside_its_process_and_after_its_end() {
    if let Some(path) = Other::path() {
        // The other process: it has the file open, with everything in the WAL, until it is killed.
        let mut store = SqliteStore::open(path).unwrap();
        store.begin().unwrap();
        let steps = [
            insert_second(row(1, "mail", 5)),
            insert_second(row(2, "mail", 6)),
        ];
        store.commit(1, &steps).unwrap();
        Other::wait_for_the_end();
        return;
    }
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let mut other = Other::start(
        "reader::a_file_is_read_beside_its_process_and_after_its_end",
        &path,
    );
    let before = fs::read(&path).unwrap();
    let wal = fs::read(folder.file("timers.db-wal")).unwrap();
    let ids = |reader: &Reader| -> Vec<u64> {
        let page = reader
            .pending(&Scope::All, Reader::START, END, ALL)
            .unwrap();
        page.iter().map(|pending| pending.row.id.get()).collect()
    };
    let early = Reader::open(&path).unwrap();
    assert_eq!(early.holder(), Holder::Process(Some(other.id())));
    assert_eq!(ids(&early), [1 << 40 | 1, 1 << 40 | 2]);
    let extent = early.extent().unwrap();
    let lengths = (before.len() as u64, wal.len() as u64);
    assert_eq!((extent.bytes, extent.wal_bytes), lengths);
    assert_eq!((extent.epoch, extent.version), (1, VERSION));
    assert!(extent.wal_bytes > 0 && extent.used_bytes > extent.free_bytes);
    other.kill();
    assert_eq!(early.holder(), Holder::None);
    drop(early);
    let late = Reader::open(&path).unwrap();
    assert_eq!(late.holder(), Holder::None);
    assert_eq!(ids(&late), [1 << 40 | 1, 1 << 40 | 2]);
    drop(late);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read(folder.file("timers.db-wal")).unwrap(), wal);
}

#[test]
fn a_reader_of_a_file_that_was_closed_leaves_it_as_it_is() {
    let (folder, path, mut store) = new_store();
    insert_one(&mut store, 1, row(1, "mail", 5));
    drop(store);
    for name in ["timers.db-wal", "timers.db-shm", "timers.db-lock"] {
        fs::remove_file(folder.file(name)).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let reader = Reader::open(&path).unwrap();
    let page = reader.pending(&Scope::All, Reader::START, END, ALL);
    assert_eq!(page.unwrap().len(), 1);
    assert_eq!(reader.holder(), Holder::None);
    drop(reader);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!fs::exists(folder.file("timers.db-lock")).unwrap());
    // A reader does not keep a service from starting.
    let reader = Reader::open(&path).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    store.begin().unwrap();
    insert_one(&mut store, 1, row(2, "mail", 6));
    assert_eq!(reader.count(END).unwrap()[0].pending(), 2);
}

#[test]
fn a_store_opens_while_others_look_who_has_it() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    drop(SqliteStore::open(&path).unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let reader = Reader::open(&path).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    assert_ne!(reader.holder(), Holder::Unknown);
                }
            });
        }
        // A process that only looks may be delayed with its lock for longer than an opening waits.
        let opened = (0..100).map(|_| SqliteStore::open(&path));
        let refused: Vec<_> = opened.filter_map(Result::err).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(refused.len() < 10, "{refused:?}");
    });
}

#[test]
fn a_read_sees_one_commit_as_a_whole_or_not_at_all() {
    let (_folder, path, mut store) = new_store();
    let mut row = row(1, "mail", 5);
    store.commit(1, &[insert_second(row.clone())]).unwrap();
    let reader = Reader::open(&path).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each commit moves the timer from a near bucket to a far one, or back.
            for number in 2.. {
                let (due, level) = match number % 2 {
                    0 => (Due::from_millis(90_000_000_000), Level::Month),
                    _ => (Due::from_millis(5), Level::Second),
                };
                let step = Op::Reschedule(row.handle(), due, level.bucket(due));
                store.commit(number, &[step]).unwrap();
                store.maintain().unwrap();
                row.due = due;
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut seen = [0; 2];
        let is_one = loop {
            let page = reader
                .pending(&Scope::All, Reader::START, END, ALL)
                .unwrap();
            if page.len() != 1 || reader.count(END).unwrap()[0].pending() != 1 {
                break false;
            }
            seen[usize::from(page[0].bucket.level == Level::Month)] += 1;
            if seen[0].min(seen[1]) > 200 {
                break true;
            }
        };
        is_over.store(true, Ordering::Relaxed);
        assert!(is_one, "after {seen:?}");
    });
}

#[test]
fn what_is_no_file_of_a_store_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let missing = folder.file("missing/timers.db");
    assert!(matches!(Reader::open(missing), Err(OpenError::Io { .. })));
    let missing = folder.file("missing.db");
    let refused = Reader::open(&missing).unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused:?}");
    assert!(!fs::exists(&missing).unwrap());
    let refused = Reader::open(folder.file(".")).unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused:?}");

    let (empty, text) = (folder.file("empty"), folder.file("text"));
    fs::write(&empty, []).unwrap();
    assert!(matches!(Reader::open(&empty), Err(OpenError::Empty)));
    assert!(fs::read(&empty).unwrap().is_empty());
    fs::write(&text, "Dear diary, ".repeat(1_000)).unwrap();
    assert!(matches!(Reader::open(&text), Err(OpenError::NotADatabase)));

    let (other, newer) = (folder.file("other.db"), folder.file("newer.db"));
    execute(&other, "CREATE TABLE commands (id)");
    assert!(matches!(Reader::open(&other), Err(OpenError::NotOurs)));
    drop(SqliteStore::open(&newer).unwrap());
    execute(&newer, "PRAGMA user_version = 99");
    let refused = Reader::open(&newer).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 99 }));

    // The WAL is alone: the file was lost.
    let lost = folder.file("lost.db");
    fs::write(folder.file("lost.db-wal"), [7; 4_096]).unwrap();
    assert!(matches!(Reader::open(&lost), Err(OpenError::Corrupt(_))));
    assert!(!fs::exists(&lost).unwrap());
}

#[test]
fn a_damaged_file_is_read_or_refused_and_does_no_harm() {
    let (folder, path, store, rows) = filled(300);
    drop(store);
    let whole = fs::read(&path).unwrap();
    let damaged = folder.file("damaged.db");
    let (mut rng, mut refused, mut read) = (Rng::with_seed(11), 0, 0);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..5) {
            let limit = if rng.bool() { 4_096 } else { bytes.len() };
            let at = rng.usize(0..limit);
            let end = bytes.len().min(at + rng.usize(1..3_000));
            match rng.u32(0..3) {
                0 => bytes[at] ^= 1 << rng.u32(0..8),
                1 => bytes[at..end].fill(0),
                _ => rng.fill(&mut bytes[at..end]),
            }
        }
        fs::write(&damaged, &bytes).unwrap();
        let Ok(reader) = Reader::open(&damaged) else {
            refused += 1;
            continue;
        };
        let count = reader.count(NOW);
        let page = reader.pending(&Scope::All, Reader::START, END, ALL);
        let dead = reader.dead(&Scope::All, Id::NONE, ALL);
        let _: (Result<_, _>, Result<_, _>) = (reader.search(rows[0].0.id), reader.extent());
        match count.is_ok() && page.is_ok() && dead.is_ok() {
            true => read += 1,
            false => refused += 1,
        }
        drop(reader);
        assert!(fs::read(&damaged).unwrap() == bytes);
    }
    assert!(refused > 50 && read > 10, "{refused} refused, {read} read");
}

#[test]
fn a_timer_in_a_bucket_of_another_time_is_damage() {
    let (_folder, path, mut store) = new_store();
    let bucket = Bucket {
        level: Level::Hour,
        number: 7,
    };
    store
        .commit(1, &[Op::Insert(row(1, "mail", 5), bucket)])
        .unwrap();
    let reader = Reader::open(&path).unwrap();
    let page = reader.pending(&Scope::All, Reader::START, END, ALL);
    let error = page.unwrap_err();
    assert!(matches!(error, ReadError::Corrupt(_)), "{error:?}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("a bucket of another time"), "{source}");
}
