//! A real file system that is full. Where users may have no namespaces, none can be mounted, and only `space` and `waterwheel-chaos` are left.
#![cfg(target_os = "linux")]

mod folder;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use folder::Folder;
use waterwheel_store::{Due, Id, Level, Op, Outcome, Row, Store};
use waterwheel_store_sqlite::{OpenError, SqliteStore, Trial};

const MOUNTED: &str = "WATERWHEEL_MOUNTED";
const MOUNT: &str = "mount -t tmpfs -o size=8m tmpfs \"$0\"";

/// The folder of a file system of 8 MiB, in a process of its own. `None` in the other one, which has waited for it.
fn on_a_small_disk(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(MOUNTED) {
        return Some(folder.into());
    }
    let folder = Folder::new(test);
    let point = folder.file("");
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(&point);
        command
    };
    let probe = shell(MOUNT).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("not tried: no file system can be mounted here");
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let mut again = shell(&format!("{MOUNT} && exec \"$@\""));
    again.arg(program).args(["--exact", "--nocapture", test]);
    assert!(again.env(MOUNTED, &point).status().unwrap().success());
    None
}

fn fill(folder: &Path) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(folder.join("foreign"))
        .unwrap();
    for size in [65_536, 4_096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

fn row(number: u64) -> Row {
    Row {
        id: Id::from_stored(number),
        due: Due::from_millis(number.cast_signed() * 1_000),
        handler: "mail".into(),
        failures: 0,
        starts: 0,
        has_moved: false,
        key: None,
        payload: [7; 200].into(),
    }
}

fn insert(number: u64) -> Op {
    let row = row(number);
    let bucket = Level::Second.bucket(row.due);
    Op::Insert(row, bucket)
}

/// A file with 100 timers, which is closed.
fn closed(path: &Path) {
    let mut store = SqliteStore::open(path).unwrap();
    store.begin().unwrap();
    let inserts: Vec<_> = (1..=100).map(insert).collect();
    store.commit(1, &inserts).unwrap();
    store.tend().unwrap();
}

#[test]
fn a_store_opens_settles_and_recovers_on_a_full_file_system() {
    let test = "a_store_opens_settles_and_recovers_on_a_full_file_system";
    let Some(folder) = on_a_small_disk(test) else {
        return;
    };
    let path = folder.join("timers.db");
    closed(&path);
    // The index of the log is made again by each first opening. Another process has taken the space of it, and of the number in the lock file.
    fs::remove_file(folder.join("timers.db-shm")).unwrap();
    fs::write(folder.join("timers.db-lock"), "").unwrap();
    let free = || (Trial::NONE.files.free)(&path).unwrap();
    assert!((1 << 20..8 << 20).contains(&free()), "{} are free", free());
    fill(&folder);
    assert_eq!(free(), 0);
    let mut store = SqliteStore::open(&path).unwrap();
    assert!(!folder.join("timers.db-reserve").exists());
    assert_eq!(store.begin().unwrap(), 2);
    for number in 1..=50 {
        let steps = [Op::Settle(row(number)), insert(number + 100)];
        let outcomes = store.commit(number, &steps).unwrap();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
        store.tend().unwrap();
    }
    fs::remove_file(folder.join("foreign")).unwrap();
    let begun = Instant::now();
    let mut number = 51;
    while store.commit(number, &[insert(500)]).unwrap() == [Outcome::Full] {
        assert!(begun.elapsed().as_secs() < 60, "it is full for ever");
        std::thread::sleep(Duration::from_millis(50));
        number += 1;
    }
    assert!(folder.join("timers.db-reserve").exists());
}

#[test]
fn a_pass_that_finds_a_full_file_system_is_done_in_the_reserve() {
    let test = "a_pass_that_finds_a_full_file_system_is_done_in_the_reserve";
    let Some(folder) = on_a_small_disk(test) else {
        return;
    };
    let path = folder.join("timers.db");
    let trial = Trial {
        // None is so long that the store copies it by itself.
        long_log: 1_000_000,
        far_log: 200,
        full: Duration::from_millis(50),
        ..Trial::NONE
    };
    let mut store = SqliteStore::open_for_trial(&path, &trial).unwrap();
    store.begin().unwrap();
    store.commit(1, &[insert(1)]).unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM timers")
        .unwrap();
    // Nearly as much is new in the file as the log has.
    let mut commit = 1;
    while fs::metadata(folder.join("timers.db-wal")).unwrap().len() < 1 << 20 {
        commit += 1;
        let inserts: Vec<_> = (0..100).map(|it| insert(commit * 100 + it)).collect();
        store.commit(commit, &inserts).unwrap();
    }
    store.tend().unwrap();
    let reserve = folder.join("timers.db-reserve");
    assert!(reserve.exists());
    fill(&folder);
    reader.execute_batch("COMMIT").unwrap();
    let begun = Instant::now();
    while reserve.exists() {
        assert!(begun.elapsed().as_secs() < 60, "it was not copied");
        store.tend().unwrap();
    }
    // All of the log is in the file now. The store goes on, and recovers.
    let copied = "PRAGMA wal_checkpoint(NOOP)";
    let copied = reader.query_row(copied, [], |row| Ok((row.get(1)?, row.get(2)?)));
    let (all, copied): (i64, i64) = copied.unwrap();
    assert_eq!(all, copied);
    for number in 1..=50 {
        let steps = [
            Op::Settle(row(commit * 100 + number)),
            insert(100_000 + number),
        ];
        let outcomes = store.commit(commit + number, &steps).unwrap();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
        store.tend().unwrap();
    }
    fs::remove_file(folder.join("foreign")).unwrap();
    commit += 51;
    while store.commit(commit, &[insert(500_000)]).unwrap() == [Outcome::Full] {
        assert!(begun.elapsed().as_secs() < 60, "it is full for ever");
        std::thread::sleep(Duration::from_millis(10));
        commit += 1;
    }
    drop((reader, store));
    let file = rusqlite::Connection::open(&path).unwrap();
    let whole = file.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(whole.unwrap(), "ok");
}

#[test]
fn a_full_file_system_without_a_reserve_is_an_error() {
    let Some(folder) = on_a_small_disk("a_full_file_system_without_a_reserve_is_an_error") else {
        return;
    };
    let path = folder.join("timers.db");
    closed(&path);
    for name in ["timers.db-shm", "timers.db-reserve"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    fill(&folder);
    match SqliteStore::open(&path) {
        Err(OpenError::Sqlite(_)) => {}
        other => panic!("{other:?}"),
    }
    // Nothing is lost by that.
    fs::remove_file(folder.join("foreign")).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.begin().unwrap(), 2);
    let outcomes = store.commit(1, &[insert(1)]).unwrap();
    assert_eq!(outcomes, [Outcome::Inserted]);
}
