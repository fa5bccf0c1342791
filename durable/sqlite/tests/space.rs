//! A disk that is full, and a file that may not grow: what is refused, what goes on, and what is there after a power cut?

mod trial;

use std::time::Duration;

use fastrand::Rng;
use trial::*;
use waterwheel_faults::{Call, Chance, Choice, Content, Disk, Each, Fault, Kind, Moment};
use waterwheel_store::{Due, Level, Op, Outcome, Row, Store, StoreError};
use waterwheel_store_sqlite::{OpenError, Sizes, SqliteStore};

const HOUR: Duration = Duration::from_secs(3_600);
const CAPACITY: usize = 2 << 20;
/// How many timers there are before the disk is full.
const COUNT: u64 = 300;

/// A store that looks at a full disk before each insert.
fn open_impatient(disk: &Disk) -> Result<SqliteStore, OpenError> {
    open_as(disk, |trial| trial.full = Duration::ZERO)
}

/// A store that has timers, and commits them one by one from here on.
struct Subject {
    store: SqliteStore,
    disk: Disk,
    commits: u64,
    /// The next one to insert.
    next: u64,
    /// The next one to settle.
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
        if let Err(error) = self.store.tend() {
            assert!(error.is_definite(), "{error:?}");
        }
        outcomes
    }

    fn insert(&mut self) -> Outcome {
        let insert = self.next_insert();
        let outcome = self.commit(&[insert]).unwrap().remove(0);
        if outcome == Outcome::Full {
            // It may be tried again.
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

    /// The reserve's length.
    fn reserve(&self) -> usize {
        self.disk.read(RESERVE).map_or(0, |bytes| bytes.len())
    }

    fn expect_timers(&mut self) {
        let all: Vec<u64> = (self.first..self.next).collect();
        assert_eq!(numbers(&mut self.store), all);
    }
}

/// How often a commit was written over another one that the log may have had.
fn doubts(disk: &Disk) -> i64 {
    ask(disk, "SELECT total(value) FROM meta WHERE key = 'doubts'")
}

/// A number that is in the file.
fn ask(disk: &Disk, sql: &str) -> i64 {
    let other = disk_of(disk.content());
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let file = rusqlite::Connection::open_with_flags_and_vfs(FILE, flags, other.vfs()).unwrap();
    let sql = format!("SELECT CAST(({sql}) AS INTEGER)");
    file.query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// Inserts are refused while all else goes on, and are taken again once another's file is gone. Returns how often something was settled meanwhile.
fn a_full_disk_recovers(it: &mut Subject) -> usize {
    let reserve = it.reserve();
    assert!(reserve >= 128 << 10, "it has {reserve}");
    let mut settled = 0;
    for _ in 0..3 {
        assert_eq!(it.insert(), Outcome::Inserted);
        let foreign = it.disk.foreign();
        it.disk.fill();
        // There may be space in the log for some.
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
    let mut it = Subject::new(open_impatient);
    assert_eq!(a_full_disk_recovers(&mut it), 180);
    let next = it.next;
    assert_eq!(left(&it.disk), (it.first..next).collect::<Vec<_>>());
}

#[test]
fn a_quota_that_is_used_up_is_a_full_disk() {
    let mut it = Subject::new(open_impatient);
    it.disk.set_quota(true);
    a_full_disk_recovers(&mut it);
}

#[test]
fn a_disk_that_copies_on_write_is_full_and_recovers() {
    let mut it = Subject::new(open_impatient);
    it.disk.set_copies_on_write(true);
    a_full_disk_recovers(&mut it);
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
fn a_log_that_finds_no_space_in_the_file_is_copied_in_that_of_the_reserve() {
    let mut it = Subject::new(|disk| open_as(disk, |trial| trial.long_log = 60));
    // Not tended: they are in the log alone.
    let main = it.disk.read(FILE).unwrap().len();
    for _ in 0..8 {
        let inserts: Vec<_> = (0..20).map(|_| it.next_insert()).collect();
        it.commits += 1;
        is_done(it.store.commit(it.commits, &inserts));
    }
    it.disk.fill();
    assert!(it.reserve() > 0);
    it.store.tend().unwrap();
    assert!(it.disk.read(FILE).unwrap().len() > main + 8 * 4_096);
    assert_eq!(it.reserve(), 0);
    it.expect_timers();
}

#[test]
fn a_short_log_leaves_the_reserve_to_what_is_settled() {
    let it = Subject::new(open_impatient);
    // The log is empty after that, and takes the space that it grows by.
    drop(it.store);
    let mut store = open_as(&it.disk, |trial| {
        trial.full = HOUR;
        trial.reserve = (512 << 10, 512 << 10);
    })
    .unwrap();
    store.begin().unwrap();
    it.disk.fill();
    for number in 1..=250 {
        is_done(store.commit(number, &[Op::Settle(row(number, 200))]));
        store.tend().unwrap();
    }
    let log = it.disk.read(LOG).unwrap().len();
    assert!(log < 400 << 10, "the log has {log}");
}

/// How many runs the index of the keys has.
fn runs(disk: &Disk) -> i64 {
    ask(disk, "SELECT count(*) FROM key_runs")
}

/// A timer with a key.
fn keyed(number: u64, payload: usize) -> Row {
    Row {
        key: Some(number.to_le_bytes().as_slice().into()),
        ..row(number, payload)
    }
}

#[test]
fn what_can_wait_waits_while_the_disk_is_full() {
    let open = |disk: &Disk| {
        open_as(disk, |trial| {
            trial.full = HOUR;
            trial.key_sizes = Sizes { fresh: 8, step: 1 };
            trial.vacuum.least = 1;
            trial.long_log = 60;
        })
    };
    let mut it = Subject::new(open);
    let keyed: Vec<_> = (1_001..1_161).map(|it| keyed(it, 200)).collect();
    for row in &keyed {
        let bucket = Level::Second.bucket(row.due);
        it.commit(&[Op::Insert(row.clone(), bucket)]).unwrap();
    }
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    let length = it.disk.read(FILE).unwrap().len();
    // So much has gone that pages are free, and the index of the keys has runs to merge.
    for _ in 0..COUNT - 10 {
        it.settle().unwrap();
    }
    let before = runs(&it.disk);
    for row in &keyed {
        it.commit(&[Op::Settle(row.clone())]).unwrap();
    }
    // What is in memory has a bound: each 8 changes are a run. None is merged.
    let bounded = runs(&it.disk);
    assert!(bounded >= before + 19, "{before}, and then {bounded}");
    let written = changes(&it.disk);
    for _ in 0..20 {
        it.store.tend().unwrap();
    }
    assert_eq!(changes(&it.disk), written);
    assert_eq!(runs(&it.disk), bounded);
    assert!(it.disk.read(FILE).unwrap().len() >= length);
    // Once there is space, it is done.
    drop(it.store);
    it.disk.set_foreign(0);
    let mut store = open(&it.disk).unwrap();
    store.begin().unwrap();
    for _ in 0..100 {
        store.tend().unwrap();
    }
    assert!(runs(&it.disk) < bounded);
    drop(store);
    assert!(it.disk.read(FILE).unwrap().len() < length);
}

/// A store on a full disk, and timers with keys: after ten of them, a run of the index is to be written that neither the log nor the reserve has space for. The
/// file has free pages for it, or not.
fn with_a_run_that_finds_no_space(pause: Duration, has_pages: bool) -> (Subject, Vec<Op>) {
    let mut it = Subject::new(|disk| {
        open_as(disk, |trial| {
            trial.full = pause;
            trial.key_sizes = Sizes {
                fresh: 12_000,
                step: 8_192,
            };
            trial.long_log = 10;
        })
    });
    it.disk.set_capacity(2 * CAPACITY, 0);
    let large: Vec<_> = (9_001..9_041).map(|it| row(it, 25_000)).collect();
    for row in &large {
        let bucket = Level::Second.bucket(row.due);
        it.commit(&[Op::Insert(row.clone(), bucket)]).unwrap();
    }
    let all: Vec<_> = (10_001..21_991).map(|it| keyed(it, 10)).collect();
    for some in all.chunks(20) {
        let inserts = some.iter().map(|row| {
            let bucket = Level::Second.bucket(row.due);
            Op::Insert(row.clone(), bucket)
        });
        it.commit(&inserts.collect::<Vec<_>>()).unwrap();
    }
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    if has_pages {
        for row in large {
            it.commit(&[Op::Settle(row)]).unwrap();
        }
    }
    (it, all.into_iter().take(200).map(Op::Settle).collect())
}

/// Settles these. Returns how often the index was written, or was to be, and was refused.
fn settle_all(it: &mut Subject, settles: Vec<Op>) -> usize {
    let mut tried = 0;
    for settle in settles {
        it.commits += 1;
        let outcomes = it.store.commit(it.commits, &[settle]).unwrap();
        assert_eq!(outcomes, [Outcome::Done]);
        let written = it.disk.count(Call::Write, Kind::Log);
        let tended = it.store.tend();
        // Nothing else that the store does then is written to the log, nor refused.
        match it.disk.count(Call::Write, Kind::Log) > written {
            true => {
                is_definite(tended);
                tried += 1;
            }
            false => tended.unwrap(),
        }
    }
    tried
}

#[test]
fn a_run_that_finds_no_space_is_not_tried_with_each_commit() {
    let (mut it, settles) = with_a_run_that_finds_no_space(HOUR, true);
    assert_eq!(settle_all(&mut it, settles), 1);
    assert_eq!(runs(&it.disk), 0);
}

#[test]
fn a_run_that_finds_no_space_keeps_no_disk_full() {
    let pause = Duration::from_millis(20);
    let (mut it, settles) = with_a_run_that_finds_no_space(pause, true);
    assert!(settle_all(&mut it, settles) > 0);
    // The disk has space for the run, which makes the log longer, and for the reserve and a quarter of it: that is found, whatever is refused meanwhile.
    let free = (512 << 10) + (256 << 10) * 5 / 4;
    it.disk.set_foreign(it.disk.foreign() - free);
    let begun = std::time::Instant::now();
    while it.insert() == Outcome::Full {
        assert!(begun.elapsed().as_secs() < 60, "it is full for ever");
    }
    // Once the log has space, it is written.
    it.disk.set_capacity(4 * CAPACITY, 0);
    while runs(&it.disk) == 0 {
        assert!(begun.elapsed().as_secs() < 60, "it was not written");
        it.store.tend().unwrap();
    }
}

#[test]
fn no_run_makes_the_file_longer_on_a_full_disk() {
    let (mut it, settles) = with_a_run_that_finds_no_space(HOUR, false);
    let length = it.disk.read(FILE).unwrap().len();
    // The log could not be copied after that, and would be full soon.
    assert_eq!(settle_all(&mut it, settles), 0);
    assert!(it.disk.read(FILE).unwrap().len() < length + (32 << 10));
}

#[test]
fn without_a_reserve_a_full_disk_settles_nothing() {
    let mut it = Subject::new(|disk| {
        open_as(disk, |trial| {
            trial.full = Duration::ZERO;
            trial.reserve = (0, 0);
            // What was inserted is in the log.
            trial.long_log = 100_000;
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
fn a_refused_commit_in_the_log_is_written_over() {
    // As in `faults`: on a file system that copies as it writes, an old frame may end what was refused. Now there is a reserve.
    let (mut doubted, mut done) = (0, 0);
    for payload in [10, 900] {
        let used = used_log(payload);
        for after in 0..6 {
            for written in [0, 1, 24, 512, 2_048, 4_000, 4_095] {
                for settles in [false, true] {
                    let disk = disk_of(used.clone());
                    let mut store = open_as(&disk, |trial| trial.full = HOUR).unwrap();
                    let moment = Moment {
                        after,
                        ..Moment::next(Call::Write, Kind::Log)
                    };
                    disk.fail_beside_reserve(moment, Fault::NoSpace(written));
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

/// What is on a disk whose log has old frames after those that count.
fn used_log(payload: usize) -> Content {
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
    let mut it = Subject::new(|disk| open_as(disk, |trial| trial.full = HOUR));
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
        // A quota shows only in a write. Two looks come with each insert, and one of four writes anyway.
        let writes = (0..10).filter(has_written).count();
        assert_eq!(writes, if is_quota { 10 } else { 5 });
        it.disk.set_foreign(0);
        assert_eq!(it.insert(), Outcome::Inserted);
    }
}

#[test]
fn a_disk_that_says_too_little_is_written_to_now_and_then() {
    let mut it = Subject::new(|disk| {
        open_as(disk, |trial| {
            trial.full = Duration::ZERO;
            trial.files.free = |_| Some(0);
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
    // The log is empty after that.
    drop(it.store);
    it.disk.fill();
    let mut store = open_impatient(&it.disk).unwrap();
    assert_eq!(store.begin().unwrap(), 2);
    let steps = [Op::Settle(row(1, 200)), insert(1_000, 200)];
    let outcomes = store.commit(1, &steps).unwrap();
    assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
    store.tend().unwrap();
    drop(store);
    // The reserve is gone now, and another's file takes its space. The log has what it has.
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
    again.id = waterwheel_store::Id::from_stored(9_999);
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

/// What a script does, of which a power cut may come in the middle.
#[derive(Debug, Default)]
struct Known {
    /// What was answered.
    acked: Vec<u64>,
    /// What is there if the commit that is under way is done. Without its inserts, if it finds no space; with them, if not.
    under_way: Vec<Vec<u64>>,
    full: usize,
    recovered: usize,
}

impl Known {
    /// Inserts and settles on a disk that becomes full, is opened again, and has space again. Ends where the power is cut.
    fn live(&mut self, disk: &Disk) -> Option<()> {
        let mut store = self.open(disk)?;
        let mut number = 0;
        for round in 0..3_u64 {
            for step in 0..9 {
                number += 1;
                match step {
                    2 if round == 0 => drop(disk.fill()),
                    5 if round == 1 => {
                        // It ends, in an orderly way, while the disk is full.
                        drop(store);
                        store = self.open(disk)?;
                        number = 1;
                    }
                    0 if round == 2 => disk.set_foreign(0),
                    _ => {}
                }
                self.commit(&mut store, number, round * 100 + step)?;
            }
        }
        Some(())
    }

    fn open(&self, disk: &Disk) -> Option<SqliteStore> {
        let mut store = open_as(disk, |trial| {
            trial.full = Duration::ZERO;
            trial.long_log = 12;
            trial.reserve = (32 << 10, 64 << 10);
        })
        .ok()?;
        store.begin().ok()?;
        Some(store)
    }

    fn commit(&mut self, store: &mut SqliteStore, number: u64, id: u64) -> Option<()> {
        let (one, two) = (id * 10 + 1_000, id * 10 + 1_001);
        let mut steps = Vec::new();
        let mut settled = self.acked.clone();
        if settled.len() > 12 {
            steps.extend(settled.drain(..2).map(|id| Op::Settle(row(id, 700))));
        }
        let inserted = [&settled[..], &[one, two]].concat();
        steps.extend([insert(one, 700), insert(two, 700)]);
        self.under_way = vec![settled.clone(), inserted.clone()];
        let outcomes = store.commit(number, &steps);
        match outcomes {
            Ok(outcomes) if outcomes.ends_with(&[Outcome::Inserted, Outcome::Inserted]) => {
                self.recovered += usize::from(self.full > 0);
                self.acked = inserted;
            }
            Ok(outcomes) => {
                assert!(outcomes.ends_with(&[Outcome::Full, Outcome::Full]));
                self.full += 1;
                self.acked = settled;
            }
            Err(error) if error.is_definite() => panic!("{error:?}"),
            Err(_) => return None,
        }
        self.under_way.clear();
        match store.tend() {
            Err(error) if !error.is_definite() => None,
            _ => Some(()),
        }
    }

    fn may_be(&self, left: &Vec<u64>) -> bool {
        *left == self.acked || self.under_way.contains(left)
    }
}

#[test]
fn a_power_cut_at_any_moment_of_a_full_disk_loses_nothing() {
    let small = |copies| {
        let disk = disk();
        disk.set_capacity(300 << 10, 0);
        disk.set_copies_on_write(copies);
        disk
    };
    for copies in [false, true] {
        let whole = small(copies);
        let mut known = Known::default();
        known.live(&whole).unwrap();
        assert!(known.full > 5 && known.recovered > 2, "{known:?}");
        let calls = whole.calls();
        println!("{calls} calls, {known:?}");
        assert!(calls > 200, "{calls}");
        let mut cuts = 0;
        for after in 0..calls {
            // Before the call takes effect, and after it, by turns.
            for after_it in [after.is_multiple_of(2)] {
                let disk = small(copies);
                let moment = Moment {
                    call: None,
                    kind: None,
                    after,
                };
                disk.cut_at(moment, after_it);
                let mut known = Known::default();
                let lived = known.live(&disk);
                let content = disk.content();
                let choose = |choice: &mut dyn Choice| {
                    disk.put(content.clone());
                    disk.restart(choice);
                    let left = left(&disk);
                    assert!(
                        known.may_be(&left),
                        "cut at {after}, {after_it}: {left:?} is left of {known:?}"
                    );
                };
                // The worst, and some of the rest.
                choose(&mut Each::new(512));
                for seed in 0..2 {
                    choose(&mut Chance::new(
                        &mut Rng::with_seed(after * 8 + seed),
                        calls,
                    ));
                }
                cuts += u64::from(lived.is_none());
            }
        }
        assert!(cuts > calls / 2, "{cuts} cuts in {calls} calls");
    }
}

#[test]
fn a_store_opens_after_a_power_cut_on_a_full_disk() {
    // The reserve is used up, and the log has not been copied.
    let mut it = Subject::new(open_impatient);
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    for _ in 0..20 {
        it.settle().unwrap();
    }
    it.disk.cut_now();
    drop(it.store);
    it.disk.restart(&mut Each::new(4_096));
    it.store = open_impatient(&it.disk).unwrap();
    it.store.begin().unwrap();
    it.commits = 0;
    it.expect_timers();
    for _ in 0..50 {
        it.settle().unwrap();
        assert_eq!(it.insert(), Outcome::Full);
    }
    it.disk.set_foreign(0);
    assert_eq!(it.insert(), Outcome::Inserted);
}

const LIMIT: usize = 4 << 20;

/// A store whose file has a limit, on a disk that has space.
fn limited(bytes: usize) -> Subject {
    Subject::new(|disk| {
        disk.set_capacity(usize::MAX, 0);
        open_as(disk, |trial| {
            trial.limit = Some(bytes as u64);
            trial.long_log = 64;
        })
    })
}

impl Subject {
    fn file(&self) -> usize {
        self.disk.read(FILE).map_or(0, |bytes| bytes.len())
    }

    /// Inserts until that is refused.
    fn insert_all(&mut self) {
        for _ in 0..200 {
            let inserts: Vec<_> = (0..200).map(|_| self.next_insert()).collect();
            let outcomes = self.commit(&inserts).unwrap();
            let full = outcomes.iter().position(|it| *it == Outcome::Full);
            if let Some(first) = full {
                // None of those after it is written: what is refused stays so for a while.
                assert!(outcomes[first..].iter().all(|it| *it == Outcome::Full));
                self.next -= (outcomes.len() - first) as u64;
            }
            if full == Some(0) {
                return;
            }
        }
        panic!("it is never full");
    }
}

#[test]
fn a_limited_file_refuses_inserts_and_does_the_rest() {
    let mut it = limited(LIMIT);
    it.insert_all();
    let count = it.next - it.first;
    // Some 250 bytes each.
    assert!(count > 12_000, "{count} timers are there");
    let reserve = it.reserve();
    // Each way on takes space: a dead letter, a move, what is archived, a setting.
    for number in it.first..it.first + 80 {
        let row = row(number, 200);
        let later = Due::from_millis(row.due.as_millis() + 100_000_000);
        let step = match number % 4 {
            0 => Op::Bury {
                row,
                at: later,
                error: "no".into(),
            },
            1 => Op::Retry(row, later, Level::Second.bucket(later)),
            2 => Op::Archive(row, later),
            _ => Op::Set(format!("namespace/{number}").into(), Some([7; 200].into())),
        };
        let refused = it.next_insert();
        it.next -= 1;
        let outcomes = it.commit(&[step, refused]).unwrap();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
        assert!(it.file() <= LIMIT, "{} bytes", it.file());
    }
    assert_eq!(it.reserve(), reserve, "it is of no use here");
    it.first += 80;
    // A little must have gone before the next insert is taken: else each settled timer would make room for one.
    let mut settled = 0;
    while it.insert() == Outcome::Full {
        it.settle().unwrap();
        settled += 1;
    }
    println!("{count} timers, {settled} settled");
    assert!((60..2_000).contains(&settled), "{settled} were settled");
    assert_eq!(it.insert(), Outcome::Inserted);
}

/// A store whose file has all pages that it may have.
fn at_its_limit() -> Subject {
    let mut it = limited(LIMIT);
    it.insert_all();
    // As the inserts of a calendar, which are not refused for the reserve.
    let refused = (0..10_000).find_map(|_| {
        let together = Op::All(vec![it.next_insert()]);
        it.commit(&[together]).err()
    });
    assert!(refused.unwrap().is_definite());
    it.next -= 1;
    it
}

#[test]
fn inserts_give_way_to_what_is_committed_with_them() {
    let mut it = at_its_limit();
    // Nothing tends it, so the file stays as long as it may be.
    let mut commit = |steps: &[Op]| {
        it.commits += 1;
        it.store.commit(it.commits, steps)
    };
    // Room for one of 190 KB, even once the limit is met, and not for 1.2 MB beside it.
    let number = it.next + 1_000_000;
    while commit(&[insert(number, 400_000)]).unwrap() == [Outcome::Full] {
        let settled = commit(&[Op::Settle(row(it.first, 200))]);
        assert_eq!(settled.unwrap(), [Outcome::Done]);
        it.first += 1;
    }
    let settled = commit(&[Op::Settle(row(number, 400_000))]);
    assert_eq!(settled.unwrap(), [Outcome::Done]);
    let together = Op::All(vec![insert(number + 1, 1_200_000)]);
    let outcomes = commit(&[insert(number + 2, 190_000), together]).unwrap();
    assert_eq!(
        outcomes,
        [Outcome::Full, Outcome::All(vec![Outcome::Inserted])]
    );
    assert!(it.file() <= LIMIT, "{} bytes", it.file());
}

#[test]
fn a_full_disk_is_known_in_a_file_at_its_limit() {
    let it = at_its_limit();
    // The log is empty after that, and takes the space that it grows by.
    drop(it.store);
    let mut store = open_as(&it.disk, |trial| {
        trial.limit = Some(LIMIT as u64);
        trial.full = HOUR;
    })
    .unwrap();
    store.begin().unwrap();
    it.disk.fill();
    assert!(it.disk.read(RESERVE).is_some());
    let timers = (it.first..).take(20);
    for (commit, number) in (1..).zip(timers) {
        let steps = [Op::Settle(row(number, 200)), insert(1_000_000, 200)];
        let outcomes = store.commit(commit, &steps).unwrap();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
    }
    assert!(it.disk.read(RESERVE).is_none());
}

#[test]
fn a_file_at_its_limit_settles_and_keeps_its_reserve() {
    let mut it = at_its_limit();
    let reserve = it.reserve();
    assert!(reserve > 0);
    for _ in 0..200 {
        assert_eq!(it.insert(), Outcome::Full);
        it.settle().unwrap();
        assert!(it.file() <= LIMIT, "{} bytes", it.file());
    }
    assert_eq!(it.reserve(), reserve);
    it.expect_timers();
}

#[test]
fn a_file_that_is_longer_than_its_limit_becomes_no_longer() {
    let mut it = limited(LIMIT);
    it.insert_all();
    let (disk, first, next) = (it.disk.clone(), it.first, it.next);
    drop(it.store);
    let length = disk.read(FILE).unwrap().len();
    let mut store = open_as(&disk, |trial| trial.limit = Some(200_000)).unwrap();
    store.begin().unwrap();
    let mut number = 0;
    for id in first..next {
        number += 1;
        let steps = [Op::Settle(row(id, 200)), insert(100_000 + id, 200)];
        let outcomes = store.commit(number, &steps).unwrap();
        store.tend().unwrap();
        assert!(disk.read(FILE).unwrap().len() <= length);
        if outcomes[1] == Outcome::Inserted {
            let left = next - id;
            assert!(left < 1_000, "with {left} of 200 bytes each");
            return;
        }
    }
    panic!("it takes no insert");
}
