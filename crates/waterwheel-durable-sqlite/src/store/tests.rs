//! Refused steps, and the state that they leave.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rusqlite::StatementStatus;
use waterwheel_durable_core::store::{Due, PageLimit};

use std::fs;

use super::FRAME;
use super::*;
use crate::connection::is_empty;

fn store(name: &str) -> (SqliteStore, Folder) {
    store_as(name, &OpenOptions::DEFAULT)
}

fn store_as(name: &str, options: &OpenOptions<'_>) -> (SqliteStore, Folder) {
    let name = format!("waterwheel-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let mut store = SqliteStore::open_locked(&folder.join("timers.db"), options).unwrap();
    store.begin().unwrap();
    (store, Folder(folder))
}

/// A directory that is deleted with everything that a store has left in it.
struct Folder(PathBuf);

impl std::ops::Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _: io::Result<()> = fs::remove_dir_all(&self.0);
    }
}

fn insert(handler: &str, count: u64, payload: usize) -> Op {
    let due = Due::from_millis(5_000);
    let row = Row {
        key: Some(count.to_le_bytes().as_slice().into()),
        ..Row::new(Id::from_stored(count), due, handler, vec![1; payload])
    };
    Op::Insert(row, Level::Second.bucket(due))
}

fn ids(store: &mut SqliteStore, handler: &str) -> Vec<u64> {
    let rows = store
        .load(handler, RowCursor::START, i64::MAX, PageLimit::rows(100))
        .unwrap();
    rows.iter().map(|row| row.id.get()).collect()
}

#[test]
fn a_commit_that_finds_no_space_is_refused_and_leaves_nothing() {
    let (mut store, _folder) = store("full");
    store.commit(1, &[insert("a", 1, 64)]).unwrap();
    let pages = "PRAGMA max_page_count = 100";
    store.connection.query_row(pages, [], |_| Ok(())).unwrap();
    // These are not refused for lack of space, as an insert of a caller is.
    let steps = [
        insert("a", 2, 64),
        insert("new", 3, 64),
        insert("a", 4, 1 << 20),
    ]
    .map(|insert| Op::All(vec![insert]));
    for number in 2..5 {
        let error = store.commit(number, &steps).unwrap_err();
        assert!(error.is_definite(), "{error:?}");
        assert_eq!(ids(&mut store, "a"), [1]);
        assert_eq!(store.handlers().unwrap(), ["a".into()]);
    }
    // The number of the new handler is free again, and so are the keys.
    let outcomes = store.commit(5, &steps[..2]).unwrap();
    let inserted = Outcome::All(vec![Outcome::Inserted]);
    assert_eq!(outcomes, [inserted.clone(), inserted]);
    assert_eq!(ids(&mut store, "new"), [3]);
}

/// Commits behind the store's back, once per call, while there are commits left to do, and then reads.
fn read_after_a_commit(wal: &Path, at: u64, limit: usize) -> io::Result<Vec<u8>> {
    let take = |left: u32| left.checked_sub(1);
    if COMMITS_BESIDE.fetch_update(Relaxed, Relaxed, take).is_ok() {
        let file = wal.with_file_name("timers.db");
        let sql = "INSERT INTO commands (body, until) VALUES ('pause none', 0)";
        let other = Connection::open(file).unwrap();
        other.busy_timeout(Duration::from_secs(60)).unwrap();
        other.execute(sql, []).unwrap();
    }
    (OpenOptions::DEFAULT.files.read)(wal, at, limit)
}

static COMMITS_BESIDE: AtomicU32 = AtomicU32::new(0);

#[test]
fn a_commit_beside_the_store_is_not_taken_for_a_refused_one() {
    let (mut store, _folder) = store("beside");
    store.commit(1, &[insert("a", 1, 64)]).unwrap();
    store.files.read = read_after_a_commit;
    for commits in 0..6 {
        COMMITS_BESIDE.store(commits, Relaxed);
        store.is_gone().unwrap();
        assert_eq!(COMMITS_BESIDE.load(Relaxed), 0, "of {commits} commits");
    }
    // Frames beyond the WAL's length that no other connection has committed may be the refused commit.
    let wal = fs::read(wal_of(store.path())).unwrap();
    store.files.read = |wal, at, limit| {
        let bytes = (OpenOptions::DEFAULT.files.read)(wal, 0, usize::MAX)?;
        let last = bytes[bytes.len() - FRAME as usize..].to_vec();
        let all = [bytes, last].concat();
        let end = all.len().min(at as usize + limit);
        Ok(all[all.len().min(at as usize)..end].to_vec())
    };
    assert!(wal.len() as u64 % FRAME == 32 && !store.is_gone().unwrap_err().is_definite());
}

#[test]
fn a_busy_file_refuses_a_commit() {
    let (mut store, _folder) = store("busy");
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The wait is not long: this is in milliseconds.
    let waits = store
        .connection
        .query_row("PRAGMA busy_timeout", [], |row| row.get(0));
    assert_eq!(waits, Ok(50));
    let error = store.commit(1, &[insert("a", 1, 64)]).unwrap_err();
    assert!(error.is_definite(), "{error:?}");
    other.execute_batch("ROLLBACK").unwrap();
    store.commit(2, &[insert("a", 1, 64)]).unwrap();
    assert_eq!(ids(&mut store, "a"), [1]);
}

#[test]
fn a_reader_of_the_older_journal_refuses_a_commit_until_it_ends() {
    // If the file system cannot share memory, the WAL is not used, and a commit waits for readers.
    let (mut store, _folder) = store("journal");
    // 3 is `EXTRA`: a commit deletes this journal and syncs that.
    let synchronous = "PRAGMA synchronous";
    let synchronous = store
        .connection
        .query_row(synchronous, [], |row| row.get(0));
    assert_eq!(synchronous, Ok(3));
    for full in ["fullfsync", "checkpoint_fullfsync"] {
        let is_on = format!("PRAGMA {full}");
        let is_on = store.connection.query_row(&is_on, [], |row| row.get(0));
        assert_eq!(is_on, Ok(1), "{full}");
    }
    store.commit(1, &[insert("a", 1, 64)]).unwrap();
    store
        .connection
        .pragma_update(None, "journal_mode", "DELETE")
        .unwrap();
    store.connection.busy_timeout(Duration::ZERO).unwrap();
    let other = Connection::open(store.path()).unwrap();
    let read = "SELECT count(*) FROM timers";
    other.execute_batch("BEGIN").unwrap();
    other.query_row(read, [], |_| Ok(())).unwrap();
    // The connection is busy at `COMMIT`, not before.
    store
        .connection
        .execute_batch("BEGIN IMMEDIATE; ROLLBACK")
        .unwrap();
    for number in 2..4 {
        let error = store.commit(number, &[insert("b", 2, 64)]).unwrap_err();
        assert!(error.is_definite(), "{error:?}");
    }
    assert!(ids(&mut store, "b").is_empty());
    other.execute_batch("COMMIT").unwrap();
    store.commit(4, &[insert("b", 2, 64)]).unwrap();
    assert_eq!(ids(&mut store, "b"), [2]);
}

#[test]
fn a_damaged_page_makes_the_store_fail_for_good() {
    let (mut store, folder) = store("damage");
    store.commit(1, &[insert("a", 1, 64)]).unwrap();
    drop(store);
    let path = folder.join("timers.db");
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'timers'";
    let root: u32 = Connection::open(&path)
        .unwrap()
        .query_row(root, [], |row| row.get(0))
        .unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    store.begin().unwrap();
    let root = root as usize;
    // This happens behind the store's back. The page is read again, because the cache is emptied.
    let mut bytes = fs::read(&path).unwrap();
    bytes[(root - 1) * 4096..root * 4096].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    store.connection.release_memory().unwrap();
    let error = store.commit(1, &[insert("a", 2, 64)]).unwrap_err();
    assert!(!error.is_definite(), "{error:?}");
    let error = store.commit(2, &[]).unwrap_err();
    assert!(!error.is_definite(), "{error:?}");
}

#[test]
fn each_read_is_a_seek_in_the_primary_key() {
    let (store, _folder) = store("plans");
    for sql in [read::LOAD, read::FIRST, read::DEAD, read::AT, read::TAGGED] {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut plan = store.connection.prepare(&sql).unwrap();
        let values = plan.parameter_count();
        let values = rusqlite::params_from_iter((0..values).map(|_| 1));
        let lines: Vec<String> = plan
            .query_map(values, |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let is_seek =
            lines.len() == 1 && lines[0].starts_with("SEARCH") && lines[0].contains("PRIMARY KEY");
        assert!(is_seek, "{lines:?}");
        println!("{lines:?}");
    }
}

#[test]
fn a_read_is_prepared_once() {
    let (mut store, _folder) = store("prepared");
    let steps: Vec<_> = (1..=20).map(|id| insert("a", id, 64)).collect();
    store.commit(1, &steps).unwrap();
    for limit in 2..10 {
        let rows = store.load("a", RowCursor::START, i64::MAX, PageLimit::rows(limit));
        assert_eq!(rows.unwrap().len(), limit);
        let second = store.first_second("a", -i64::try_from(limit).unwrap());
        assert_eq!(second.unwrap(), Some(5));
    }
    for sql in [read::LOAD, read::FIRST] {
        let statement = store.connection.prepare_cached(sql).unwrap();
        let status = |of| statement.get_status(of);
        let (runs, again) = (
            status(StatementStatus::Run),
            status(StatementStatus::RePrepare),
        );
        assert_eq!((runs, again), (8, 0), "{sql}");
    }
}

#[test]
fn a_step_that_breaks_a_rule_of_the_tables_is_final() {
    let (mut store, folder) = store("constraint");
    let refuse = "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.timers WHEN new.id = 3
        BEGIN SELECT RAISE(ABORT, 'three is refused'); END";
    store.connection.execute_batch(refuse).unwrap();
    let steps = [insert("a", 1, 64), insert("a", 2, 64), insert("a", 3, 64)];
    let error = store.commit(1, &steps).unwrap_err();
    assert!(!error.is_definite(), "{error:?}");
    let error = store.commit(2, &steps[1..2]).unwrap_err();
    assert!(!error.is_definite(), "{error:?}");
    drop(store);
    // The steps before it were rolled back.
    let mut store = SqliteStore::open(folder.join("timers.db")).unwrap();
    assert!(ids(&mut store, "a").is_empty());
}

/// A store whose WAL has 400 pages, because another connection reads. With this many, it is far longer than usual.
fn with_a_long_wal(name: &str, checkpointer_wal: i64) -> (SqliteStore, Folder, Connection) {
    let options = OpenOptions {
        long_wal: 8,
        checkpointer_wal,
        full: Duration::from_secs(3_600),
        ..OpenOptions::DEFAULT
    };
    let (mut store, folder) = store_as(name, &options);
    store.commit(1, &[insert("a", 1, 64)]).unwrap();
    store.maintain().unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN").unwrap();
    let read = "SELECT count(*) FROM timers";
    other.query_row(read, [], |_| Ok(())).unwrap();
    let mut number = 1;
    while store.wal().unwrap().left() < 400 {
        number += 1;
        store
            .commit(number, &[insert("a", number, 40_000)])
            .unwrap();
    }
    (store, folder, other)
}

/// Commits, as a service does, until all of the WAL but the last commits is in the file. Returns how often it was copied while commits continued.
fn commits_until_copied(store: &mut SqliteStore) -> u32 {
    let begun = std::time::Instant::now();
    let mut number = store.last.as_ref().unwrap().0;
    let mut passes = 0;
    loop {
        number += 1;
        store.commit(number, &[insert("a", number, 64)]).unwrap();
        let was_under_way = store.checkpointer.is_under_way();
        store.maintain().unwrap();
        passes += u32::from(store.checkpointer.is_under_way() && !was_under_way);
        let is_under_way = store.checkpointer.is_under_way();
        if store.wal().unwrap().left() < 50 && !is_under_way {
            return passes;
        }
        assert!(begun.elapsed().as_secs() < 60, "{:?}", store.wal());
    }
}

#[test]
fn a_wal_that_is_far_too_long_is_copied_beside_commits() {
    let (mut store, folder, other) = with_a_long_wal("far", 100);
    // A reader keeps both from copying it.
    for _ in 0..3 {
        store.maintain().unwrap();
        store.checkpointer.wait().unwrap();
        assert!(store.wal().unwrap().left() >= 400);
    }
    other.execute_batch("COMMIT").unwrap();
    assert!(commits_until_copied(&mut store) > 0);
    // The WAL is restarted.
    let number = store.last.as_ref().unwrap().0;
    for number in number + 1..number + 20 {
        store.commit(number, &[insert("a", number, 64)]).unwrap();
        store.maintain().unwrap();
    }
    let wal = store.wal().unwrap();
    assert!(wal.all < 100, "{wal:?}");
    // A WAL of the usual length is not left to another thread.
    assert!(!store.checkpointer.is_under_way());
    drop((other, store));
    assert!(is_empty(&wal_of(&folder.join("timers.db"))).unwrap());
    expect_whole(&folder, number + 19);
}

/// Expects all committed timers once each, on intact pages.
fn expect_whole(folder: &Path, timers: u64) {
    let file = Connection::open(folder.join("timers.db")).unwrap();
    let query = |sql: &str| file.query_row(sql, [], |row| row.get::<_, String>(0));
    assert_eq!(query("PRAGMA integrity_check").unwrap(), "ok");
    let count = query("SELECT count(*) || ' to ' || max(id) FROM timers").unwrap();
    assert_eq!(count, format!("{timers} to {timers}"));
}

/// Makes a pass fail with this error.
fn fail_a_pass(store: &mut SqliteStore, code: std::ffi::c_int) {
    store.checkpointer.stand_in(move |_| {
        let error = rusqlite::ffi::Error::new(code);
        Err(rusqlite::Error::SqliteFailure(error, None))
    });
    while !store.checkpointer.has_ended() {
        std::thread::yield_now();
    }
}

#[test]
fn a_wal_that_another_thread_cannot_copy_fails_the_store() {
    type Ask = fn(&mut SqliteStore) -> Result<(), StoreError>;
    let calls: [Ask; 4] = [
        |store| store.commit(1_000, &[]).map(drop),
        |store| store.maintain(),
        |store| store.commands().map(drop),
        |store| store.begin().map(drop),
    ];
    for call in calls {
        let (mut store, folder, other) = with_a_long_wal("unsynced", 1_000);
        other.execute_batch("COMMIT").unwrap();
        let command = "INSERT INTO commands (body, until) VALUES ('pause none', 1 << 60)";
        other.execute(command, []).unwrap();
        fail_a_pass(&mut store, rusqlite::ffi::SQLITE_IOERR_FSYNC);
        let left = files(&folder);
        let error = call(&mut store).unwrap_err();
        assert!(!error.is_definite(), "{error:?}");
        assert!(!store.commit(10_000, &[]).unwrap_err().is_definite());
        assert!(!store.maintain().unwrap_err().is_definite());
        drop(store);
        // Nothing was written or copied.
        assert!(files(&folder) == left);
        drop(other);
    }
}

#[test]
fn a_store_that_ends_copies_nothing_after_a_failed_pass() {
    for (code, copies) in [
        (rusqlite::ffi::SQLITE_IOERR_FSYNC, false),
        (rusqlite::ffi::SQLITE_NOMEM, true),
    ] {
        let (mut store, folder, other) = with_a_long_wal("ends-first", 1_000);
        other.execute_batch("COMMIT").unwrap();
        fail_a_pass(&mut store, code);
        let left = files(&folder);
        drop(store);
        assert_eq!(files(&folder) != left, copies);
        drop(other);
    }
}

/// The contents of the file and its WAL.
fn files(folder: &Path) -> [Vec<u8>; 2] {
    ["timers.db", "timers.db-wal"].map(|name| fs::read(folder.join(name)).unwrap())
}

#[test]
fn a_wal_that_finds_no_space_is_copied_by_the_store_itself() {
    for commits in [false, true] {
        let (mut store, folder, other) = with_a_long_wal("no-space", 100);
        other.execute_batch("COMMIT").unwrap();
        let reserve = folder.join("timers.db-reserve");
        assert!(reserve.exists());
        fail_a_pass(&mut store, rusqlite::ffi::SQLITE_FULL);
        if commits {
            store.commit(1_000, &[]).unwrap();
        }
        store.maintain().unwrap();
        // A commit leaves it to the store's own copy to find that there is no space, and here there is some.
        assert_eq!(reserve.exists(), commits);
        assert!(!store.checkpointer.is_under_way());
        assert_eq!(store.wal().unwrap().left(), 0);
        drop((store, other));
    }
}

#[test]
fn a_pass_that_fails_for_now_refuses_no_commit() {
    for code in [
        rusqlite::ffi::SQLITE_NOMEM,
        rusqlite::ffi::SQLITE_BUSY,
        rusqlite::ffi::SQLITE_FULL,
    ] {
        let (mut store, _folder, other) = with_a_long_wal("for-now", 100);
        other.execute_batch("COMMIT").unwrap();
        fail_a_pass(&mut store, code);
        store.commit(1_000, &[]).unwrap();
        // The store copies this WAL itself.
        store.maintain().unwrap();
        assert!(!store.checkpointer.is_under_way());
        assert_eq!(store.wal().unwrap().left(), 0);
        drop((store, other));
    }
}

#[test]
fn a_store_ends_soon_and_leaves_a_wal_that_is_far_too_long() {
    let (mut store, folder, other) = with_a_long_wal("ends-soon", 100);
    other.execute_batch("COMMIT").unwrap();
    let timers = store.last.as_ref().unwrap().0;
    let (ended, has_ended) = std::sync::mpsc::channel();
    store.checkpointer.stand_in(move |interrupt| {
        let connection = Connection::open_in_memory().unwrap();
        assert!(interrupt.set(connection.get_interrupt_handle()).is_ok());
        // The pass lasts for minutes.
        let long =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000000)
            SELECT count(*) FROM n";
        let counted = connection.query_row(long, [], |_| Ok(()));
        ended.send(counted.is_err()).unwrap();
        counted
    });
    drop(store);
    assert_eq!(has_ended.try_recv(), Ok(true));
    assert!(!is_empty(&wal_of(&folder.join("timers.db"))).unwrap());
    // The next store copies it.
    let options = OpenOptions {
        long_wal: 8,
        checkpointer_wal: 100,
        ..OpenOptions::DEFAULT
    };
    let mut store = SqliteStore::open_locked(&folder.join("timers.db"), &options).unwrap();
    // This is the last connection but one: SQLite itself copies the WAL when the last one closes.
    drop(other);
    store.begin().unwrap();
    store.maintain().unwrap();
    assert!(store.checkpointer.is_under_way());
    store.checkpointer.wait().unwrap();
    assert_eq!(store.wal().unwrap().left(), 0);
    drop(store);
    expect_whole(&folder, timers);
}

#[test]
fn a_store_ends_after_the_thread_that_copies_its_wal() {
    let (mut store, _folder) = store("ends");
    let has_ended = Arc::new(AtomicU32::new(0));
    let ended = Arc::clone(&has_ended);
    store.checkpointer.stand_in(move |_| {
        std::thread::sleep(Duration::from_millis(100));
        ended.store(1, Relaxed);
        Ok(())
    });
    drop(store);
    assert_eq!(has_ended.load(Relaxed), 1);
}
