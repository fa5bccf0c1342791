//! Which files are opened, and is a refused file unchanged?

use std::fs;

use rusqlite::Connection;
use waterwheel_durable_core::store::{Due, Id, Level, Op, Row, Store};
use waterwheel_durable_sqlite::{OpenError, SqliteStore};

use crate::folder::*;
use crate::rows::{insert_one, insert_second};

fn row(count: u64, payload: usize) -> Row {
    Row::new(
        Id::from_stored(1 << 40 | count),
        Due::from_millis(1_800_000_000_000 + count as i64),
        "mail",
        vec![7; payload],
    )
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_is_still_to_come_is_that_file() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    fs::create_dir(folder.file("within")).unwrap();
    let path = folder.file("within/timers.db");
    symlink("within/timers.db", folder.file("link")).unwrap();
    symlink("link", folder.file("link to a link")).unwrap();
    let link = folder.file("link to a link");
    for [first, second] in [[&path, &link], [&link, &path], [&link, &link]] {
        let store = SqliteStore::open(first).unwrap();
        assert_eq!(store.path(), fs::canonicalize(&path).unwrap());
        let refused = SqliteStore::open(second);
        assert!(
            matches!(refused, Err(OpenError::Held { .. })),
            "{refused:?}"
        );
        drop(store);
        fs::remove_file(&path).unwrap();
    }
    symlink("around", folder.file("around")).unwrap();
    let refused = SqliteStore::open(folder.file("around"));
    assert!(matches!(refused, Err(OpenError::Io { .. })), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn a_lock_file_that_root_creates_goes_to_the_files_user() {
    use std::os::unix::fs::{MetadataExt, chown};
    const OTHER: u32 = 65_534;
    let folder = Folder::new();
    let path = folder.file("timers.db");
    drop(SqliteStore::open(&path).unwrap());
    let (lock, user) = (
        folder.file("timers.db-lock"),
        fs::metadata(&path).unwrap().uid(),
    );
    if chown(&path, Some(OTHER), Some(OTHER)).is_err() {
        // Only root can give the file away.
        return;
    }
    // An existing file stays as it is: it may be a name for another file.
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(fs::metadata(&lock).unwrap().uid(), user);
    fs::remove_file(&lock).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(fs::metadata(&lock).unwrap().uid(), OTHER);
    assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn another_process_is_named_that_holds_the_file() {
    if let Some(path) = Other::path() {
        // The other process: it holds the file until its input ends.
        let _store = SqliteStore::open(path).unwrap();
        Other::wait_for_the_end();
        return;
    }
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let mut other = Other::start("open::another_process_is_named_that_holds_the_file", &path);
    let error = SqliteStore::open(&path).unwrap_err();
    let name = format!("process {} has the file open", other.id());
    assert!(error.to_string().starts_with(&name), "{error}");
    other.kill();
    SqliteStore::open(&path).unwrap();
}

#[test]
fn a_wal_without_its_file_is_not_thrown_away() {
    let (folder, path, mut store) = new_store();
    store.commit(1, &[insert_second(row(1, 64))]).unwrap();
    // As a crash leaves the files.
    let (file, wal) = (folder.file("copy.db"), folder.file("copy.db-wal"));
    fs::copy(folder.file("timers.db-wal"), &wal).unwrap();
    let before = fs::read(&wal).unwrap();
    for is_there in [false, true] {
        if is_there {
            fs::write(&file, []).unwrap();
        }
        let refused = SqliteStore::open(&file);
        assert!(matches!(refused, Err(OpenError::Corrupt(_))), "{refused:?}");
        assert_eq!(fs::read(&wal).unwrap(), before);
        assert_eq!(fs::exists(&file).unwrap(), is_there);
    }
    // With the file next to the WAL, everything is there.
    fs::copy(&path, &file).unwrap();
    let mut copy = SqliteStore::open(&file).unwrap();
    assert_eq!(load(&mut copy, "mail"), [row(1, 64)]);
}

#[test]
fn a_file_without_one_of_its_tables_is_damaged() {
    let folder = Folder::new();
    for table in [
        "timers",
        "handlers",
        "moved",
        "key_changes",
        "key_runs",
        "key_chunks",
        "key_filters",
        "dead",
        "meta",
    ] {
        let path = folder.file(table);
        drop(SqliteStore::open(&path).unwrap());
        execute(&path, &format!("DROP TABLE {table}"));
        // The store would change this when it opens the file.
        execute(&path, "PRAGMA journal_mode = DELETE");
        let before = fs::read(&path).unwrap();
        let refused = SqliteStore::open(&path);
        assert!(matches!(refused, Err(OpenError::Corrupt(_))), "{table}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_closed_store_is_one_file_with_all_rows() {
    let (folder, path, mut store) = new_store();
    store.commit(1, &[insert_second(row(1, 64))]).unwrap();
    drop(store);
    let copy = folder.file("copy.db");
    fs::copy(&path, &copy).unwrap();
    let mut copy = SqliteStore::open(&copy).unwrap();
    assert_eq!(copy.begin().unwrap(), 2);
    assert_eq!(load(&mut copy, "mail"), [row(1, 64)]);
}

#[test]
fn the_wal_does_not_grow_without_end() {
    let (folder, path, mut store) = new_store();
    for number in 1..=200 {
        let steps: Vec<_> = (0..100)
            .map(|count| insert_second(row(number * 100 + count, 1_000)))
            .collect();
        store.commit(number, &steps).unwrap();
        store.maintain().unwrap();
    }
    let wal = fs::metadata(folder.file("timers.db-wal")).unwrap().len();
    let file = fs::metadata(&path).unwrap().len();
    assert!(wal < 8 << 20 && file > 12 << 20, "{wal} and {file} bytes");
}

#[test]
fn a_wal_that_has_grown_beside_a_reader_becomes_short_again() {
    let (folder, path, mut store) = new_store();
    let mut number = 0;
    let mut commit = |store: &mut SqliteStore| {
        number += 1;
        insert_one(store, number, row(number, 1 << 20));
        store.maintain().unwrap();
    };
    let length = || fs::metadata(folder.file("timers.db-wal")).unwrap().len();
    commit(&mut store);
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = "SELECT count(*) FROM timers";
    assert_eq!(reader.query_row(count, [], |row| row.get(0)), Ok(1));
    while length() < 20 << 20 {
        commit(&mut store);
    }
    reader.execute_batch("COMMIT").unwrap();
    // One commit to be copied with all the others, and one that restarts the WAL.
    commit(&mut store);
    commit(&mut store);
    assert!(length() <= 8 << 20, "{} bytes", length());
}

#[test]
fn a_timer_of_64_bytes_takes_at_most_130_on_disk() {
    const COUNT: u64 = 60_000;
    let folder = Folder::new();
    for level in [Level::Second, Level::Day] {
        let path = folder.file(&format!("{level:?}.db"));
        let mut store = begun(&path);
        let month = 30 * 86_400_000;
        for (number, part) in (1..).zip(0..COUNT / 1_000) {
            let steps = (0..1_000).map(|at| {
                let mut row = row(part * 1_000 + at, 64);
                // Due over a month in coarser buckets, and over some seconds in near ones.
                row.due = match level {
                    Level::Second => row.due,
                    _ => {
                        Due::from_millis(row.due.as_millis() + (at * 2_654_435_761 % month) as i64)
                    }
                };
                let bucket = level.bucket(row.due);
                Op::Insert(row, bucket)
            });
            store.commit(number, &steps.collect::<Vec<_>>()).unwrap();
        }
        drop(store);
        let each = fs::metadata(&path).unwrap().len() / COUNT;
        println!("{level:?}: {each} bytes a timer");
        assert!(each <= 130, "{level:?}: {each} bytes a timer");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_removed_while_it_is_open_takes_nothing() {
    for is_replaced in [false, true] {
        let folder = Folder::new();
        let path = folder.file("timers.db");
        let mut store = begun(&path);
        store.commit(1, &[insert_second(row(1, 10))]).unwrap();
        store.maintain().unwrap();
        fs::remove_file(&path).unwrap();
        if is_replaced {
            fs::write(&path, "").unwrap();
        }
        let gone = store.maintain().unwrap_err();
        assert!(!gone.is_definite(), "{gone}");
        let refused = store.commit(2, &[insert_second(row(2, 10))]).unwrap_err();
        assert!(!refused.is_definite(), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn the_lock_file_is_its_users_alone_and_no_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let lock = folder.file("timers.db-lock");
    drop(SqliteStore::open(&path).unwrap());
    let mode = fs::metadata(&lock).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    fs::remove_file(&lock).unwrap();
    fs::write(folder.file("another"), "its text").unwrap();
    symlink(folder.file("another"), &lock).unwrap();
    let refused = SqliteStore::open(&path);
    assert!(
        matches!(refused, Err(OpenError::Lock { .. })),
        "{refused:?}"
    );
    assert_eq!(fs::read(folder.file("another")).unwrap(), b"its text");
}

fn insert_two_megabytes(store: &mut SqliteStore) {
    for number in 1..=20 {
        let insert = insert_second(row(number, 100_000));
        store.commit(number, &[insert]).unwrap();
        store.maintain().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_reserve_that_is_a_link_is_not_written_to() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let path = folder.file("timers.db");
    fs::write(folder.file("precious"), "data").unwrap();
    symlink(folder.file("precious"), folder.file("timers.db-reserve")).unwrap();
    let mut store = begun(&path);
    insert_two_megabytes(&mut store);
    drop(store);
    assert_eq!(fs::read(folder.file("precious")).unwrap(), b"data");
}

#[test]
fn the_reserve_is_as_long_as_the_file_needs_it() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let reserve = || {
        fs::metadata(folder.file("timers.db-reserve"))
            .unwrap()
            .len()
    };
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(reserve(), 1 << 20);
    store.begin().unwrap();
    insert_two_megabytes(&mut store);
    let grown = reserve();
    assert!(((4 << 20)..=(16 << 20)).contains(&grown), "{grown}");
    drop(store);
    let bytes = fs::read(folder.file("timers.db-reserve")).unwrap();
    // No file system can compress it.
    let mut pieces: Vec<&[u8]> = bytes.chunks(4_096).collect();
    pieces.sort_unstable();
    pieces.dedup();
    assert_eq!(pieces.len() as u64, grown / 4_096);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(reserve(), grown);
    drop(store);
}
