//! How long is the file, once timers have come and gone?

use std::fs;
use std::path::Path;
use std::time::Duration;

use waterwheel_durable_core::store::{ArchiveCursor, Due, Id, Op, Row, Store};
use waterwheel_durable_sqlite::SqliteStore;

use crate::folder::*;
use crate::rows::{insert_all, insert_second};

const COUNT: u64 = 20_000;
const IN_COMMIT: u64 = 100;

fn row(number: u64) -> Row {
    Row {
        key: Some(number.to_string().into_bytes().into()),
        ..Row::new(
            Id::from_stored(number),
            Due::from_millis(1_800_000_000_000 + number as i64),
            "mail",
            vec![number as u8; 600],
        )
    }
}

/// A store, and the number of its last commit.
struct Used(SqliteStore, u64);

impl Used {
    fn open(path: &Path) -> Used {
        Used(begun(path), 0)
    }

    fn does(&mut self, steps: &[Op]) {
        self.1 += 1;
        self.0.commit(self.1, steps).unwrap();
        self.0.maintain().unwrap();
    }

    /// Inserts many timers, and settles all but every hundredth.
    fn come_and_go(&mut self) {
        let numbers: Vec<u64> = (1..=COUNT).collect();
        for part in numbers.chunks(IN_COMMIT as usize) {
            let rows: Vec<_> = part.iter().map(|number| row(*number)).collect();
            self.does(&insert_all(&rows));
        }
        for part in numbers.chunks(IN_COMMIT as usize) {
            let gone = part.iter().filter(|number| *number % 100 > 0);
            let settle = gone.map(|number| Op::Settle(row(*number)));
            self.does(&settle.collect::<Vec<_>>());
        }
    }

    fn expect_left(&mut self) {
        let left: Vec<Row> = (1..=COUNT).filter(|it| it % 100 == 0).map(row).collect();
        assert_eq!(load(&mut self.0, "mail"), left);
    }
}

fn pages(path: &Path, of: &str) -> u64 {
    query(path, &format!("PRAGMA {of}")).unsigned_abs()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn a_file_whose_timers_are_gone_becomes_shorter() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let mut used = Used::open(&path);
    used.come_and_go();
    let after = pages(&path, "page_count");
    // From here on, nothing is committed.
    let mut steps = 0;
    loop {
        let before = pages(&path, "page_count");
        used.0.maintain().unwrap();
        let given = before - pages(&path, "page_count");
        assert!(given <= 600, "{given} pages in a step");
        if given == 0 {
            break;
        }
        steps += 1;
    }
    used.expect_left();
    drop(used);
    let (all, free) = (pages(&path, "page_count"), pages(&path, "freelist_count"));
    println!("{after} pages, and {all} after {steps} steps, {free} of them free");
    assert!(after > 2_500 && free <= 1_024 && length(&path) < 6 << 20);
    let mut used = Used::open(&path);
    used.expect_left();
}

#[test]
fn what_expires_in_a_step_is_not_what_a_commit_has_kept() {
    const KEPT: u64 = 3_000;
    let folder = Folder::new();
    let mut used = Used::open(&folder.file("timers.db"));
    let rows: Vec<Row> = (1..=KEPT).map(row).collect();
    used.does(&insert_all(&rows));
    let archive = |row: &Row| Op::Archive(row.clone(), row.due);
    used.does(&rows.iter().map(archive).collect::<Vec<_>>());
    let archived = |used: &mut Used| {
        let start = ArchiveCursor::START;
        let all = used.0.archived("mail", start, i64::MAX, usize::MAX);
        all.unwrap().into_iter().map(|(_, it)| it.id)
    };
    assert!(archived(&mut used).eq(rows.iter().map(|row| row.id)));
    let mut left = KEPT as usize;
    for step in 1.. {
        let expire = Op::Expire {
            handler: "mail".into(),
            before: i64::MAX,
            limit: 100,
        };
        used.does(&[expire]);
        let now = archived(&mut used).len();
        let gone = left - now;
        left = now;
        if left == 0 {
            assert!(step > 2, "all in {step} steps");
            break;
        }
        assert!((100..=1_024).contains(&gone), "{gone} in a step");
    }
    // All keys are free again.
    used.does(&insert_all(&rows));
    assert_eq!(load(&mut used.0, "mail"), rows);
}

#[test]
fn a_step_whose_time_is_over_gives_one_page_back() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    Used::open(&path).come_and_go();
    let given_by_a_step = |time| {
        let mut store = begun_as(&path, |options| options.vacuum.time = time);
        let before = pages(&path, "page_count");
        store.maintain().unwrap();
        before - pages(&path, "page_count")
    };
    // Now and then a step also frees a page of the pointer map.
    assert!((1..=2).contains(&given_by_a_step(Duration::ZERO)));
    assert!((512..=514).contains(&given_by_a_step(Duration::MAX)));
}

#[test]
fn a_file_becomes_shorter_while_others_come_and_go() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    // However slow the machine is, a step ends after its number of pages.
    let store = begun_as(&path, |options| options.vacuum.time = Duration::MAX);
    let mut used = Used(store, 0);
    used.come_and_go();
    let before = length(&path);
    // The same second is used again and again, so no more pages are.
    for number in COUNT + 1..COUNT + 3_000 {
        let row = row(number);
        used.does(&[insert_second(row.clone())]);
        used.does(&[Op::Settle(row)]);
    }
    drop(used);
    let after = length(&path);
    println!("{before} bytes, and then {after}");
    assert!(after < before / 2);
}

#[test]
fn a_file_without_notes_of_its_pages_stays_as_it_is() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    drop(SqliteStore::open(&path).unwrap());
    let rebuild = |mode: &str| {
        execute(&path, &format!("PRAGMA auto_vacuum = {mode}; VACUUM"));
        query(&path, "PRAGMA wal_checkpoint(TRUNCATE)");
    };
    rebuild("NONE");
    let mut used = Used::open(&path);
    used.come_and_go();
    for _ in 0..100 {
        used.0.maintain().unwrap();
    }
    drop(used);
    let long = length(&path);
    assert!(long > 12 << 20, "{long} bytes");
    // As the documentation says.
    rebuild("INCREMENTAL");
    let mut used = Used::open(&path);
    assert!(length(&path) < 2 << 20);
    used.expect_left();
    assert_eq!(pages(&path, "auto_vacuum"), 2);
}
