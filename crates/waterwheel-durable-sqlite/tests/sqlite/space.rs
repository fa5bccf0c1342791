//! A full disk: what is refused, and what continues?
//!
//! | file | question |
//! |---|---|
//! | `keys` | which work on the index of the keys waits? |
//! | `limit` | what happens to a file that may not grow? |
//! | `cuts` | what is left after a power cut on a full disk? |

mod cuts;
mod keys;
mod limit;

use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::store::{
    Due, Id, Level, Op, Outcome, PageLimit, Row, Store, StoreError,
};
use waterwheel_durable_faults::{Call, Chance, Choice, Content, Disk, Each, Fault, Kind};
use waterwheel_durable_sqlite::{OpenError, Sizes, SqliteStore};

use crate::faulty_disk::*;

const HOUR: Duration = Duration::from_secs(3_600);
const CAPACITY: usize = 2 << 20;
/// The number of timers before the disk is full.
const COUNT: u64 = 300;

/// A store that checks a full disk before each insert.
fn open_impatient(disk: &Disk) -> Result<SqliteStore, OpenError> {
    open_as(disk, |options| options.full = Duration::ZERO)
}

/// A store with timers that are committed one by one.
struct Subject {
    store: SqliteStore,
    disk: Disk,
    commits: u64,
    /// The next number to insert.
    next: u64,
    /// The next number to settle.
    first: u64,
}

impl Subject {
    fn new(open: impl FnOnce(&Disk) -> Result<SqliteStore, OpenError>) -> Subject {
        let disk = disk();
        disk.set_capacity(CAPACITY, 0);
        let mut store = open(&disk).unwrap();
        store.begin().unwrap();
        let mut it = Subject {
            store,
            disk,
            commits: 0,
            next: 1,
            first: 1,
        };
        for _ in 0..COUNT / 10 {
            let inserts: Vec<_> = (0..10).map(|_| it.next_insert()).collect();
            let outcomes = it.commit(&inserts).unwrap();
            assert!(outcomes.iter().all(|it| *it == Outcome::Inserted));
        }
        it
    }

    fn next_insert(&mut self) -> Op {
        self.next += 1;
        insert(self.next - 1, 200)
    }

    fn commit(&mut self, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        self.commits += 1;
        let outcomes = self.store.commit(self.commits, steps);
        if let Err(error) = self.store.maintain() {
            assert!(error.is_definite(), "{error:?}");
        }
        outcomes
    }

    fn insert(&mut self) -> Outcome {
        let insert = self.next_insert();
        let outcome = self.commit(&[insert]).unwrap().remove(0);
        if outcome == Outcome::Full {
            // The insert may be retried.
            self.next -= 1;
        }
        outcome
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        let row = row(self.first, 200);
        let outcomes = self.commit(&[Op::Settle(row)])?;
        assert_eq!(outcomes, [Outcome::Done]);
        self.first += 1;
        Ok(())
    }

    /// The length of the reserve.
    fn reserve(&self) -> usize {
        self.disk.read(RESERVE).map_or(0, |bytes| bytes.len())
    }

    fn expect_timers(&mut self) {
        let all: Vec<u64> = (self.first..self.next).collect();
        assert_eq!(numbers(&mut self.store), all);
    }
}

/// The number of commits written over another one that the WAL may have contained.
fn doubts(disk: &Disk) -> i64 {
    query(disk, "SELECT total(value) FROM meta WHERE key = 'doubts'")
}

/// Reads a number from the file.
fn query(disk: &Disk, sql: &str) -> i64 {
    let other = disk_of(disk.content());
    let sql = format!("SELECT CAST(({sql}) AS INTEGER)");
    connect(&other)
        .query_row(&sql, [], |row| row.get(0))
        .unwrap()
}

/// Expects that inserts are refused while all else continues, and are accepted again without the foreign file. Returns the settles meanwhile.
fn a_full_disk_recovers(it: &mut Subject) -> usize {
    let reserve = it.reserve();
    assert!(reserve >= 128 << 10, "it has {reserve}");
    let mut settled = 0;
    for _ in 0..3 {
        assert_eq!(it.insert(), Outcome::Inserted);
        let foreign = it.disk.foreign();
        it.disk.fill();
        // There may be space in the WAL for some.
        let mut inserted = 0;
        while it.insert() == Outcome::Inserted {
            inserted += 1;
        }
        assert!(inserted < 200, "{inserted} were inserted");
        for _ in 0..60 {
            it.settle().unwrap();
            settled += 1;
            assert_eq!(it.insert(), Outcome::Full);
        }
        it.expect_timers();
        it.disk.set_foreign(foreign);
        assert_eq!(it.insert(), Outcome::Inserted);
        assert!(it.reserve() >= reserve);
    }
    it.expect_timers();
    settled
}

#[test]
fn a_full_disk_refuses_inserts_and_settles_and_recovers() {
    // A plain disk, one whose quota is used up, and a copy-on-write one.
    for (has_quota, copies_on_write) in [(false, false), (true, false), (false, true)] {
        let mut it = Subject::new(open_impatient);
        it.disk.set_quota(has_quota);
        it.disk.set_copies_on_write(copies_on_write);
        assert_eq!(a_full_disk_recovers(&mut it), 180);
        let next = it.next;
        assert_eq!(left(&it.disk), (it.first..next).collect::<Vec<_>>());
    }
}

#[test]
fn space_for_the_reserve_alone_is_none_for_inserts() {
    let mut it = Subject::new(open_impatient);
    let reserve = it.reserve();
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    while it.reserve() > 0 {
        it.settle().unwrap();
    }
    it.disk.fill();
    let full = it.disk.foreign();
    for (free, has_space) in [(0, false), (reserve + 4_096, false), (reserve * 2, true)] {
        it.disk.set_foreign(full - free);
        let outcome = it.insert();
        assert_eq!(outcome == Outcome::Inserted, has_space, "{free} are free");
        assert_eq!(it.reserve() > 0, has_space, "{free} are free");
    }
}

#[test]
fn a_wal_that_finds_no_space_in_the_file_is_copied_in_that_of_the_reserve() {
    let mut it = Subject::new(|disk| open_as(disk, |options| options.long_wal = 60));
    // Without maintenance, they are only in the WAL.
    let main = it.disk.read(FILE).unwrap().len();
    for _ in 0..8 {
        let inserts: Vec<_> = (0..20).map(|_| it.next_insert()).collect();
        it.commits += 1;
        is_done(it.store.commit(it.commits, &inserts));
    }
    it.disk.fill();
    assert!(it.reserve() > 0);
    it.store.maintain().unwrap();
    assert!(it.disk.read(FILE).unwrap().len() > main + 8 * 4_096);
    assert_eq!(it.reserve(), 0);
    it.expect_timers();
}

#[test]
fn a_short_wal_leaves_the_reserve_to_what_is_settled() {
    let it = Subject::new(open_impatient);
    // The WAL is empty after that, and takes the space for its growth.
    drop(it.store);
    let mut store = open_as(&it.disk, |options| {
        options.full = HOUR;
        options.reserve = (512 << 10, 512 << 10);
    })
    .unwrap();
    store.begin().unwrap();
    it.disk.fill();
    for number in 1..=250 {
        is_done(store.commit(number, &[Op::Settle(row(number, 200))]));
        store.maintain().unwrap();
    }
    let wal = it.disk.read(WAL).unwrap().len();
    assert!(wal < 400 << 10, "the WAL has {wal}");
}

#[test]
fn without_a_reserve_a_full_disk_settles_nothing() {
    let mut it = Subject::new(|disk| {
        open_as(disk, |options| {
            options.full = Duration::ZERO;
            options.reserve = (0, 0);
            // The inserted timers are in the WAL.
            options.long_wal = 100_000;
        })
    });
    it.disk.fill();
    assert_eq!(it.insert(), Outcome::Full);
    is_definite(it.settle());
    is_definite(it.settle());
    it.disk.set_foreign(0);
    it.settle().unwrap();
    it.expect_timers();
}

#[test]
fn a_refused_commit_in_the_wal_is_written_over() {
    // As in `faults`: on a copy-on-write file system, an old frame may complete the refused commit. Now there is a reserve.
    let (mut doubted, mut done) = (0, 0);
    for payload in [10, 900] {
        let used = used_wal(payload);
        for after in 0..6 {
            for written in [0, 1, 24, 512, 2_048, 4_000, 4_095] {
                for settles in [false, true] {
                    let disk = disk_of(used.clone());
                    let mut store = open_as(&disk, |options| options.full = HOUR).unwrap();
                    disk.fail_beside_reserve(
                        after_calls(after, Call::Write, Kind::Wal),
                        Fault::NoSpace(written),
                    );
                    let mut steps = vec![insert(100, payload), insert(101, payload)];
                    if settles {
                        steps.push(Op::Settle(row(1, payload)));
                    }
                    let outcomes = store.commit(1, &steps).unwrap();
                    let mut all: Vec<u64> = (1..40).collect();
                    if settles {
                        all.remove(0);
                    }
                    match &outcomes[0] {
                        Outcome::Full => assert_eq!(outcomes[1], Outcome::Full),
                        _ => all.extend([100, 101]),
                    }
                    doubted += doubts(&disk);
                    done += usize::from(outcomes[0] == Outcome::Full);
                    let content = disk.content();
                    let other = self::disk();
                    for seed in 0..12 {
                        other.put(content.clone());
                        other.restart(&mut Chance::new(&mut Rng::with_seed(seed), disk.calls()));
                        assert_eq!(left(&other), all, "{payload} {after} {written} {settles}");
                    }
                }
            }
        }
    }
    println!("{done} were refused, and {doubted} written over");
    assert!(done > 40 && doubted > 10);
}

/// The content of a disk whose WAL has old frames after the valid ones.
fn used_wal(payload: usize) -> Content {
    let disk = disk();
    let mut store = open_with(&disk, 8).unwrap();
    store.begin().unwrap();
    for number in 1..40 {
        does(&mut store, number, &[insert(number, payload)]);
    }
    let content = disk.content();
    drop(store);
    content
}

#[test]
fn a_full_disk_is_looked_at_again_after_a_while() {
    let mut it = Subject::new(|disk| open_as(disk, |options| options.full = HOUR));
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    it.disk.set_foreign(0);
    for _ in 0..10 {
        assert_eq!(it.insert(), Outcome::Full);
        it.settle().unwrap();
    }
    it.expect_timers();
}

#[test]
fn a_look_at_a_full_disk_writes_only_where_there_may_be_space() {
    for is_quota in [false, true] {
        let mut it = Subject::new(open_impatient);
        it.disk.set_quota(is_quota);
        it.disk.fill();
        while it.insert() == Outcome::Inserted {}
        let has_written = |_: &i32| {
            let written = it.disk.count(Call::Write, Kind::Reserve);
            assert_eq!(it.insert(), Outcome::Full);
            it.disk.count(Call::Write, Kind::Reserve) > written
        };
        // A quota shows only in a write. Each insert comes with two checks, and one check in four writes anyway.
        let writes = (0..10).filter(has_written).count();
        assert_eq!(writes, if is_quota { 10 } else { 5 });
        it.disk.set_foreign(0);
        assert_eq!(it.insert(), Outcome::Inserted);
    }
}

#[test]
fn a_disk_that_says_too_little_is_written_to_now_and_then() {
    let mut it = Subject::new(|disk| {
        open_as(disk, |options| {
            options.full = Duration::ZERO;
            options.files.free = |_| Some(0);
        })
    });
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    for _ in 0..10 {
        assert_eq!(it.insert(), Outcome::Full);
    }
    it.disk.set_foreign(0);
    let refused = (0..4).take_while(|_| it.insert() == Outcome::Full);
    assert!(refused.count() < 4);
}

#[test]
fn a_full_disk_keeps_no_store_from_opening() {
    let it = Subject::new(open_impatient);
    // The WAL is empty after that.
    drop(it.store);
    it.disk.fill();
    let mut store = open_impatient(&it.disk).unwrap();
    assert_eq!(store.begin().unwrap(), 2);
    let steps = [Op::Settle(row(1, 200)), insert(1_000, 200)];
    let outcomes = store.commit(1, &steps).unwrap();
    assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
    store.maintain().unwrap();
    drop(store);
    // The reserve is gone now, and a foreign file takes its space. The WAL keeps its own.
    it.disk.fill();
    let mut store = open_impatient(&it.disk).unwrap();
    assert_eq!(store.begin().unwrap(), 3);
    let steps = [Op::Settle(row(2, 200)), insert(1_000, 200)];
    let outcomes = store.commit(1, &steps).unwrap();
    assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
    it.disk.set_foreign(0);
    assert_eq!(store.commit(2, &steps[1..]).unwrap(), [Outcome::Inserted]);
    assert!(it.disk.read(RESERVE).is_some());
}

#[test]
fn a_full_disk_names_the_timer_that_has_a_key() {
    let mut it = Subject::new(open_impatient);
    let Op::Insert(mut keyed, bucket) = it.next_insert() else {
        unreachable!();
    };
    keyed.key = Some(b"order-17".as_slice().into());
    it.commit(&[Op::Insert(keyed.clone(), bucket)]).unwrap();
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    let mut again = keyed.clone();
    again.id = Id::from_stored(9_999);
    let mut other = again.clone();
    other.key = Some(b"order-18".as_slice().into());
    other.handler = "a new one".into();
    let steps = [Op::Insert(again, bucket), Op::Insert(other, bucket)];
    let outcomes = it.commit(&steps).unwrap();
    assert_eq!(outcomes, [Outcome::Exists(keyed.handle()), Outcome::Full]);
    assert_eq!(it.store.handlers().unwrap(), ["mail".into()]);
}

#[test]
fn what_stays_together_is_written_on_a_full_disk() {
    let mut it = Subject::new(open_impatient);
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    let number = it.next + 1;
    let set = Op::Set("calendar/nightly".into(), Some(b"17".as_slice().into()));
    let together = Op::All(vec![insert(number, 200), set]);
    let refused = it.next_insert();
    let outcomes = it.commit(&[refused.clone(), together, refused]).unwrap();
    let all = Outcome::All(vec![Outcome::Inserted, Outcome::Done]);
    assert_eq!(outcomes, [Outcome::Full, all, Outcome::Full]);
    assert_eq!(numbers(&mut it.store).last(), Some(&number));
}
