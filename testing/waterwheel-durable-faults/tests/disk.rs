//! Does the disk keep everything that a disk may keep, and nothing else?

use std::collections::BTreeSet;

use fastrand::Rng;
use rusqlite::{Connection, OpenFlags};
use waterwheel_durable_faults::{Call, Chance, Content, Disk, Each, Fault, Kind, Moment};

const FILE: &str = "test.db";

fn open(disk: &Disk) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    Connection::open_with_flags_and_vfs(disk.path(FILE), flags, disk.vfs())
}

/// Opens a connection in WAL mode with a table `t` and this value of `synchronous`, and makes a checkpoint.
fn table(disk: &Disk, synchronous: &str) -> Connection {
    let connection = open(disk).unwrap();
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    connection
        .execute_batch("CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    connection
        .pragma_update(None, "synchronous", synchronous)
        .unwrap();
    connection
}

fn insert(connection: &Connection) -> rusqlite::Result<usize> {
    connection.execute("INSERT INTO t VALUES (1)", [])
}

/// The number of rows of `t` that survive.
fn left(content: &Content, disk: &Disk, restart: impl FnOnce(&Disk)) -> i64 {
    disk.put(content.clone());
    restart(disk);
    let connection = open(disk).unwrap();
    let count = "SELECT count(*) FROM t";
    connection.query_row(count, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_was_synced_is_left_and_the_rest_is_left_or_not() {
    for (synchronous, expected) in [("FULL", vec![2]), ("NORMAL", vec![0, 1, 2])] {
        let disk = Disk::new().unwrap();
        let connection = table(&disk, synchronous);
        for _ in 0..2 {
            insert(&connection).unwrap();
        }
        let content = disk.content();
        assert_eq!(content.is_synced(), synchronous == "FULL");
        let other = Disk::new().unwrap();
        let (mut each, mut found) = (Each::new(4_096), BTreeSet::new());
        loop {
            found.insert(left(&content, &other, |disk| disk.restart(&mut each)));
            if !each.advance() {
                break;
            }
        }
        assert_eq!(Vec::from_iter(found), expected, "{synchronous}");
        let by_chance = (0..200).map(|seed| {
            let mut rng = Rng::with_seed(seed);
            let restart = |disk: &Disk| disk.restart(&mut Chance::new(&mut rng, disk.calls()));
            left(&content, &other, restart)
        });
        let found: BTreeSet<i64> = by_chance.collect();
        assert_eq!(Vec::from_iter(found), expected, "{synchronous}");
    }
}

#[test]
fn a_power_cut_ends_all_calls_until_the_restart() {
    let disk = Disk::new().unwrap();
    let connection = table(&disk, "FULL");
    disk.cut_at(Moment::next(Call::Sync, Kind::Wal), false);
    insert(&connection).unwrap_err();
    let cut = disk.cut().unwrap();
    assert_eq!((cut.call, cut.kind), (Call::Sync, Kind::Wal));
    insert(&connection).unwrap_err();
    drop(connection);
    let read = || open(&disk)?.execute_batch("SELECT * FROM t");
    read().unwrap_err();
    disk.restart(&mut Each::new(512));
    read().unwrap();
}

#[test]
fn a_power_cut_after_the_sync_keeps_what_was_synced() {
    for (after_it, expected) in [(false, 0), (true, 1)] {
        let disk = Disk::new().unwrap();
        let connection = table(&disk, "FULL");
        // The first sync is that of the header of the emptied WAL.
        let second = Moment {
            after: 1,
            ..Moment::next(Call::Sync, Kind::Wal)
        };
        disk.cut_at(second, after_it);
        insert(&connection).unwrap_err();
        // The first choice is the worst one.
        let worst = |disk: &Disk| disk.restart(&mut Each::new(512));
        let left = left(&disk.content(), &Disk::new().unwrap(), worst);
        assert_eq!(left, expected);
    }
}

#[test]
fn a_sync_after_one_that_dropped_says_that_all_is_well() {
    // This is why a failed sync is not retried.
    let disk = Disk::new().unwrap();
    let connection = table(&disk, "FULL");
    disk.fail(Moment::next(Call::Sync, Kind::Wal), Fault::Dropped);
    insert(&connection).unwrap_err();
    disk.mend();
    assert!(disk.content().is_synced());
    let best = |disk: &Disk| {
        let mut rng = Rng::with_seed(0);
        disk.restart(&mut Chance::new(&mut rng, disk.calls()));
    };
    assert_eq!(left(&disk.content(), &Disk::new().unwrap(), best), 0);
}

#[test]
fn a_full_disk_writes_what_there_is_space_for() {
    let disk = Disk::new().unwrap();
    let connection = table(&disk, "FULL");
    let used = disk.used();
    disk.limit(used + 1_000);
    let error = insert(&connection).unwrap_err();
    let code = error.sqlite_error_code();
    assert_eq!(code, Some(rusqlite::ErrorCode::DiskFull));
    assert_eq!(disk.used(), used + 1_000);
    disk.mend();
    insert(&connection).unwrap();
}
