//! A store on a disk whose power can be cut.

use std::fmt::Debug;

use rusqlite::{Connection, OpenFlags};
use waterwheel_durable_core::store::{Due, Level, Op, Outcome, Row, Store, StoreError};
use waterwheel_durable_faults::{Call, Content, Disk, Kind, Moment};
use waterwheel_durable_sqlite::{Files, OpenError, OpenOptions, SqliteStore};

pub(crate) const FILE: &str = "timers.db";
pub(crate) const WAL: &str = "timers.db-wal";

pub(crate) const RESERVE: &str = "timers.db-reserve";

/// The file operations on a disk.
pub(crate) const FILES: Files = Files {
    read: Disk::read_path,
    length: Disk::length_path,
    append: Disk::append_path,
    write: Disk::write_path,
    sync: Disk::sync_path,
    set_length: Disk::shorten_path,
    remove: Disk::remove_path,
    free: Disk::free_path,
    size: |_| None,
    longest: || None,
};

/// Opens the store on a disk.
pub(crate) fn open(disk: &Disk) -> Result<SqliteStore, OpenError> {
    open_with(disk, 1_000)
}

/// Opens the store on a disk. It copies its WAL at this many pages.
pub(crate) fn open_with(disk: &Disk, long_wal: i64) -> Result<SqliteStore, OpenError> {
    open_as(disk, |options| options.long_wal = long_wal)
}

/// Opens the store on a disk in the same way, without a reserve.
pub(crate) fn open_bare(disk: &Disk, long_wal: i64) -> Result<SqliteStore, OpenError> {
    open_as(disk, |options| {
        options.long_wal = long_wal;
        options.reserve = (0, 0);
    })
}

/// Opens the store on a disk, with a small reserve and these options.
pub(crate) fn open_as(
    disk: &Disk,
    set: impl FnOnce(&mut OpenOptions<'_>),
) -> Result<SqliteStore, OpenError> {
    let mut options = OpenOptions {
        vfs: Some(disk.vfs()),
        files: FILES,
        reserve: (32 << 10, 256 << 10),
        ..OpenOptions::DEFAULT
    };
    set(&mut options);
    SqliteStore::open_with_options(&disk.path(FILE), &options)
}

pub(crate) fn disk() -> Disk {
    Disk::new().unwrap()
}

/// A disk with this content.
pub(crate) fn disk_of(content: Content) -> Disk {
    let disk = disk();
    disk.put(content);
    disk
}

/// Inserts a timer of `mail` that is due in the second of its number.
pub(crate) fn insert(number: u64, payload: usize) -> Op {
    let row = row(number, payload);
    let bucket = Level::Second.bucket(row.due);
    Op::Insert(row, bucket)
}

pub(crate) fn row(number: u64, payload: usize) -> Row {
    Row::new(
        waterwheel_durable_core::store::Id::from_stored(number),
        Due::from_millis(number.cast_signed() * 1_000),
        "mail",
        vec![number as u8; payload],
    )
}

/// Returns this insert in a form that no store refuses for want of space.
pub(crate) fn kept(number: u64, payload: usize) -> Op {
    Op::All(vec![insert(number, payload)])
}

/// The numbers of all timers of `mail`.
pub(crate) fn numbers(store: &mut SqliteStore) -> Vec<u64> {
    let rows = crate::folder::load(store, "mail");
    rows.iter().map(|row| row.id.get()).collect()
}

/// The numbers of all timers that a disk has after a restart.
pub(crate) fn left(disk: &Disk) -> Vec<u64> {
    numbers(&mut open_bare(disk, 1_000).unwrap())
}

/// Commits and maintains the store, as a service does.
pub(crate) fn does(store: &mut SqliteStore, number: u64, steps: &[Op]) {
    is_done(store.commit(number, steps));
    store.maintain().unwrap();
}

pub(crate) fn is_done(committed: Result<Vec<Outcome>, StoreError>) {
    committed.unwrap();
}

pub(crate) fn is_definite<T: Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert!(error.is_definite(), "{error:?}");
}

pub(crate) fn is_indeterminate<T: Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert!(!error.is_definite(), "{error:?}");
}

/// The number of calls that change or sync something.
pub(crate) fn changes(disk: &Disk) -> u64 {
    let calls = [Call::Write, Call::Sync, Call::Length, Call::Delete];
    let kinds = [Kind::Main, Kind::Wal, Kind::Reserve, Kind::Other];
    let all = calls
        .iter()
        .flat_map(|call| kinds.map(|kind| disk.count(*call, kind)));
    all.sum()
}

/// The call after this many others of any kind.
pub(crate) fn any_call(after: u64) -> Moment {
    Moment {
        call: None,
        kind: None,
        after,
    }
}

/// The call of this kind after this many of them.
pub(crate) fn after_calls(after: u64, call: Call, kind: Kind) -> Moment {
    Moment {
        after,
        ..Moment::next(call, kind)
    }
}

/// A new store, opened for the first time, and its disk.
pub(crate) fn new_on_disk() -> (SqliteStore, Disk) {
    let disk = disk();
    let mut store = open(&disk).unwrap();
    store.begin().unwrap();
    (store, disk)
}

/// A connection next to the store's.
pub(crate) fn connect(disk: &Disk) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    Connection::open_with_flags_and_vfs(disk.path(FILE), flags, disk.vfs()).unwrap()
}
