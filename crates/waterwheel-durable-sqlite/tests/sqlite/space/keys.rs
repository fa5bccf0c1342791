//! Which work on the index of the keys waits while the disk is full?

use super::*;

/// The number of runs of the index of the keys.
fn runs(disk: &Disk) -> i64 {
    query(disk, "SELECT count(*) FROM key_runs")
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
        open_as(disk, |options| {
            options.full = HOUR;
            options.key_sizes = Sizes { fresh: 8, step: 1 };
            options.vacuum.min = 1;
            options.long_wal = 60;
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
    // Enough timers have gone that pages are free, and the index of the keys has runs to merge.
    for _ in 0..COUNT - 10 {
        it.settle().unwrap();
    }
    let before = runs(&it.disk);
    for row in &keyed {
        it.commit(&[Op::Settle(row.clone())]).unwrap();
    }
    // The changes in memory are bounded: every 8 of them become a run. No run is merged.
    let bounded = runs(&it.disk);
    assert!(bounded >= before + 19, "{before}, and then {bounded}");
    let written = changes(&it.disk);
    for _ in 0..20 {
        it.store.maintain().unwrap();
    }
    assert_eq!(changes(&it.disk), written);
    assert_eq!(runs(&it.disk), bounded);
    assert!(it.disk.read(FILE).unwrap().len() >= length);
    // Once there is space, the work is done.
    drop(it.store);
    it.disk.set_foreign(0);
    let mut store = open(&it.disk).unwrap();
    store.begin().unwrap();
    for _ in 0..100 {
        store.maintain().unwrap();
    }
    assert!(runs(&it.disk) < bounded);
    drop(store);
    assert!(it.disk.read(FILE).unwrap().len() < length);
}

/// A store on a full disk, and timers with keys: after ten of them, a run of the index is due that finds no space in the WAL or the reserve. `has_pages` says
/// whether the file has free pages for it.
fn with_a_run_that_finds_no_space(pause: Duration, has_pages: bool) -> (Subject, Vec<Op>) {
    let mut it = Subject::new(|disk| {
        open_as(disk, |options| {
            options.full = pause;
            options.key_sizes = Sizes {
                fresh: 12_000,
                step: 8_192,
            };
            options.long_wal = 10;
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

/// Settles these timers. Returns how often the index was or should have been written, and was refused.
fn settle_all(it: &mut Subject, settles: Vec<Op>) -> usize {
    let mut tried = 0;
    for settle in settles {
        it.commits += 1;
        let outcomes = it.store.commit(it.commits, &[settle]).unwrap();
        assert_eq!(outcomes, [Outcome::Done]);
        let written = it.disk.count(Call::Write, Kind::Wal);
        let maintained = it.store.maintain();
        // Nothing else that the store does then is written to the WAL or refused.
        match it.disk.count(Call::Write, Kind::Wal) > written {
            true => {
                is_definite(maintained);
                tried += 1;
            }
            false => maintained.unwrap(),
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
    // The disk has space for the run, which extends the WAL, and for the reserve and a quarter of it: the store notices that, whatever is refused meanwhile.
    let free = (512 << 10) + (256 << 10) * 5 / 4;
    it.disk.set_foreign(it.disk.foreign() - free);
    let begun = std::time::Instant::now();
    while it.insert() == Outcome::Full {
        assert!(begun.elapsed().as_secs() < 60, "it is full for ever");
    }
    // Once the WAL has space, the run is written.
    it.disk.set_capacity(4 * CAPACITY, 0);
    while runs(&it.disk) == 0 {
        assert!(begun.elapsed().as_secs() < 60, "it was not written");
        it.store.maintain().unwrap();
    }
}

#[test]
fn no_run_makes_the_file_longer_on_a_full_disk() {
    let (mut it, settles) = with_a_run_that_finds_no_space(HOUR, false);
    let length = it.disk.read(FILE).unwrap().len();
    // After that, the WAL could not be copied, and would soon be full.
    assert_eq!(settle_all(&mut it, settles), 0);
    assert!(it.disk.read(FILE).unwrap().len() < length + (32 << 10));
}
