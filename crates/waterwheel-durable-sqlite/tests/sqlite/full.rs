//! A real file system that is full. If users may not have namespaces, none can be mounted, and only `space` and `waterwheel-durable-chaos` are left.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use waterwheel_durable_core::store::{Due, Id, Level, Op, Outcome, Row, Store};
use waterwheel_durable_sqlite::{OpenError, OpenOptions, SqliteStore};

use crate::folder::*;

const MOUNTED: &str = "WATERWHEEL_MOUNTED";

/// The directory of a file system of 8 MiB, in a separate process. `None` in the original process, which has waited for the other one.
fn on_a_small_disk(test: &str) -> Option<PathBuf> {
    on_a_disk(8, test)
}

/// Like `on_a_small_disk`, with this size in MiB.
fn on_a_disk(mebibytes: u32, test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(MOUNTED) {
        return Some(folder.into());
    }
    let folder = Folder::new();
    let point = folder.file("");
    let mount = format!("mount -t tmpfs -o size={mebibytes}m tmpfs \"$0\"");
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(&point);
        command
    };
    let probe = shell(&mount).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("not tried: no file system can be mounted here");
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let mut again = shell(&format!("{mount} && exec \"$@\""));
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
    Row::new(
        Id::from_stored(number),
        Due::from_millis(number.cast_signed() * 1_000),
        "mail",
        [7; 200],
    )
}

fn insert(number: u64) -> Op {
    let row = row(number);
    let bucket = Level::Second.bucket(row.due);
    Op::Insert(row, bucket)
}

/// A closed file with 100 timers.
fn closed(path: &Path) {
    let mut store = begun(path);
    let inserts: Vec<_> = (1..=100).map(insert).collect();
    store.commit(1, &inserts).unwrap();
    store.maintain().unwrap();
}

#[test]
fn a_store_opens_settles_and_recovers_on_a_full_file_system() {
    let test = "full::a_store_opens_settles_and_recovers_on_a_full_file_system";
    let Some(folder) = on_a_small_disk(test) else {
        return;
    };
    let path = folder.join("timers.db");
    closed(&path);
    // Each first opening creates the index of the WAL anew. Another process has taken its space, and that of the number in the lock file.
    fs::remove_file(folder.join("timers.db-shm")).unwrap();
    fs::write(folder.join("timers.db-lock"), "").unwrap();
    let free = || (OpenOptions::DEFAULT.files.free)(&path).unwrap();
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
        store.maintain().unwrap();
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
    let test = "full::a_pass_that_finds_a_full_file_system_is_done_in_the_reserve";
    let Some(folder) = on_a_small_disk(test) else {
        return;
    };
    let path = folder.join("timers.db");
    let mut store = begun_as(&path, |options| {
        // The WAL never becomes so long that the store copies it by itself.
        options.long_wal = 1_000_000;
        options.checkpointer_wal = 200;
        options.full = Duration::from_millis(50);
    });
    store.commit(1, &[insert(1)]).unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM timers")
        .unwrap();
    // The file needs almost as much new space as the WAL has.
    let mut commit = 1;
    while fs::metadata(folder.join("timers.db-wal")).unwrap().len() < 1 << 20 {
        commit += 1;
        let inserts: Vec<_> = (0..100).map(|it| insert(commit * 100 + it)).collect();
        store.commit(commit, &inserts).unwrap();
    }
    store.maintain().unwrap();
    let reserve = folder.join("timers.db-reserve");
    assert!(reserve.exists());
    fill(&folder);
    reader.execute_batch("COMMIT").unwrap();
    let begun = Instant::now();
    while reserve.exists() {
        assert!(begun.elapsed().as_secs() < 60, "it was not copied");
        store.maintain().unwrap();
    }
    // All of the WAL is now in the file. The store continues, and recovers.
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
        store.maintain().unwrap();
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
    let Some(folder) = on_a_small_disk("full::a_full_file_system_without_a_reserve_is_an_error")
    else {
        return;
    };
    let path = folder.join("timers.db");
    closed(&path);
    for name in ["timers.db-shm", "timers.db-reserve"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    fill(&folder);
    match SqliteStore::open(&path) {
        Err(OpenError::Io { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        }
        other => panic!("{other:?}"),
    }
    // Nothing is lost by that.
    fs::remove_file(folder.join("foreign")).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.begin().unwrap(), 2);
    let outcomes = store.commit(1, &[insert(1)]).unwrap();
    assert_eq!(outcomes, [Outcome::Inserted]);
}

#[test]
fn a_small_disk_takes_inserts_again_once_there_is_some_space() {
    let test = "full::a_small_disk_takes_inserts_again_once_there_is_some_space";
    let Some(folder) = on_a_disk(24, test) else {
        return;
    };
    let path = folder.join("timers.db");
    let reserve = || fs::metadata(folder.join("timers.db-reserve")).map_or(0, |file| file.len());
    let mut store = begun(&path);
    let mut commit = 0;
    let mut does = |store: &mut SqliteStore, steps: &[Op]| {
        commit += 1;
        let outcomes = store.commit(commit, steps).unwrap();
        store.maintain().unwrap();
        outcomes
    };
    // By then, the reserve has its maximum length.
    let mut number = 0;
    while fs::metadata(&path).unwrap().len() < 5 << 20 {
        let inserts: Vec<_> = (0..500).map(|it| insert(number + it)).collect();
        number += 500;
        let outcomes = does(&mut store, &inserts);
        assert!(
            !outcomes.contains(&Outcome::Full),
            "the reserve takes it all"
        );
    }
    fill(&folder);
    while does(&mut store, &[insert(number)]) != [Outcome::Full] {
        number += 1;
    }
    // All timers are settled in the space of the reserve.
    for first in (0..number - 500).step_by(100) {
        let settled: Vec<_> = (first..first + 100).map(|it| Op::Settle(row(it))).collect();
        does(&mut store, &settled);
    }
    fs::remove_file(folder.join("foreign")).unwrap();
    // Most of the disk still belongs to another file.
    let rest = (OpenOptions::DEFAULT.files.free)(&path).unwrap() - (6 << 20);
    fs::write(
        folder.join("foreign"),
        vec![1; usize::try_from(rest).unwrap()],
    )
    .unwrap();
    let begun = Instant::now();
    while does(&mut store, &[insert(1_000_000)]) == [Outcome::Full] {
        assert!(begun.elapsed().as_secs() < 60, "it is full for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A longer reserve left by an older version is truncated.
    drop(store);
    fs::remove_file(folder.join("foreign")).unwrap();
    fs::write(folder.join("timers.db-reserve"), vec![7; 9 << 20]).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(reserve(), 4 << 20);
}

/// The process may write files of this many bytes. It gets an error at the limit: by default, a signal would end it.
const LONGEST: u64 = 3 << 20;

#[test]
fn a_file_that_may_become_no_longer_is_a_full_disk() {
    let test = "full::a_file_that_may_become_no_longer_is_a_full_disk";
    let Some(folder) = std::env::var_os(MOUNTED) else {
        let folder = Folder::new();
        let script = format!(
            "trap '' XFSZ && exec prlimit --fsize={LONGEST}:unlimited \"$0\" --exact --nocapture {test}"
        );
        let mut limited = Command::new("sh");
        limited.args(["-c", &script]);
        limited.arg(std::env::current_exe().unwrap());
        limited.env(MOUNTED, folder.file(""));
        assert!(limited.status().unwrap().success());
        return;
    };
    let path = PathBuf::from(folder).join("timers.db");
    // Either the WAL meets the limit before the file does, or the file itself.
    for long_wal in [1_000_000, 100] {
        let mut store = begun_as(&path, |options| {
            options.long_wal = long_wal;
            options.full = Duration::from_millis(20);
        });
        let mut commit = 0;
        let mut does = |store: &mut SqliteStore, steps: &[Op]| {
            commit += 1;
            let outcomes = store.commit(commit, steps);
            let outcomes = outcomes.unwrap_or_else(|it| panic!("commit {commit}: {it}"));
            store
                .maintain()
                .unwrap_or_else(|it| panic!("after commit {commit}: {it}"));
            outcomes
        };
        let mut number = 0;
        let is_full = |outcomes: &[Outcome]| outcomes.contains(&Outcome::Full);
        // Until the file itself has no more room: if only the WAL is full, that does not last.
        let mut refused = 0;
        while refused < 3 {
            let inserts: Vec<_> = (number..number + 100).map(insert).collect();
            let outcomes = does(&mut store, &inserts);
            number += outcomes
                .iter()
                .filter(|it| **it == Outcome::Inserted)
                .count() as u64;
            refused += u64::from(is_full(&outcomes));
            assert!(number < 100_000);
            if is_full(&outcomes) {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        println!(
            "{number} timers, {} bytes",
            fs::metadata(&path).unwrap().len()
        );
        // Deliveries continue.
        let settled: Vec<_> = (0..50).map(|it| Op::Settle(row(it))).collect();
        assert!(!is_full(&does(&mut store, &settled)));
        // The limit is raised while the store is open.
        let process = std::process::id().to_string();
        let limit = |bytes: &str| {
            let mut raise = Command::new("prlimit");
            raise.args(["--pid", &process, &format!("--fsize={bytes}:unlimited")]);
            assert!(raise.status().unwrap().success());
        };
        limit("unlimited");
        let begun = Instant::now();
        let inserts: Vec<_> = (number..number + 100).map(insert).collect();
        while is_full(&does(&mut store, &inserts)) {
            assert!(begun.elapsed().as_secs() < 60, "it is full for ever");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(store);
        for file in fs::read_dir(path.parent().unwrap()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        limit(&LONGEST.to_string());
    }
}
